"""The compare page's numbers: against cases by hand, the queries page and scipy."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import permutation_test

from core.analysis import paired as compare
from core.analysis import sides as compare_pair
from core.analysis.per_query import query_table
from core.analysis.sides import SAME, sides
from core.analysis.workspace.scope import Latency, Quality, Scope
from core.decide.axes import LATENCY, Axis, cost_axis
from core.number_format import CostUnit
from core.stats.significance import Setup
from core.store import Snapshot
from core.views.compare import words
from core.views.compare.charts import forest, scatter
from tests.stores import HOSTILE, Lab
from tests.views.made import LAB, table

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
        .run("twin", final=dict.fromkeys(ids, BEST), label="z")
        .run("averages", figures=[{"measure": "RA-nWG", "k": 2, "value": 0.5, "n": 6}])
    )


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return lab().write(tmp_path_factory.mktemp("snapshot") / "store").read()


def scored(snapshot: Snapshot, *runs: str, quality: Quality = AT_2) -> compare.Scored:
    return compare.scored(snapshot, LAB, quality, {run: run.upper() for run in runs})


def closer(snapshot: Snapshot, first: str, second: str, setup: Setup = QUICK) -> compare_pair.Closer:
    runs = table(snapshot, LAB, AT_2)
    return compare_pair.look_closer(snapshot, LAB, AT_2, runs, pair=(first, second), setup=setup)


@pytest.mark.parametrize(
    ("stacks", "against", "pairs"),
    [
        (2, "the first", [(1, 0)]),
        (2, "every pair", [(1, 0)]),
        (4, "the first", [(1, 0), (2, 0), (3, 0)]),
        (3, "every pair", [(1, 0), (2, 0), (2, 1)]),
    ],
)
def test_which_pairs_are_compared(stacks: int, against: compare.Against, pairs: list[tuple[int, int]]):
    first, second = compare.pairs_of(["x"] * stacks, against)
    assert list(zip(first, second, strict=True)) == pairs


def test_differences_of_three_stacks(snapshot: Snapshot):
    found = scored(snapshot, "good", "fair", "poor")
    assert found.query_ids == tuple(f"q{n}" for n in range(1, 8))
    rows = compare.differences(found, *compare.pairs_of(found.names, "the first"), QUICK)
    assert rows.select("first", "second").rows() == [("FAIR", "GOOD"), ("POOR", "GOOD")]
    assert rows["n"].to_list() == [6, 6]  # q7 has no weight to earn
    # w4 = 0.5·1/1; the fair stack finds 1 of 1.5 on three queries
    assert rows["difference"].to_list() == pytest.approx([0.5 * (1 - 1 / 1.5), 1.0])
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


def gaps(snapshot: Snapshot, *names: str, quality: Quality = AT_2, setup: Setup = QUICK) -> pl.DataFrame:
    """What the top of the page says of stacks that all have rankings."""
    runs = table(snapshot, LAB, quality).with_columns(name=pl.col("run_id").str.to_uppercase())
    rows = compare.compared(snapshot, LAB, quality, runs, names, against="the first", setup=setup)
    return sides(snapshot, runs, names, rows, latency=Latency(), jitter=0.0)


@pytest.mark.slow
def test_two_stacks_in_words(snapshot: Snapshot):
    found = gaps(snapshot, "GOOD", "POOR")
    said = words.answer(found, AT_2)
    assert said == "GOOD is better than POOR by 1.000 RA-nWG@2 (n = 6)."
    assert words.answer(gaps(snapshot, "POOR", "GOOD"), AT_2).startswith("POOR is worse than GOOD by 1.000")
    said = words.answer(gaps(snapshot, "GOOD", "FAIR"), AT_2)
    assert said.startswith("GOOD shows no significant difference from FAIR: +0.167 [−0.0")
    assert said.endswith("] RA-nWG@2 (n = 6).")
    assert "same order" in words.answer(found, AT_2, same=True)


def test_how_it_was_compared_is_said(snapshot: Snapshot):
    rows = compare.differences(scored(snapshot, "good", "fair"), [1], [0], QUICK)
    how = words.how(rows, QUICK)
    assert "paired randomisation test (exact)" in how
    assert "Holm" not in how
    assert re.search(r"With 80 % power these queries show true differences from about 0\.\d{3} up", how)
    found = scored(snapshot, "good", "fair", "poor")
    rows = compare.differences(found, *compare.pairs_of(found.names, "every pair"), QUICK)
    assert "Holm-adjusted over these 3, intervals are not" in words.how(rows, QUICK)


def test_several_comparisons_in_words(snapshot: Snapshot):
    said = words.answer(gaps(snapshot, "GOOD", "FAIR", "POOR"), AT_2)
    assert "GOOD shows no significant difference from FAIR" in said
    assert "shows no significant difference from POOR" in said, "of a family of two"
    assert said.endswith("(n = 6).")


def row_of(frame: pl.DataFrame, axis: str) -> dict[str, object]:
    return frame.row(by_predicate=pl.col("axis") == axis, named=True)


def test_the_three_axes_of_two_stacks(snapshot: Snapshot):
    found = gaps(snapshot, "GOOD", "POOR")
    assert found["axis"].to_list() == ["quality", "latency", "cost"]
    quality = row_of(found, "quality")
    assert (quality["difference"], quality["n"], quality["verdict"]) == (pytest.approx(1.0), 6, compare.WINS)
    assert row_of(found, "latency")["note"].startswith("not reported")
    assert row_of(found, "latency")["verdict"] is None


def timed(path: Path, slower: list[float], **environment: str) -> Snapshot:
    ids = [f"q{n}" for n in range(1, 11)]
    made = Lab().judge({name: {"a": 5} for name in ids})
    made.run("one", final=dict.fromkeys(ids, "a"), ms={"sparse": [10.0] * 10})
    made.run("two", final=dict.fromkeys(ids, "a"), ms={"sparse": slower}, environment=environment)
    return made.write(path).read()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("slower", "jitter", "verdict", "said"),
    [
        ([30.0] * 10, 1.0, compare.WINS, ", 20.0 ms faster"),
        ([10.5] * 10, 1.0, SAME, ", as fast"),
        ([5.0, 30.0] * 5, 1.0, compare.OPEN, ", as fast"),
        ([5.0] * 10, 1.0, compare.LOSSES, ", 5.00 ms slower"),
    ],
)
def test_latencies_are_paired(tmp_path: Path, slower: list[float], jitter: float, verdict: str, said: str):
    snapshot = timed(tmp_path / "store", slower)
    runs = table(snapshot, LAB, AT_2).with_columns(name="run_id")
    found = sides(snapshot, runs, ["one", "two"], None, latency=Latency(), jitter=jitter)
    row = row_of(found, "latency")
    assert (row["verdict"], row["n"]) == (verdict, 10)
    assert row["low"] <= row["difference"] <= row["high"]
    assert row["difference"] == pytest.approx(10.0 - np.median(slower))
    assert said in words.answer(found, AT_2)


def test_latencies_of_two_machines_are_not_compared(tmp_path: Path):
    snapshot = timed(tmp_path / "store", [30.0] * 10, cpu="another")
    runs = table(snapshot, LAB, AT_2).with_columns(name="run_id")
    found = sides(snapshot, runs, ["one", "two"], None, latency=Latency(), jitter=1.0)
    row = row_of(found, "latency")
    assert (row["verdict"], row["low"], row["note"]) == (None, None, "timed on different machines")
    assert "faster" not in words.answer(found, AT_2)


def reported(quality: float | None, ms: float | None, usd: float | None) -> list[dict[str, object]]:
    figures = [
        {"measure": "RA-nWG", "k": 2, "value": quality, "n": 50},
        {"measure": "latency_p50", "stage": "total", "value": ms, "n": 15},
        {"measure": "usd_per_1k", "stage": "total", "value": usd},
    ]
    return [figure for figure in figures if figure["value"] is not None]


@pytest.mark.parametrize(
    ("one", "two", "differences", "verdicts", "said"),
    [
        (
            (0.8, 500.0, 1.25), (0.75, 380.0, 1.25), [0.05, 120.0, 0.0], [None, compare.LOSSES, SAME],
            "A averages 0.050 more RA-nWG@2 than B (no interval: averages only), 120 ms slower, "
            "same cost.",
        ),
        (
            (0.8, 500.0, 1.25), (0.75, 380.0, 1.26), [0.05, 120.0, -0.01], [None, compare.LOSSES, SAME],
            "A averages 0.050 more RA-nWG@2 than B (no interval: averages only), 120 ms slower, "
            "same cost.",
        ),
        (
            (0.8, 500.0, 1.25), (0.8, 510.0, 2.5), [0.0, -10.0, -1.25], [None, SAME, compare.WINS],
            "A scores the same RA-nWG@2 as B (no interval: averages only), as fast, $1.25 / 1k "
            "cheaper.",
        ),
        (
            (0.8, None, 1.25), (None, 380.0, None), [None, None, None], [None, None, None],
            "A cannot be told from B: RA-nWG@2 is not known of both (no interval: averages only).",
        ),
    ],
)  # fmt: skip
def test_averages_are_compared(tmp_path: Path, one, two, differences, verdicts, said):  # noqa: PLR0917
    made = Lab().run("A", figures=reported(*one)).run("B", figures=reported(*two))
    snapshot = made.write(tmp_path / "store").read()
    scope = Scope("lab")
    found = sides(
        snapshot, table(snapshot, scope, AT_2), ["A", "B"], None, latency=Latency(), jitter=75.0
    )  # fmt: skip
    assert found["difference"].to_list() == [
        None if each is None else pytest.approx(each) for each in differences
    ]
    assert found["low"].null_count() == 3
    assert found["verdict"].to_list() == verdicts
    assert (found["note"].is_not_null() | (found["axis"] == "cost")).all()
    assert words.answer(found, AT_2) == said


@pytest.mark.slow
def test_a_measure_that_applies_nowhere(tmp_path: Path):
    made = Lab().judge({"q1": {"a": 1}}).run("one", final={"q1": "a"}).run("other", final={"q1": "b"})
    snapshot = made.write(tmp_path / "store").read()
    rows = compare.differences(scored(snapshot, "one", "other"), [0], [1], QUICK)
    assert rows["n"][0] == 0
    said = words.answer(gaps(snapshot, "ONE", "OTHER"), AT_2)
    assert said == "ONE cannot be told from OTHER: RA-nWG@2 applies to no query of both (n = 0)."
    looked = closer(snapshot, "one", "other")
    assert looked.queries["outcome"].is_null().all()
    assert looked.tags.is_empty()
    assert forest(rows, ["x"], "difference").data[0].type == "bar"
    assert len(scatter(looked.queries, {"one": "blue", "other": "red"}, AT_2, 0.01, ("A", "B")).data) == 0


@pytest.mark.parametrize(
    ("p", "said"), [(None, "no test"), (0.0004, "p < 0.001"), (0.041, "p = 0.041"), (1.0, "p = 1.000")]
)
def test_p_values(p: float | None, said: str):
    assert words.p_value(p) == said


@pytest.mark.slow
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
    assert row["superiority"] == 0.25
    assert words.summary(looked.queries, row, 0.01) == (
        "Of 6 queries FAIR wins 0, ties 3 (up to 0.01) and loses 3; the largest loss is q4 “question 4” "
        "(−0.333)."
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


@pytest.mark.slow
def test_agreement_of_the_rankings(snapshot: Snapshot):
    looked = closer(snapshot, "good", "fair")
    by_id = dict(looked.queries.select("query_id", "overlap").iter_rows())
    assert by_id["q1"] == 1.0
    assert by_id["q4"] == 0.5  # at 2: a, b against c, a
    assert compare.alike_means(looked.alike) == (pytest.approx((3 * 1 + 4 * 0.5) / 7), 1.0)
    assert words.rankings(looked, 2).startswith(
        "On average the two Top-2 share 71.4 % of their passages (overlap@2). Kendall's tau-b of the order "
        "of those: 1.00"
    )
    assert not looked.same
    assert closer(snapshot, "good", "twin").same
    poor = closer(snapshot, "good", "poor")
    assert words.rankings(poor, 2).endswith("no query has two shared passages whose order could be compared.")


def test_differently_cut_passages_are_not_counted_as_shared(snapshot: Snapshot):
    runs = table(snapshot, LAB, AT_2).with_columns(
        chunking=pl.when(pl.col("run_id") == "fair").then(pl.lit("sentence-200"))
    )
    looked = compare_pair.look_closer(snapshot, LAB, AT_2, runs, pair=("good", "fair"), setup=QUICK)
    assert looked.alike is None
    assert looked.queries["overlap"].is_null().all()
    assert words.rankings(looked, 2).startswith("The two searched differently cut passages")
    assert compare.alike_means(None) == (None, None)


@pytest.mark.slow
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


def test_numbers_of_several_axes_are_written_in_their_units():
    row = {"value": 3.88e-6, "value_against": None, "difference": -1.2e-7, "low": None, "high": None}
    millions = cost_axis(CostUnit(million=True), per_correct=False)
    assert words.in_units({"axis": "cost", **row}, millions) == {
        "value": "$0.0039 / 1M", "value_against": "unknown", "difference": "−$0.0001 / 1M"
    }  # fmt: skip
    row = {"value": 0.5246, "value_against": 0.5259, "difference": -0.0013, "low": -0.007, "high": 0.003}
    assert list(words.in_units({"axis": "quality", **row}).values()) == [
        "0.525", "0.526", "−0.001", "−0.007", "+0.003"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("axis", "value", "other", "said"),
    [
        (LATENCY, 3.7449, 3.7438, "0.00 ms"),
        (LATENCY, 275.7, 3.75, "+272 ms"),
        (LATENCY, 2930.4, 2924.0, "+10.0 ms"),
        (LATENCY, 0.0048, 0.0031, "+0.0017 ms"),
        (cost_axis(CostUnit(million=True), per_correct=False), 5.49e-5, 5.488e-5, "$0.00 / 1M"),
        (cost_axis(CostUnit(), per_correct=False), 2.5, 1.25, "+$1.25 / 1k"),
    ],
)
def test_a_difference_is_written_no_finer_than_its_numbers(axis: Axis, value: float, other: float, said: str):
    row = {"axis": axis.key, "value": value, "value_against": other, "difference": value - other}
    row |= dict.fromkeys(("low", "high", "verdict", "n", "p_adjusted", "note"))
    assert words.apart(row, axis)[0] == said
    assert words.in_units(row, axis)["difference"] == said


@pytest.mark.parametrize(
    ("noise", "verdict", "note"),
    [
        (None, compare.LOSSES, None),
        (0.02, compare.LOSSES, None),
        (0.1, SAME, "less than 10 % apart: within the jitter of timing"),
    ],
)
def test_costs_within_the_noise_of_their_timing_are_the_same(
    tmp_path: Path, noise: float | None, verdict: str, note: str | None
):
    made = Lab().run("A", figures=reported(0.8, 500.0, 1.35)).run("B", figures=reported(0.8, 500.0, 1.25))
    snapshot = made.write(tmp_path / "store").read()
    runs = table(snapshot, Scope("lab"), AT_2).with_columns(cost_noise=pl.lit(noise, pl.Float64))
    found = sides(snapshot, runs, ["A", "B"], None, latency=Latency(), jitter=75.0)
    row = row_of(found, "cost")
    assert (row["verdict"], row["note"]) == (verdict, note)
