"""``readers plan|run|resume|status`` by the command line, with the reader that costs nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.cli.app import app
from tests.work.readers import asked


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    asked.store_of(tmp_path)
    path = tmp_path / "readers.toml"
    path.write_text(asked.SPEC.replace('"reader"', '"fake"').replace('"fake"\n[r', '"list"\n[r'))
    return path


def call(spec: Path, *words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["--store", str(spec.parent / "store"), "readers", *words])
    assert result.exit_code == code, result.output
    return result.stdout


def test_a_plan_and_a_dry_run_write_nothing(spec: Path):
    before = sorted(spec.parent.rglob("*"))
    told = json.loads(call(spec, "plan", str(spec), "--format", "json"))
    assert (told["runs"], told["questions"], told["answers"], told["asked"]) == (2, 3, 18, 12)
    assert (told["usd"], told["calls"], told["problems"]) == (0, 0, [])
    assert json.loads(call(spec, "run", str(spec), "--dry-run", "--format", "json")) == told
    assert sorted(spec.parent.rglob("*")) == before


@pytest.mark.slow
def test_it_runs_goes_on_and_tells_how_far_it_is(spec: Path):
    assert json.loads(call(spec, "status", "--format", "json")) == []
    rows = json.loads(call(spec, "run", str(spec), "--format", "json"))
    assert [row["answers"] for row in rows] == [3] * 6
    assert {row["truncated"] for row in rows} == {0}
    assert json.loads(call(spec, "resume", "asked", "--format", "json")) == rows
    told = json.loads(call(spec, "plan", str(spec), "--format", "json"))
    assert (told["answers"], told["held"]) == (18, 18)
    (status,) = json.loads(call(spec, "status", "--format", "json"))
    assert (status["state"], status["answers"], status["usd"]) == ("finished", 18, 0)


def test_what_is_wrong_is_one_line(spec: Path):
    spec.write_text(spec.read_text().replace("r-b", "r-x"))
    call(spec, "run", str(spec), code=1)
    call(spec, "resume", "nobody", code=1)
