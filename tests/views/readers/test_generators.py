"""Generators side by side: means of judges, totals, differences, on scores made by hand and the thesis's."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from core.analysis.workspace.scope import Scope
from core.answers import BY_PEOPLE
from core.importers.formats.published.readers import published_readers
from core.records import Batch
from core.store import Snapshot, Store
from core.tables import frame
from core.views.readers.generators import (
    baselines,
    cells,
    criteria,
    differences,
    generator_table,
    generators_answer,
    mean_of,
    usual,
)
from tests.stores import Lab

LABEL = Scope("lab")
VALUES = {  # reader → criterion → judge → scores of three questions
    "a": {"total": {"j1": (1, 1, 0), "j2": (1, 0, 0)}, "faith": {"j1": (1, 1, 1)}},
    "b": {"total": {"j1": (0, 0, 0), "j2": (0, 0, 0)}, "faith": {"j1": (1, 0, 1)}},
    "c": {"faith": {"j1": (1, 1, 1)}},
}


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    store = Lab().run("stack").write(tmp_path / "store")
    rows = [
        {"run_id": "stack", "query_id": f"q{place}", "reader": reader, "mode": "top_k", "k": 5, "pass": 1}
        | {"scorer": criterion, "judge": judge, "value": float(value), "scale": "0-1"}
        for reader, own in VALUES.items()
        for criterion, judges in own.items()
        for judge, scores in judges.items()
        for place, value in enumerate(scores)
    ]
    with store.write("scores") as writer:
        writer.add(Batch(frames={"answer_scores": frame("answer_scores", rows)}))
    return store.read()


def test_a_row_per_generator(snapshot: Snapshot):
    known = criteria(snapshot, LABEL)
    assert known == {"faith": ("j1",), "total": ("j1", "j2")}
    rows = cells(snapshot, LABEL, usual(known))
    found = generator_table(rows, differences(snapshot, LABEL, rows, "b"))
    assert found["label"].to_list() == ["a", "b", "c"]
    assert found[mean_of("total")].to_list() == pytest.approx([50, 0, None])
    assert found["total"].to_list() == pytest.approx([150, 200 / 3, None])
    assert found["difference"].to_list() == pytest.approx([250 / 3, 0, None])
    first = found.row(0, named=True)
    assert first["difference_low"] <= first["difference"] <= first["difference_high"]
    assert first["n"] == 3
    assert first["total, j1"].startswith("66.7 [")
    said, gap = generators_answer(found, usual(known), "b")
    assert said.startswith("a is best over 2 criteria: 150.0 points (")
    assert gap.startswith("+83.3 against b (")


def test_gold_passages_compete_with_nothing(tmp_path: Path):
    store = Lab().run("stack").write(tmp_path / "store")
    rows = [
        {"run_id": "stack", "query_id": f"q{place}", "reader": reader, "mode": mode, "k": 5, "pass": 1}
        | {"scorer": "total", "judge": "j1", "value": float(value), "scale": "0-1"}
        for reader, mode, value, many in [("a", "top_k", 0.5, 3), ("b", "gold", 1, 3), ("b", "top_k", 0, 2)]
        for place in range(many)
    ]
    with store.write("scores") as writer:
        writer.add(Batch(frames={"answer_scores": frame("answer_scores", rows)}))
    read = store.read()
    found = cells(read, LABEL, ["total"])
    baseline = found["label"][0]
    table = generator_table(found, differences(read, LABEL, found, baseline))
    assert (baseline, table["mode"].to_list()) == ("a · top k", ["top_k", "top_k", "gold"])
    said, _ = generators_answer(table, ["total"], baseline)
    assert said.startswith("a · top k is best")
    assert "n differs, 2 to 3" in said


def test_totals_and_differences_are_of_the_questions_that_every_judge_scored(tmp_path: Path):
    store = Lab().run("stack").write(tmp_path / "store")
    given = {  # by judge and question: the scores of every pass; j2 judged one question of two
        "a": {("j1", "q1"): (1.0, 1.0), ("j1", "q2"): (0.0,), ("j2", "q1"): (0.5,)},
        "b": {("j1", "q1"): (0.0, 0.0), ("j1", "q2"): (1.0,), ("j2", "q1"): (0.5,)},
    }
    rows = [
        {"run_id": "stack", "query_id": query, "reader": reader, "mode": "top_k", "k": 5, "pass": turn}
        | {"scorer": "total", "judge": judge, "value": value, "scale": "0-1"}
        for reader, own in given.items()
        for (judge, query), values in own.items()
        for turn, value in enumerate(values, 1)
    ]
    with store.write("scores") as writer:
        writer.add(Batch(frames={"answer_scores": frame("answer_scores", rows)}))
    read = store.read()
    found = cells(read, LABEL, ["total"])
    table = generator_table(found, differences(read, LABEL, found, "b")).sort("label")
    assert table["total"].to_list() == pytest.approx([75, 25])
    assert table["difference"].to_list() == pytest.approx([50, 0])
    assert table["difference_n"].to_list() == table["n"].to_list() == [1, 1]
    assert found.filter(label="a", judge="j1")["value"].to_list() == pytest.approx([50])


@pytest.mark.slow
def test_published_totals_of_the_thesis(tmp_path: Path):
    """Table 7.8: GPT-5 Mini with P1 has the highest total; Table 7.9: O4 Mini with P2 is +33.34."""
    store = Store.open(tmp_path / "store")
    with store.write("published") as writer:
        writer.add(published_readers())
    readers_snapshot, scope = store.read(), Scope("thesis-generators")
    rows = cells(readers_snapshot, scope, usual(criteria(readers_snapshot, scope)))
    baseline, *others = baselines(readers_snapshot, scope, rows)
    assert baseline == "GPT-4 Omni · P1 · T = 0.2"
    assert baseline not in others
    found = generator_table(rows, differences(readers_snapshot, scope, rows, baseline))
    assert found.filter(label=baseline)["total"].item() == pytest.approx(370.52, abs=0.02)
    best = found.row(0, named=True)
    assert (best["reader"], best["prompt"], best["temperature"], best["n"]) == ("GPT-5 Mini", "P1", 0.2, 39)
    assert best["total"] == pytest.approx(406.43, abs=0.02)
    mini = found.row(by_predicate=pl.col("label") == "O4 Mini · P2 · T = 0.2", named=True)
    assert mini["difference"] == pytest.approx(33.34, abs=0.02)
    assert (mini["difference_low"], found.height) == (None, 63)


def test_grades_of_people_are_a_criterion_of_their_own(tmp_path: Path):
    store = Lab().run("stack").write(tmp_path / "store")
    key = {"run_id": "stack", "reader": "a", "mode": "top_k", "k": 5, "pass": 1, "scale": "0-1"}
    said = {
        "j1": ("correct", None, (1, 1, 1)),
        "Ann": ("correct", BY_PEOPLE, (0,)),
        "Bo": ("tone", BY_PEOPLE, (1,)),
    }
    rows = [
        key
        | {"query_id": f"q{at}", "scorer": scorer, "judge": judge, "source": source, "value": float(value)}
        for judge, (scorer, source, values) in said.items()
        for at, value in enumerate(values)
    ]
    with store.write("scores") as writer:
        writer.add(Batch(frames={"answer_scores": frame("answer_scores", rows)}))
    snapshot = store.read()
    known = criteria(snapshot, LABEL)
    assert known == {"correct": ("j1",), "correct, by people": ("Ann",), "tone": ("Bo",)}
    assert usual(known) == ["correct", "tone"]
    table = generator_table(cells(snapshot, LABEL, tuple(known)))
    assert table.select(mean_of("correct"), mean_of("correct, by people")).row(0) == (100.0, 0.0)
