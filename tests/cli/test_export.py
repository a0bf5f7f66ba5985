import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.cli.app import app


def call(store: Path, *words: str, code: int = 0) -> tuple[str, str]:
    result = CliRunner().invoke(app, ["--store", str(store), *words])
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


@pytest.mark.slow
def test_formats_on_the_command_line(demo_store: Path, tmp_path: Path):
    only = ("--collection", "python-docs")
    out, said = call(demo_store, "export", str(tmp_path / "t"), "--format", "trec", "--format", "json", *only)
    counts = {row["what"]: row["count"] for row in json.loads(out)}
    assert counts["runs"] == 10 == len(list((tmp_path / "t" / "runs").iterdir()))
    assert "TREC cannot hold, so left out: 64 queries" in said
    out, _ = call(demo_store, "export", str(tmp_path / "b.zip"), "--format", "beir", *only)
    assert "passages" in out
    _, said = call(demo_store, "export", str(tmp_path / "c.zip"), "--format", "beir", code=1)
    assert "A BEIR folder holds one collection, not 2" in said
    _, said = call(demo_store, "export", "x", "--format", "trec", "--format", "beir", code=1)
    assert "Two formats: trec, beir." in said
    other = tmp_path / "again"
    out, _ = call(other, "import", str(tmp_path / "t"), "--collection", "python-docs", "--format", "json")
    taken = {row["what"]: row["count"] for row in json.loads(out)}
    assert (taken["runs"], taken["rankings"], taken["judgements"]) == (
        10,
        counts["rankings"],
        counts["judgements"],
    )
