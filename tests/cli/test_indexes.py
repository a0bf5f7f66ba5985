"""``indexes bench`` and ``indexes show``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from core.cli.app import app
from core.errors import ClqError

SMALL = ("--passages", "200", "--dim", "8", "--k", "5", "--ef", "8", "--clients", "1,2", "--seconds", "0")
SPEC = """
collection = "{folder}/passages.csv"
queries = "{folder}/queries.csv"

[axes]
mode = "dense"
embedder = "fake"
dim = 16
index = ["flat", {{ kind = "hnsw-f32", M = 4 }}, {{ kind = "hnsw-f32", M = 4, efSearch = 20 }}]
candidates = 5
"""


def call(store: Path, *words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["--store", str(store), "indexes", *words])
    assert result.exit_code == code, result.output
    return result


@pytest.mark.slow
def test_what_was_measured_is_kept_and_shown(tmp_path: Path):
    kinds = ("--kinds", "flat,hnsw-f32(M=4,efConstruction=8)")
    told = call(tmp_path, "bench", *kinds, *SMALL, "--format", "json", "--usd-per-hour", "1")
    rows = json.loads(told.stdout)
    assert [(row["index"], row["effort"], row["clients"]) for row in rows] == [
        ("flat", None, 1), ("flat", None, 2),
        ("hnsw-f32 (M 4, efConstruction 8)", 8, 1), ("hnsw-f32 (M 4, efConstruction 8)", 8, 2),
    ]  # fmt: skip
    assert rows[0]["recall"] == 1.0
    assert rows[0]["usd_per_1k"] == pytest.approx(1000 / (3600 * 0.5 * rows[0]["queries_per_second"]))
    again = json.loads(call(tmp_path, "show", "--format", "json").stdout)
    assert [{**row, "usd_per_1k": None} for row in rows] == again


def test_what_was_measured_until_a_failure_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from core.pipeline.index import bench

    make = bench.make_index

    def failing(name: str, *args: Any, **options: Any) -> Any:
        if name == "int8":
            raise ClqError("The disk is full.")
        return make(name, *args, **options)

    monkeypatch.setattr(bench, "make_index", failing)
    ended = call(tmp_path, "bench", "--kinds", "flat,int8,hnsw-f32", *SMALL, "--format", "json", code=1)
    assert "The disk is full." in ended.output
    kept = json.loads(call(tmp_path, "show", "--format", "json").stdout)
    assert [(row["index"], row["clients"]) for row in kept] == [("flat", 1), ("flat", 2)]


def test_all_kinds_are_checked_before_any_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("PG_URL", raising=False)
    ended = call(tmp_path, "bench", "--kinds", "flat,pgvector", *SMALL, code=1)
    assert "PG_URL" in ended.output or "pip install" in ended.output
    assert "build flat" not in ended.output


def test_the_indexes_of_a_specification_are_measured_on_its_passages(tmp_path: Path):
    passages = [f"p{number},words {number} and {number * 7 % 50}" for number in range(60)]
    (tmp_path / "passages.csv").write_text("passage_id,text\n" + "\n".join(passages))
    (tmp_path / "queries.csv").write_text("query_id,text\nq1,words 3\nq2,words 40")
    models = '"text-embedding-3-small", "fake"'
    text = SPEC.format(folder=tmp_path).replace('"fake"\ndim = 16', f"[{models}]\ndim = 256")
    (tmp_path / "spec.toml").write_text(text)
    told = call(tmp_path / "s", "bench", str(tmp_path / "spec.toml"), *SMALL[4:], "--format", "json")
    rows = json.loads(told.stdout)
    assert [row["index"] for row in rows] == [*["flat"] * 2, *["hnsw-f32 (M 4)"] * 2]
    assert {(row["passages"], row["n"]) for row in rows} == {(60, 2)}


def test_without_an_embedder_that_runs_here_nothing_is_read(tmp_path: Path):
    spec = SPEC.format(folder=tmp_path / "absent").replace('"fake"\ndim = 16', '"voyage-3.5"\ndim = 512')
    (tmp_path / "spec.toml").write_text(spec)
    said = call(tmp_path / "s", "bench", str(tmp_path / "spec.toml"), code=1).stderr
    assert "voyage-3.5" in said
    assert "--dim 512" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--k", "ten"), "not a list of whole numbers"),
        (("--k", "0"), "not a list of whole numbers"),
        (("--kinds", "tree"), "No index 'tree'"),
        (("--kinds", "flat(M"), "not a kind of index"),
        (("--kinds", "hnsw-f32(M=1)"), "M=1 is not allowed"),
    ],
)
def test_what_cannot_be_measured_is_said(words: tuple[str, ...], said: str, tmp_path: Path):
    assert said in call(tmp_path, "bench", *SMALL, *words, code=1).stderr
