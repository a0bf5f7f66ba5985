"""Stacks written to run elsewhere: here in a process that is asked over pipes, orders compared."""

from __future__ import annotations

import json
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from core.errors import InputError
from core.pipeline.evaluate import Protocol, corpus_of
from core.pipeline.ship import _apart, compare, ship
from core.pipeline.shippable import KINDS, missing
from core.records import JsonMap, Stack
from tests.pipeline.corpora import passages, queries, random_texts
from tests.pipeline.evaluate.helpers import job, run

SPARSE: JsonMap = {"mode": "sparse", "sparse": "bm25", "reranker": "none", "candidates": 10}
DENSE: JsonMap = {
    "mode": "dense", "embedder": "wordllama", "dim": 128, "index": "flat", "reranker": "none",
    "candidates": 10,
}  # fmt: skip
HYBRID: JsonMap = {
    **SPARSE, **DENSE, "mode": "hybrid", "fusion": {"method": "rrf", "constant": 60, "depth": 100},
}  # fmt: skip
NEAR = {"method": "rrf", "constant": 10, "depth": 100, "weights": [1.0, 1.3]}
WEIGHTED: JsonMap = {**HYBRID, "fusion": NEAR}
FRENCH: JsonMap = {**SPARSE, "bm25": {"language": "french", "k1": 1.2, "b": 0.5}}
ASKED = ["sort a frame", "lazy window mean", "join columns by row", "l'élève"]
ABOUT = {"name": "chosen", "run_id": "r-1", "stack_id": "s-1", "prices": []}


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec", [SPARSE, FRENCH, DENSE, HYBRID, WEIGHTED], ids=["sparse", "french", "dense", "hybrid", "weighted"]
)
def test_what_is_written_ranks_as_it_was_measured(spec: JsonMap, tmp_path: Path):
    texts = passages([*random_texts(60, seed=3), "les élèves et l'eau", "Eleve"])
    work = job([Stack(spec)], texts=texts, asked=ASKED, protocol=Protocol(repeats=1))
    rows = run(tmp_path, work)[1].table("rankings").sort("query_id", "rank")
    stored = {str(q): part["passage_id"].to_list() for (q,), part in rows.group_by("query_id")}
    ship(spec, "python", corpus_of(texts), tmp_path / "out", ABOUT)
    found = compare(tmp_path / "out", "python", sys.executable, queries(ASKED), stored)
    assert found.filter(~pl.col("same")).to_dicts() == []
    assert found.height == len(ASKED)


@pytest.mark.slow
def test_a_difference_is_told_by_question_and_place(tmp_path: Path):
    texts = passages(["cats purr", "dogs bark"])
    ship(SPARSE, "python", corpus_of(texts), tmp_path / "out", ABOUT)
    asked = queries(["cats", "dogs"])
    first, second = asked["query_id"]
    found = compare(tmp_path / "out", "python", sys.executable, asked, {first: ["p000"], second: ["p000"]})
    rows = {row["query_id"]: row for row in found.to_dicts()}
    assert rows[first]["same"]
    assert rows[second] == {
        "query_id": second, "same": False, "first_difference": 1, "stored": "p000", "exported": "p001",
    }  # fmt: skip


TIES = {
    "the same": ("abc", [3.0, 2.0, 1.0], "abc", None),
    "equal scores, other places": ("abc", [2.0, 2.0 + 1e-9, 1.0], "bac", None),
    "other scores, other places": ("abc", [3.0, 2.0, 1.0], "bac", 0),
    "equal scores at the cut": ("abc", [3.0, 1.0, 1.0], "abd", None),
    "fewer": ("abc", [3.0, 1.0, 1.0], "ab", 2),
    "one before the cut again": ("abc", [3.0, 1.0, 1.0], "aba", 2),
    "no scores": ("abc", [], "acb", 1),
    "nothing": ("", [], "", None),
}


@pytest.mark.parametrize("name", TIES)
def test_passages_of_equal_scores_may_change_places(name: str):
    want, scores, got, place = TIES[name]
    known = dict(zip("abcd", [*scores, 1.0], strict=False))
    assert _apart(list(want), {each: known.get(each, 1.0) for each in got}, scores) == place


def test_requirements_hold_for_any_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    about = {"numpy": {"version": "2.4.6", "requires_python": ">=3.11"}, "bm25s": {"version": "0.3.16"}}

    def told(package: str) -> SimpleNamespace:
        if package not in about:
            raise PackageNotFoundError
        return SimpleNamespace(json=about[package])

    monkeypatch.setattr("core.pipeline.ship.metadata", told)
    ship(SPARSE, "python", corpus_of(passages(["cats purr"])), tmp_path / "out", ABOUT)
    assert (tmp_path / "out" / "requirements.txt").read_text().splitlines() == [
        'numpy==2.4.6; python_version >= "3.11"', 'numpy; python_version < "3.11"', "bm25s==0.3.16",
        "PyStemmer",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_holds_what_it_takes_and_none_of_this_program(kind: str, tmp_path: Path):
    ship(SPARSE, kind, corpus_of(passages(["cats purr"])), tmp_path / "out", ABOUT)
    files = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
    assert {"README.md", "about.json", "passages.jsonl"} < set(files)
    assert json.loads(files["about.json"])["spec"] == SPARSE
    code = [text for name, text in files.items() if name.endswith(".py")]
    assert not any("from core" in text or "import core" in text for text in code)
    assert ("requirements.txt" in files) is (kind != "elasticsearch")


REFUSED = {
    "reranker": {**SPARSE, "reranker": "rerank-2.5"},
    "embedder": {**DENSE, "embedder": "voyage-3.5"},
    "index": {**DENSE, "index": "hnsw-f32"},
    "chunker": {**SPARSE, "chunker": {"method": "sentence"}},
    "spelling method mend": {**SPARSE, "spelling": {"method": "mend"}},  # an axis that no adapter knows
    "own": {"mode": "own", "name": "x", "candidates": 5},
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_written_is_named(name: str, tmp_path: Path):
    assert name in missing(REFUSED[name], "python")[0]
    with pytest.raises(InputError, match="cannot be written"):
        ship(REFUSED[name], "python", corpus_of(passages(["cats"])), tmp_path / "out", ABOUT)
    assert not (tmp_path / "out").exists()
