"""Points, gains and slices of readers, against means taken by hand."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import ttest_1samp

from core.answers import share
from core.readers.curves import CURVE, by_query, depths, gains, points, slices
from core.tables import TABLES


def table(*rows):
    """Rows of answer scores; what is not said is as most often."""
    usual = {"run_id": "r", "mode": "top_k", "pass": 1, "scorer": "f1", "scale": "0-1"}
    return pl.DataFrame([{**usual, **row} for row in rows], schema=TABLES["answer_scores"])


def single(k, *values, **more):
    mode = "none" if k == 0 else "top_k"
    return [{"mode": mode, "query_id": f"q{n}", "k": k, "value": v, **more} for n, v in enumerate(values)]


@pytest.mark.parametrize(
    ("value", "scale", "expected"),
    [
        (0.5, "0-1", 0.5),
        (3, "1-5", 0.5),
        (2, "0-5", 0.4),
        (40, "0-100", 0.4),
        (40, "0 – 100", 0.4),
        (7, "1-5", 1.0),
        (3, None, None),
        (3, "stars", None),
        (3, "2-2", None),
        (None, "0-1", None),
    ],
)
def test_scores_as_shares_of_their_scale(value, scale, expected):
    row = pl.DataFrame({"value": [value], "scale": [scale]}, schema={"value": pl.Float64, "scale": pl.String})
    assert row.select(share())["value"][0] == (expected if expected is None else pytest.approx(expected))


def test_points_average_passes_then_queries():
    rows = [
        *single(5, 1.0, 0.0),
        # Two more passes of the first query only: it weighs no more than the other
        {"query_id": "q0", "k": 5, "pass": 2, "value": 0.0},
        {"query_id": "q0", "k": 5, "pass": 3, "value": 0.5},
        *single(5, 0.9, 0.9, scorer="rougeL"),
    ]
    row = points(table(*rows), "f1").row(0, named=True)
    assert (row["value"], row["n"], row["queries"]) == (pytest.approx(25.0), 4, 2)
    assert (row["low"], row["high"]) == (0.0, 100.0), "Student's t of two leaves all that can be"


def test_curves_are_kept_apart():
    one = single(5, 0.2, 0.4)
    other = [{"reader": "m", "prompt": "p", "temperature": t} for t in (0.0, 1.0)]
    found = points(table(*one, *(row | also for row in one for also in other)), "f1")
    assert found.height == 3
    assert found["value"].to_list() == pytest.approx([30.0] * 3)
    curves = {("r", None, None, None), ("r", "m", "p", 0.0), ("r", "m", "p", 1.0)}
    assert set(depths(found).select(CURVE).rows()) == curves


def test_means_without_answers_are_taken_as_they_are():
    rows = [
        {"k": 1, "value": 0.3, "n": 200, "low": 0.25, "high": 0.35},
        {"k": 5, "value": 0.9, "n": 200},  # repeats what the answers say otherwise
        *single(5, 0.2, 0.4),
        {"k": 0, "mode": "none", "value": 0.1, "n": 200},
    ]
    found = points(table(*rows), "f1").sort("k")
    assert found["value"].to_list() == pytest.approx([10.0, 30.0, 30.0])
    assert found["queries"].to_list() == [200, 200, 2]
    assert found.filter(k=1).select("low", "high").row(0) == pytest.approx((25.0, 35.0))
    gained = gains(table(*rows), "f1")
    assert gained.select("k", "value", "low", "queries").rows() == [(1, pytest.approx(20.0), None, 200)]


def test_a_mode_that_is_not_known_is_top_k():
    found = points(table({"query_id": "q0", "k": 5, "mode": None, "value": 0.3}), "f1")
    assert found.select("mode", "value").rows() == [("top_k", pytest.approx(30.0))]


def test_judges_are_averaged_or_chosen():
    rows = [
        {"query_id": "q0", "k": 5, "judge": j, "value": v, "scale": "0-5"} for j, v in (("a", 5), ("b", 1))
    ]
    assert points(table(*rows), "f1")["value"][0] == pytest.approx(60.0)


def test_gains_are_paired():
    rows = table(*single(0, 0.1, 0.5, 0.9), *single(5, 0.2, 0.6), *single(10, 0.0, 0.5, 0.9))
    found = gains(rows, "f1")
    assert found["value"].to_list() == pytest.approx([10.0, -10 / 3])
    assert found["queries"].to_list() == [2, 3]
    # Both queries gain the same, which says nothing of others; three that differ have Student's t
    assert found.filter(k=5).select("low", "high").row(0) == (None, None)
    expected = ttest_1samp([-10.0, 0.0, 0.0], 0).confidence_interval()
    assert found.filter(k=10).select("low", "high").row(0) == pytest.approx(tuple(expected))


def test_an_interval_covers_the_mean_of_what_was_drawn():
    truth = np.random.default_rng(1).beta(2, 3, 400)
    found = points(table(*single(5, *truth)), "f1").row(0, named=True)
    assert found["low"] < 100 * truth.mean() < found["high"]
    half = 196 * truth.std() / 20
    assert found["high"] - found["low"] == pytest.approx(2 * half, rel=0.1)
    assert points(table(*single(5, *truth)), "f1").row(0, named=True) == found


@pytest.mark.parametrize("scorer", ["f1", "none such"])
def test_nothing_in_nothing_out(scorer):
    assert points(table(), scorer).is_empty()
    assert gains(table(*single(5, 0.3)), scorer).is_empty()
    assert by_query(table(), scorer).is_empty()
    assert depths(points(table(*single(0, 0.3)), "f1")).is_empty()


def test_slices_by_gold_in_top_k():
    rankings = pl.DataFrame(
        [
            ("r", q, n + 1, p)
            for q, ps in (("q0", "abc"), ("q1", "xyz"), ("q2", "abc"))
            for n, p in enumerate(ps)
        ],
        schema={"run_id": pl.String, "query_id": pl.String, "rank": pl.Int32, "passage_id": pl.String},
        orient="row",
    )
    gold = pl.DataFrame({"query_id": ["q0", "q0", "q1"], "passage_id": ["a", "c", "none"]})
    found = slices(rankings, gold, [1, 3])
    assert found["query_id"].unique().sort().to_list() == ["q0", "q1"]
    assert found.filter(query_id="q0")["with_gold"].to_list() == [True, True]
    assert found.filter(query_id="q1")["with_gold"].to_list() == [False, False]
    assert slices(rankings, gold, [1, 3], need="all").filter(query_id="q0")["with_gold"].to_list() == [
        False,
        True,
    ]
    asked = pl.DataFrame({"run_id": ["r", "r"], "query_id": ["q0", "q1"]})
    nothing = slices(rankings.filter(pl.col("query_id") == "q0"), gold, [1, 3], asked=asked)
    assert nothing.equals(found), "a stack that returned nothing has no gold passage"
    rows = table(*single(3, 0.2, 0.4, 0.9), *single(0, 0.1, 0.1, 0.1))
    kept = found.filter("with_gold")
    assert points(rows, "f1", only=kept).select("k", "value").rows() == [(3, pytest.approx(20.0))]
    assert gains(rows, "f1", only=kept)["value"].to_list() == pytest.approx([10.0])
