"""A change on average over its pairs, what is known from averages alone, and charts of the compare page."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from core.analysis import paired as compare
from core.analysis.sides import unpaired, usual
from core.analysis.workspace.scope import Quality, Scope
from core.decide.axes import COST
from core.decide.rules import Constraints, decide
from core.errors import InputError
from core.store import Snapshot
from core.views.compare import changes, words
from core.views.compare.charts import LABELLED, forest, scatter
from tests.stores import HOSTILE
from tests.views.compare.test_page import AT_2, QUICK, closer, scored, snapshot
from tests.views.made import LAB, stacks, table

__all__ = ["snapshot"]


def test_what_a_change_does(snapshot: Snapshot):
    runs = table(snapshot, LAB, AT_2).with_columns(name="run_id")
    pairs = changes.of_kind(changes.changes(runs.filter("has_rankings")), "index: flat → int8")
    assert pairs.select("run_before", "run_after").rows() == [("good", "poor")]
    found = scored(snapshot, "poor", "good")
    rows, whole = changes.effects(snapshot, LAB, AT_2, pairs, QUICK)
    assert changes.effects_of(found, pairs, QUICK)[1].equals(whole)
    assert rows["difference"].to_list() == whole["difference"].to_list() == pytest.approx([-1.0])
    assert words.change("index: flat → int8", rows, whole, AT_2) == (
        "index: flat → int8 moves RA-nWG@2 by −1.000 on average over 1 pair of stacks, p = 0.031, n = 6."
    )


def test_a_change_on_average_over_its_pairs():
    values = np.array([[0.2, 0.4, np.nan], [0.3, 0.8, 0.5], [0.0, 0.2, 0.1], [0.3, 0.0, 0.2]])
    found = compare.Scored(tuple("abcd"), tuple("abcd"), ("q1", "q2", "q3"), values)
    pairs = pl.DataFrame(
        {"before": ["a", "c"], "after": ["b", "d"], "run_before": ["a", "c"], "run_after": ["b", "d"]}
    )
    rows, whole = changes.effects_of(found, pairs, QUICK)
    assert whole["n"].to_list() == [2]  # q3 has no value in a
    assert whole["difference"].to_list() == pytest.approx([((0.1 + 0.3) / 2 + (0.4 - 0.2) / 2) / 2])
    assert rows["n"].to_list() == [2, 3]
    said = words.change("x: off → on", rows, whole, AT_2)
    assert "on average over 2 pairs of stacks" in said
    assert said.endswith("Pair by pair: 0 better, 0 worse, 2 without a significant difference (Holm over 2).")


@pytest.mark.parametrize(
    ("ranked", "scope", "quality", "said"),
    [
        ([False, False], LAB, AT_2, "only their averages are known"),
        ([True, False], LAB, AT_2, "stack 1 came without per-query data"),
        ([False, True, True], LAB, AT_2, "stack 0 came without per-query data"),
        ([True, True], Scope("lab"), AT_2, "No golden set"),
        ([True, True], LAB, Quality("house-score", 2), "house-score is known from aggregates only"),
        ([True, True], LAB, AT_2, ""),
        ([True, False, True], LAB, AT_2, ""),
    ],
)
def test_why_only_averages_compare(ranked: list[bool], scope: Scope, quality: Quality, said: str):
    rows = stacks(len(ranked)).with_columns(has_rankings=pl.Series(ranked))
    found = unpaired(rows, scope, quality)
    assert said in found
    assert bool(said) == bool(found)


def test_a_measure_known_from_averages_only_is_not_scored(snapshot: Snapshot):
    with pytest.raises(InputError, match="aggregates only"):
        scored(snapshot, "good", quality=Quality("house-score", 2))


def test_the_usual_stacks(snapshot: Snapshot):
    rows = table(snapshot, LAB, AT_2)
    ranked = rows.filter("has_rankings")
    assert usual(ranked, decide(rows, Constraints()))[:2] == ["good", "z"]
    nobody = decide(rows, Constraints(min_quality=1.5))
    assert usual(ranked, nobody)[:2] == ["good", "z"]
    assert usual(rows.filter(pl.col("run_id") != "good"), nobody) == ["z", "fair", "averages", "poor"]


def test_a_forest_is_labelled_while_there_is_room(snapshot: Snapshot):
    found = scored(snapshot, "good", "fair", "poor")
    rows = compare.differences(found, *compare.pairs_of(found.names, "the first"), QUICK)
    rows = compare.with_verdict(rows.with_columns(p_adjusted=pl.Series([0.2, 0.01])))
    labels = [HOSTILE[0], "plain"]
    fig = forest(rows, labels, "difference")
    assert [each.text for each in fig.layout.annotations] == [
        "&lt;b&gt;bold&lt;/b&gt;&lt;img src=x onerror=alert(1)&gt;",
        "plain",
    ]
    marks = {trace.name: trace for trace in fig.data if trace.name}
    assert set(marks) == {"too small to detect", compare.OPEN, compare.WINS}
    assert marks[compare.OPEN].customdata.ravel().tolist() == [0]
    assert marks[compare.WINS].customdata.ravel().tolist() == [1]
    assert marks[compare.OPEN].marker.symbol != marks[compare.WINS].marker.symbol
    short = forest(rows, labels, "difference", short=True).layout
    assert list(short.yaxis.ticktext) == [each.text for each in fig.layout.annotations]
    many = pl.concat([rows] * LABELLED)
    assert len(forest(many, labels * LABELLED, "difference").layout.annotations) == 0


def test_queries_with_the_same_scores_share_a_mark(snapshot: Snapshot):
    rows = closer(snapshot, "good", "fair").queries
    fig = scatter(rows, {"good": "blue", "fair": "red"}, AT_2, 0.01, ("B", "A"))
    marks = {trace.name: trace for trace in fig.data}
    assert set(marks) == {"tie (3)", "B better (3)"}
    lost = marks["B better (3)"]
    assert lost.marker.color == "blue"
    assert rows["query_id"][int(lost.customdata[0, 0])] == "q4"
    tie = marks["tie (3)"]
    assert (tie.x.tolist(), tie.y.tolist()) == ([1.0], [1.0])
    assert rows["query_id"][int(tie.customdata[0, 0])] == "q1"
    assert tie.hovertext[0].count("question") == 3


def test_a_cost_known_in_part_is_a_number_above_what_it_lacks():
    row = {"cost": None, "cost_least": 0.0012, "cost_missing": "reranking not recorded"}
    row |= {"cost_note": "rerank: usage not recorded", "cost_basis": "modelled"}
    assert words.shown(COST, row, "") == (
        f"≥ {COST.written(0.0012)}",
        "modelled · rerank: usage not recorded",
    )
