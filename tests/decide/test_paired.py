"""Ties by the paired difference, against plain loops and scipy's intervals."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from core.decide.rules import Constraints, decide
from core.decide.ties import Paired
from core.stats.intervals import CLUSTERS

RNG = np.random.default_rng(5)


def names(count):
    return [f"s{place}" for place in range(count)]


def one_by_one(values, best, row, tail=0.05):
    """Return the upper end of best − row by scipy's one-sided t interval, on the queries of both."""
    both = ~np.isnan(values[best]) & ~np.isnan(values[row])
    gaps = values[best][both] - values[row][both]
    if (np.isnan(values[best]) == np.isnan(values[row])).all() and not gaps.any():
        return 0.0
    if len(gaps) < CLUSTERS:
        return np.inf
    spread = gaps.std(ddof=1) / np.sqrt(len(gaps))
    return gaps.mean() + stats.t.ppf(1 - tail, len(gaps) - 1) * spread


def found(values, best, shift=None, **given):
    pairs = Paired(names(len(values)), values)
    shift = np.zeros(len(values)) if shift is None else shift
    return pairs.ends(best, np.arange(len(values)), shift, **{"sign": 1.0, "tail": 0.05, **given})


grades = arrays.arrays(
    np.float64,
    st.tuples(st.integers(2, 5), st.integers(2, 12)),
    elements=st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]),
)


@settings(max_examples=60, deadline=None)
@given(grades, st.data())
def test_the_ends_are_students_on_the_queries_that_both_have(values, data):
    gone = data.draw(arrays.arrays(np.bool_, values.shape, elements=st.booleans()))
    gone[:, :2] = False  # two queries in common
    values = np.where(gone, np.nan, values)
    best = int(np.nanmean(values, axis=1).argmax())
    expected = [one_by_one(values, best, row) for row in range(len(values))]
    low, high = found(values, best)
    np.testing.assert_allclose(high, expected, atol=1e-12)
    turned = found(values, best, sign=-1.0)
    np.testing.assert_allclose(turned[1], -low, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 7, 8, 40])
def test_few_queries_make_no_tie_but_of_equal_results(n):
    values = np.stack([np.full(n, 0.6), np.where(np.arange(n) % 2, 0.61, 0.59), np.full(n, 0.6)])
    assert (found(values, 0)[1] <= 0.05).tolist() == [True, n >= CLUSTERS, True]


def test_it_agrees_with_scipys_test_of_the_mean():
    best, other = RNG.random(60), RNG.random(60)
    held = stats.ttest_1samp(best - other, 0).confidence_interval(0.90)
    low, high = found(np.stack([best, other]), 0)
    assert (low[1], high[1]) == pytest.approx((held.low, held.high))


def rows_of(values, cost, latency=100.0):
    count = len(values)
    return pl.DataFrame(
        {
            "run_id": names(count),
            "quality": np.nanmean(values, axis=1),
            "latency_ms": np.broadcast_to(latency, count).astype(float),
            "cost": cost,
        }
    )


def test_no_evidence_of_a_difference_is_no_tie():
    """A cheaper stack whose difference may be 0, but may be large too, does not tie with the best."""
    best = np.tile([0.0, 1.0], 20)
    cheaper = np.roll(best, 1) * 0.9
    values = np.stack([best, cheaper])
    rows = rows_of(values, [1.0, 0.1])
    assert stats.ttest_rel(best, cheaper).pvalue > 0.5
    decided = decide(rows, Constraints(delta=0.01), paired=Paired(names(2), values))
    assert (decided.chosen, decided.ties) == (0, (0,))


@pytest.mark.parametrize(("delta", "chosen"), [(0.0, 0), (0.01, 0), (0.021, 1), (0.05, 1)])
def test_a_cheaper_stack_ties_where_it_is_surely_within_the_zone(delta, chosen):
    best = RNG.random(80)
    values = np.stack([best, best - 0.02])
    decided = decide(rows_of(values, [1.0, 0.1]), Constraints(delta=delta), paired=Paired(names(2), values))
    assert decided.chosen == chosen
    assert len(decided.ties) == 1 + chosen


def test_the_direction_of_the_measure_and_the_order_of_the_table():
    best = np.tile([0.0, 1.0], 40)
    values = np.stack([best, best - 0.02])
    pairs, rows = Paired(names(2), values), rows_of(values, [1.0, 0.5])
    assert decide(rows, Constraints(), paired=pairs).chosen == 0
    assert decide(rows, Constraints(higher_is_better=False), paired=pairs).chosen == 1
    # in any order of the table, and with rows that it lacks
    turned = decide(rows.reverse(), Constraints(), paired=Paired(["x", *names(2)], np.vstack([best, values])))
    assert turned.ties == (1,)


@pytest.mark.parametrize(("latency", "ties"), [(100.0, 2), (120.0, 2), (121.0, 1), (None, 1)])
def test_what_is_slower_by_more_than_the_band_or_was_not_timed_does_not_tie(latency, ties):
    best = RNG.random(30)
    values = np.stack([best, best - 0.001])
    rows = rows_of(values, [1.0, 0.5], [100.0, np.nan if latency is None else latency])
    decided = decide(rows, Constraints(jitter_ms=20.0, delta=0.01), paired=Paired(names(2), values))
    assert len(decided.ties) == ties


def test_averages_tie_where_they_print_the_same():
    rows = pl.DataFrame(
        {
            "run_id": names(3),
            "quality": [0.5003, 0.4996, 0.4994],
            "latency_ms": [100.0] * 3,
            "cost": [3.0, 2.0, 1.0],
        }
    )
    decided = decide(rows, Constraints(delta=0.01))
    assert (decided.chosen, sorted(decided.ties)) == (1, [0, 1])


def test_a_quality_that_is_taken_to_be_another_moves_its_values_along():
    best = RNG.random(50)
    noise = RNG.normal(0, 0.001, 50)
    values = np.stack([best, best - 0.02, best - 0.02 + noise - noise.mean()])
    within = lambda shift: (found(values, 0, shift)[1] <= 0.001).tolist()  # noqa: E731 - said once
    assert within(None) == [True, False, False]
    assert within(np.array([0.0, 0.02, 0.0])) == [True, True, False]
    assert within(np.full(3, 0.1)) == [True, False, False]
    assert within(np.array([-0.02, 0.0, 0.0])) == [True, True, True]


@pytest.mark.parametrize(
    ("cost", "passages", "answered", "chosen"),
    [
        ([1.0, 1.005, 1.0], [10, 5, 10], False, 1),  # as cheap within 1 %: the smaller prompt
        ([1.0, 1.5, 1.0], [10, 5, 10], False, 0),  # a dearer stack never wins by its prompt
        ([1.0, 1.5, 1.0], [10, 5, 10], True, 1),  # unless the cost includes who reads it
        ([np.nan, 1.5, np.nan], [10, 10, 10], False, 1),  # unknown is never cheaper
    ],
)
def test_among_ties_cost_and_prompt(cost, passages, answered, chosen):
    values = np.stack([RNG.random(30)] * 3)
    rows = rows_of(values, cost).with_columns(
        passages_sent=pl.Series(passages, dtype=pl.Float64),
        cost_per=pl.lit("answered query" if answered else "query"),
        candidates=pl.Series([50, 50, 10], dtype=pl.Float64),  # which nothing here reads
    )
    assert decide(rows, Constraints(), paired=Paired(names(3), values)).chosen == chosen


def test_ten_thousand_stacks_are_compared_as_a_few_are():
    base = RNG.random(64)
    values = base + RNG.normal(0, 0.15, (10_000, 64)) - RNG.random((10_000, 1)) * 0.2
    best = int(values.mean(axis=1).argmax())
    some = RNG.integers(0, 10_000, 40)
    pairs = Paired(names(10_000), values)
    ends = pairs.ends(best, np.arange(10_000), np.zeros(10_000), sign=1.0, tail=0.05)[1]
    np.testing.assert_allclose(ends[some], [one_by_one(values, best, row) for row in some])
