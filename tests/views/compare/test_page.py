"""The compare page's numbers: against cases by hand, the queries page and scipy."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import permutation_test

from core.decide.rules import Constraints, decide
from core.errors import InputError
from core.stats.significance import Setup
from core.store import Snapshot
from core.views.compare import change_effect, changes
from core.views.compare import page as compare
from core.views.compare import pair as compare_pair
from core.views.compare.charts import LABELLED, forest, overlaps, scatter
from core.views.queries.page import query_table
from core.views.workspace.scope import Quality, Scope
from core.views.workspace.scores import evidence
from tests.stores import HOSTILE, Lab
from tests.views.made import LAB, stacks, table

AT_2 = Quality("RA-nWG", 2)
QUICK = Setup(resamples=200, permutations=199)
GRADES = {f"q{n}": {"a": 5, "b": 4, "c": 1} for n in range(1, 7)} | {"q7": {"a": 1, "b": 2}}
SPEC = {"mode": "dense", "embedder": "e", "dim": 8, "index": "flat", "candidates": 10}
BEST, SWAPPED, NONE = "ab", "cab", "c"


def lab() -> Lab:
    """Three stacks on seven queries: q1..q6 can be scored, q7 has nothing that counts."""
    made = Lab().judge(GRADES)
    made.ask({f"q{n}": f"question {n}" for n in range(1, 4)}, tags=["type=narrow", "language=en"])
    made.ask({f"q{n}": f"question {n}" for n in range(4, 7)}, tags=["type=broad", "language=en"])
    made.ask({"q7": HOSTILE[0]}, tags=["type=narrow", "language=en", "rare=yes"])
    ids = [f"q{n}" for n in range(1, 8)]
    return (
        made.run("good", final=dict.fromkeys(ids, BEST), spec=SPEC | {"name": "x"})
        .run("fair", final=dict.fromkeys(ids[:3], BEST) | dict.fromkeys(ids[3:], SWAPPED))
        .run("poor", final=dict.fromkeys(ids[1:], NONE), spec=SPEC | {"name": "x", "index": "int8"})
        .run("averages", figures=[{"measure": "RA-nWG", "k": 2, "value": 0.5, "n": 6}])
    )


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    return lab().write(tmp_path / "store").read()


def scored(snapshot: Snapshot, *runs: str, quality: Quality = AT_2) -> compare.Scored:
    found = evidence(snapshot, runs, "gold")
    return compare.scored(found, {run: run.upper() for run in runs}, quality)


def closer(snapshot: Snapshot, first: str, second: str, setup: Setup = QUICK) -> compare_pair.Closer:
    runs = table(snapshot, LAB, AT_2)
    return compare_pair.look_closer(snapshot, LAB, AT_2, runs, pair=(first, second), setup=setup)


@pytest.mark.parametrize(
    ("stacks", "against", "pairs"),
    [
        (2, "the first", [(0, 1)]),
        (2, "every pair", [(0, 1)]),
        (4, "the first", [(0, 1), (0, 2), (0, 3)]),
        (3, "every pair", [(0, 1), (0, 2), (1, 2)]),
    ],
)
def test_which_pairs_are_compared(stacks: int, against: compare.Against, pairs: list[tuple[int, int]]):
    first, second = compare.pairs_of(["x"] * stacks, against)
    assert list(zip(first, second, strict=True)) == pairs


def test_differences_of_three_stacks(snapshot: Snapshot):
    found = scored(snapshot, "good", "fair", "poor")
    assert found.query_ids == tuple(f"q{n}" for n in range(1, 8))
    rows = compare.differences(found, *compare.pairs_of(found.names, "the first"), QUICK)
    assert rows.select("first", "second").rows() == [("GOOD", "FAIR"), ("GOOD", "POOR")]
    assert rows["n"].to_list() == [6, 6]  # q7 has no weight to earn
    # w4 = 0.5·1/1; the fair stack finds 1 of 1.5 on three queries
    assert rows["difference"].to_list() == pytest.approx([0.5 * (1 / 1.5 - 1), -1.0])
    # All six queries lost is p = 2/2^6, twice that in a family of two.
    assert rows["p_holm"].to_list() == [0.25, 2 * 2 / 64]
    assert rows["verdict"].to_list() == [compare.OPEN, compare.OPEN]
    alone = compare.differences(found, [0], [2], QUICK)
    assert alone["verdict"].to_list() == [compare.LOSSES]
    for row, name in zip(rows.iter_rows(named=True), ("fair", "poor"), strict=True):
        values = scored(snapshot, "good", name).values[:, :6]
        theirs = permutation_test(
            (values[1] - values[0],), np.mean, permutation_type="samples", vectorized=True, n_resamples=np.inf
        )
        assert row["p"] == pytest.approx(theirs.pvalue)


def test_agrees_with_the_queries_page(snapshot: Snapshot):
    rows = compare.differences(scored(snapshot, "good", "poor"), [0], [1], Setup())
    listed = query_table(snapshot, LAB, AT_2, "poor", "good")
    assert listed["delta"].drop_nulls().to_numpy().mean() == pytest.approx(rows["difference"][0])
    assert rows["wins"][0] == (listed["delta"].drop_nulls() > 0).sum()


def test_two_stacks_in_words(snapshot: Snapshot):
    rows = compare.differences(scored(snapshot, "good", "poor"), [0], [1], QUICK)
    said = compare.answer(rows, AT_2, QUICK)
    assert said.sentence == ("POOR is worse than GOOD by 1.000 [1.000, 1.000] RA-nWG@2, p = 0.031, n = 6.")
    assert "paired randomisation test (exact)" in said.details
    assert "Holm" not in said.details
    rows = compare.differences(scored(snapshot, "good", "fair"), [0], [1], QUICK)
    said = compare.answer(rows, AT_2, QUICK)
    assert said.sentence.startswith("FAIR and GOOD are not told apart: difference −0.167 [−0.278, ")
    assert said.sentence.endswith("] RA-nWG@2, p = 0.250, n = 6.")
    assert re.search(
        r"With 80 % power these queries show true differences from about 0\.\d{3} up", said.details
    )


def test_several_comparisons_in_words(snapshot: Snapshot):
    found = scored(snapshot, "good", "fair", "poor")
    rows = compare.differences(found, *compare.pairs_of(found.names, "every pair"), QUICK)
    said = compare.answer(rows, AT_2, QUICK)
    assert said.sentence.startswith("None of 3 comparisons shows a real difference in RA-nWG@2 (n = 6)")
    assert "Holm-adjusted over these 3, intervals are not" in said.details
    rows = compare.differences(found, *compare.pairs_of(found.names, "the first"), QUICK)
    wide = rows.with_columns(p_holm=pl.Series([0.2, 0.01]), n=pl.Series([5, 6]))
    said = compare.answer(compare.with_verdict(wide), AT_2, QUICK)
    assert said.sentence.startswith(
        "1 of 2 comparisons shows a real difference in RA-nWG@2 (n = 5 to 6): POOR "
    )


def test_a_measure_that_applies_nowhere(tmp_path: Path):
    made = Lab().judge({"q1": {"a": 1}}).run("one", final={"q1": "a"}).run("other", final={"q1": "b"})
    snapshot = made.write(tmp_path / "store").read()
    rows = compare.differences(scored(snapshot, "one", "other"), [0], [1], QUICK)
    assert rows["n"][0] == 0
    assert compare.answer(rows, AT_2, QUICK).sentence == "RA-nWG@2 applies to no query of these stacks."
    looked = closer(snapshot, "one", "other")
    assert looked.queries["outcome"].is_null().all()
    assert looked.tags.is_empty()
    said = compare_pair.summary(looked.queries, rows.row(0, named=True), AT_2, 0.01)
    assert said == "RA-nWG@2 applies to no query of both stacks."
    assert forest(rows, ["x"], "difference").data[0].type == "bar"
    assert len(scatter(looked.queries, ("one", "other"), AT_2, 0.01).data) == 0


@pytest.mark.parametrize(
    ("p", "said"), [(None, "no test"), (0.0004, "p < 0.001"), (0.041, "p = 0.041"), (1.0, "p = 1.000")]
)
def test_p_values(p: float | None, said: str):
    assert compare.p_value(p) == said


def test_the_queries_that_flip_come_first(snapshot: Snapshot):
    looked = closer(snapshot, "good", "poor")
    rows = looked.queries
    assert rows["outcome"].to_list() == ["worse"] * 6 + [None]
    assert rows["query_id"].to_list() == [f"q{n}" for n in range(1, 8)]
    fair = closer(snapshot, "good", "fair").queries
    assert fair["outcome"].to_list() == ["worse"] * 3 + ["tie"] * 3 + [None]
    assert fair["query_id"].to_list() == ["q4", "q5", "q6", "q1", "q2", "q3", "q7"]
    loose = closer(snapshot, "good", "fair", Setup(tolerance=0.5, resamples=10)).queries
    assert loose["outcome"].to_list() == ["tie"] * 6 + [None]


def test_a_pair_in_words(snapshot: Snapshot):
    looked = closer(snapshot, "good", "fair")
    row = compare.differences(scored(snapshot, "good", "fair"), [0], [1], QUICK).row(0, named=True)
    assert compare_pair.summary(looked.queries, row, AT_2, 0.01) == (
        "Of 6 queries FAIR wins 0, ties 3 (up to 0.01) and loses 3; on a query drawn at random it is better "
        "with probability 0.25, ties counting half; the largest loss is q4 “question 4” (−0.333)."
    )


def test_tags_are_compared_by_themselves(snapshot: Snapshot):
    tags = closer(snapshot, "good", "fair").tags
    # language=en is on every query, rare=yes on one that has no score
    assert tags["tag"].to_list() == ["type=broad", "type=narrow"]
    assert tags["n"].to_list() == [3, 3]
    assert tags["difference"].to_list() == pytest.approx([-1 / 3, 0.0])
    assert tags["p"].to_list() == [0.25, 1.0]
    assert tags["p_holm"].to_list() == [0.5, 1.0]
    assert tags["losses"].to_list() == [3, 0]


def test_agreement_of_the_rankings(snapshot: Snapshot):
    looked = closer(snapshot, "good", "fair")
    by_id = dict(looked.queries.select("query_id", "overlap").iter_rows())
    assert by_id["q1"] == 1.0
    assert by_id["q4"] == 0.5  # at 2: a, b against c, a
    assert compare_pair.alike_means(looked.alike) == (pytest.approx((3 * 1 + 4 * 0.5) / 7), 1.0)
    assert compare_pair.rankings_summary(looked, 2).startswith(
        "On average the two Top-2 share 71.4 % of their passages (overlap@2). Kendall's tau-b of the order "
        "of those: 1.00"
    )
    poor = closer(snapshot, "good", "poor")
    assert compare_pair.rankings_summary(poor, 2).endswith(
        "no query has two shared passages whose order could be compared."
    )


def test_differently_cut_passages_are_not_counted_as_shared(snapshot: Snapshot):
    runs = table(snapshot, LAB, AT_2).with_columns(
        chunking=pl.when(pl.col("run_id") == "fair").then(pl.lit("sentence-200"))
    )
    looked = compare_pair.look_closer(snapshot, LAB, AT_2, runs, pair=("good", "fair"), setup=QUICK)
    assert looked.alike is None
    assert looked.queries["overlap"].is_null().all()
    assert compare_pair.rankings_summary(looked, 2).startswith("The two searched differently cut passages")
    assert compare_pair.alike_means(None) == (None, None)


def test_where_a_difference_comes_from(tmp_path: Path):
    """Same pool, other order: only the share that is brought up changes."""
    ids = [f"q{n}" for n in range(1, 7)]
    made = Lab().judge(GRADES)
    pool = dict.fromkeys(ids, "cab")
    made.run("sorted", final=dict.fromkeys(ids, "abc"), candidates=pool, pool="p@3")
    made.run("raw", final=pool, candidates=pool, pool="p@3")
    made.run("deep", final=dict.fromkeys(ids, "c"), pool="p@9")
    snapshot = made.write(tmp_path / "store").read()
    looked = closer(snapshot, "raw", "sorted")
    assert looked.sources["measure"].to_list() == ["RA-nWG@2", "PROC[RA-nWG]@2", "%PROC[RA-nWG]@2"]
    assert looked.sources["difference"].to_list() == pytest.approx([1 / 3, 0.0, 1 / 3])
    assert looked.pools == ()
    assert closer(snapshot, "raw", "deep").pools == ("p@3", "p@9")
    plain = compare_pair.sources(snapshot, LAB, Quality("Harm", 2), ("raw", "sorted"), QUICK)
    assert plain.is_empty()


def test_what_a_change_does(snapshot: Snapshot):
    runs = table(snapshot, LAB, AT_2).with_columns(name="run_id")
    pairs = changes.of_kind(changes.changes(runs.filter("has_rankings")), "index: flat → int8")
    assert pairs.select("run_before", "run_after").rows() == [("good", "poor")]
    found = scored(snapshot, "poor", "good")
    rows, whole = change_effect.effects(found, pairs, QUICK), change_effect.pooled(found, pairs, QUICK)
    assert rows["difference"].to_list() == whole["difference"].to_list() == pytest.approx([-1.0])
    assert change_effect.answer("index: flat → int8", rows, whole, AT_2) == (
        "index: flat → int8 moves RA-nWG@2 by −1.000 [−1.000, −1.000] on average over 1 pair of stacks, "
        "p = 0.031, n = 6."
    )


def test_a_change_on_average_over_its_pairs():
    values = np.array([[0.2, 0.4, np.nan], [0.3, 0.8, 0.5], [0.0, 0.2, 0.1], [0.3, 0.0, 0.2]])
    found = compare.Scored(tuple("abcd"), tuple("abcd"), ("q1", "q2", "q3"), values)
    pairs = pl.DataFrame(
        {"before": ["a", "c"], "after": ["b", "d"], "run_before": ["a", "c"], "run_after": ["b", "d"]}
    )
    whole = change_effect.pooled(found, pairs, QUICK)
    assert whole["n"].to_list() == [2]  # q3 has no value in a
    assert whole["difference"].to_list() == pytest.approx([((0.1 + 0.3) / 2 + (0.4 - 0.2) / 2) / 2])
    rows = change_effect.effects(found, pairs, QUICK)
    assert rows["n"].to_list() == [2, 3]
    said = change_effect.answer("x: off → on", rows, whole, AT_2)
    assert "on average over 2 pairs of stacks" in said
    assert said.endswith("Pair by pair: 0 better, 0 worse, 2 not told apart (Holm over 2).")


@pytest.mark.parametrize(
    ("change", "scope", "quality", "said"),
    [
        ({"has_rankings": [False, False]}, LAB, AT_2, "came without per-query data"),
        ({"has_rankings": [True, False]}, LAB, AT_2, "Only stack 0 has per-query data"),
        ({}, Scope("lab"), AT_2, "no golden set"),
        ({}, LAB, Quality("house-score", 2), "house-score is known from aggregates only"),
        ({"collection_id": ["lab", "other"]}, LAB, AT_2, "searched different collections"),
    ],
)
def test_why_nothing_can_be_compared(
    change: dict[str, list[object]], scope: Scope, quality: Quality, said: str
):
    made = {"has_rankings": [True, True], "collection_id": ["lab", "lab"], **change}
    rows = stacks(2).with_columns(pl.Series(name, values) for name, values in made.items())
    sentence, todo = compare.nothing(rows, scope, quality) or ("", "")
    assert said in sentence
    assert todo


def test_two_stacks_with_queries_can_be_compared(snapshot: Snapshot):
    assert compare.nothing(table(snapshot, LAB, AT_2), LAB, AT_2) is None
    with pytest.raises(InputError, match="aggregates only"):
        scored(snapshot, "good", quality=Quality("house-score", 2))


def test_the_usual_two(snapshot: Snapshot):
    rows = table(snapshot, LAB, AT_2)
    assert compare.usual(rows, decide(rows, Constraints())) == ["good", "fair"]
    nobody = decide(rows, Constraints(floor=1.5))
    assert compare.usual(rows, nobody) == ["good", "fair"]


def test_a_forest_is_labelled_while_there_is_room(snapshot: Snapshot):
    found = scored(snapshot, "good", "fair", "poor")
    rows = compare.differences(found, *compare.pairs_of(found.names, "the first"), QUICK)
    rows = compare.with_verdict(rows.with_columns(p_holm=pl.Series([0.2, 0.01])))
    labels = [HOSTILE[0], "plain"]
    fig = forest(rows, labels, "difference")
    assert [each.text for each in fig.layout.annotations] == [
        "&lt;b&gt;bold&lt;/b&gt;&lt;img src=x onerror=alert(1)&gt;",
        "plain",
    ]
    marks = {trace.name: trace for trace in fig.data if trace.name}
    assert set(marks) == {"too small to show", compare.OPEN, compare.LOSSES}
    assert marks[compare.OPEN].customdata.ravel().tolist() == [0]
    assert marks[compare.LOSSES].customdata.ravel().tolist() == [1]
    assert marks[compare.OPEN].marker.symbol != marks[compare.LOSSES].marker.symbol
    many = pl.concat([rows] * LABELLED)
    assert len(forest(many, labels * LABELLED, "difference").layout.annotations) == 0


def test_queries_with_the_same_scores_share_a_mark(snapshot: Snapshot):
    rows = closer(snapshot, "good", "fair").queries
    fig = scatter(rows, ("good", "fair"), AT_2, 0.01)
    marks = {trace.name: trace for trace in fig.data}
    assert set(marks) == {"tie (3)", "worse (3)"}
    tie = marks["tie (3)"]
    assert (tie.x.tolist(), tie.y.tolist()) == ([1.0], [1.0])
    assert rows["query_id"][int(tie.customdata[0, 0])] == "q1"
    assert tie.hovertext[0].count("question") == 3
    spots = {trace.name: trace for trace in overlaps(rows, AT_2).data}
    assert rows["query_id"][int(spots["worse (3)"].customdata[0, 0])] == "q4"
    assert spots["worse (3)"].x.tolist() == [0.5] * 3
