"""One query as people may type it, by what perturbed siblings rank."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from core.analysis.workspace.scope import Quality
from core.views.queries.one_query import AT_ZERO, answer, mark, one_query, typed
from tests.stores import Lab
from tests.views.made import LAB

BM25 = {"name": "bm25", "mode": "sparse", "sparse": "bm25"}
AT_2 = Quality("Success", 2)


@pytest.fixture
def snapshot(tmp_path: Path):
    made = (
        Lab()
        .ask({"q1": "where do cats sleep", "q2": "who sang"})
        .judge({"q1": {"p": 5, "x": 1}, "q2": {"p": 5}})
    )
    both = {"q1": ["p", "x", "y"], "q2": ["p"]}
    for run_id, more, final in (
        ("clean", {}, both),
        ("noise", {"noise": 4}, {"q1": ["x", "y", "p"], "q2": ["p"]}),
        ("typo", {"typo": 1}, {"q1": ["y", "p"]}),
        ("names", {"names": "mask"}, {"q1": ["p", "x"]}),
    ):
        made.run(run_id, final=final, spec={**BM25, **({"perturb": more} if more else {})})
    made.run("other", final=both, spec={"name": "other"})
    return made.write(tmp_path / "store").read()


def test_what_hurts_most_stands_first(snapshot):
    rows = typed(snapshot, LAB, AT_2, "clean", "q1")
    assert rows.select("run_id", "perturb", "score", "change", "overlap").rows() == [
        ("noise", "noise 4", 0.0, -1.0, 0.5),
        ("names", "names mask", 1.0, 0.0, 1.0),
        ("typo", "typo 1", 1.0, 0.0, 0.5),
    ]
    said = dict(rows.select("run_id", "typed").iter_rows())
    assert said["noise"].count("where do cats sleep") == 1
    assert said["names"] is None
    assert answer(rows, AT_2).startswith("Noise 4 hurts")
    assert "worse" in answer(rows.filter(perturb="typo 1"), AT_2)
    at_zero = rows.with_columns(score=pl.col("score") * 0, change=pl.lit(0.0))
    assert answer(at_zero, AT_2) == AT_ZERO
    assert answer(at_zero.with_columns(score=0.5, change=0.5), AT_2) == AT_ZERO, "it can only gain"
    asked = typed(snapshot, LAB, AT_2, "clean", "q2")
    assert dict(asked.select("run_id", "score").iter_rows()) == {"noise": 1.0, "names": None, "typo": None}


@pytest.mark.parametrize("run_id", ["other", "noise", "unknown"])
def test_a_stack_that_was_asked_nothing_perturbed_has_no_rows(snapshot, run_id: str):
    assert typed(snapshot, LAB, AT_2, run_id, "q1").is_empty()
    assert typed(snapshot, LAB, Quality("Unheard", 1), "clean", "q1").is_empty()


def test_passages_are_marked_as_moved_new_or_lost(snapshot):
    clean, noisy = one_query(snapshot, LAB, AT_2, "q1", {"clean": "clean", "noise": "noise"}).sides

    def marks(side, *, as_is: bool):
        return {row["passage_id"]: mark(row, 2, clean=as_is) for row in side.ranking.iter_rows(named=True)}

    assert marks(clean, as_is=True) == {"p": "lost, now #3", "x": "", "y": ""}
    assert marks(noisy, as_is=False) == {"x": "▲ 1, was #2", "y": "new, was #3", "p": "▼ 2, was #1"}
