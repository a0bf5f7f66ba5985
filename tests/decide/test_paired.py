"""Ties by the paired difference, against plain loops and scipy's bootstrap."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import bootstrap

import core.decide.ties
from core.decide.rules import Constraints, decide
from core.decide.ties import Paired
from core.stats.intervals import LEAST, SEED, resample_weights

RNG = np.random.default_rng(5)


def names(count):
    return [f"s{place}" for place in range(count)]


def one_by_one(values, best, row):
    """Draw the queries again, take the difference of the means on those that both have, look at its ends."""
    drawn = resample_weights(values.shape[1], 2000, SEED).astype(int)
    both = ~np.isnan(values[best]) & ~np.isnan(values[row])
    means = []
    for counts in drawn:
        picked = np.repeat(np.flatnonzero(both), counts[both])
        if len(picked):
            means.append(np.mean(values[row][picked] - values[best][picked]))
    low, high = np.quantile(means, [0.025, 0.975])
    if both.sum() < LEAST:  # too few to test: only what is equal is alike
        return abs(np.mean(values[row][both] - values[best][both])) <= 1e-6
    return low <= 1e-6 and high >= -1e-6


def found(values, best, shift=None):
    pairs = Paired(names(len(values)), values)
    return pairs.alike(best, np.arange(len(values)), np.zeros(len(values)) if shift is None else shift)


grades = arrays.arrays(
    np.float64,
    st.tuples(st.integers(2, 5), st.integers(2, 12)),
    elements=st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]),
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(grades)
def test_against_a_loop_over_resamples(values):
    best = int(values.mean(axis=1).argmax())
    expected = [one_by_one(values, best, row) for row in range(len(values))]
    assert found(values, best).tolist() == expected


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(grades, st.data())
def test_on_the_queries_that_both_have(values, data):
    gone = data.draw(arrays.arrays(np.bool_, values.shape, elements=st.booleans()))
    gone[:, :2] = False  # two queries in common
    values = np.where(gone, np.nan, values)
    best = int(np.nanmean(values, axis=1).argmax())
    expected = [one_by_one(values, best, row) for row in range(len(values))]
    assert found(values, best).tolist() == expected


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_few_queries_do_not_make_a_tie(n):
    """On six a difference in both directions may be chance; on fewer nothing can be shown."""
    values = np.stack([np.full(n, 0.6), np.where(np.arange(n) % 2, 0.9, 0.1), np.full(n, 0.6)])
    assert found(values, 0).tolist() == [True, n >= 6, True]


@pytest.mark.parametrize(("by", "alike"), [(0.0, True), (0.01, True), (0.3, False)])
def test_as_scipys_bootstrap_has_it(by, alike):
    best = RNG.random(60)
    other = np.clip(best - by + RNG.normal(0, 0.2, 60), -1, 2)
    drawn = bootstrap((other - best,), np.mean, method="percentile", n_resamples=2000, rng=1)
    inside = drawn.confidence_interval.low <= 0 <= drawn.confidence_interval.high
    assert inside == alike
    assert found(np.stack([best, other]), 0).tolist() == [True, alike]


def test_what_its_own_interval_calls_a_tie_a_paired_difference_tells_apart():
    best = np.tile([0.0, 1.0], 40)  # a wide interval of its own
    worse = best - 0.02  # and always a little less
    values = np.stack([best, worse])
    assert found(values, 0).tolist() == [True, False]
    rows = pl.DataFrame(
        {
            "run_id": names(2),
            "quality": values.mean(axis=1),
            "quality_low": [0.38, 0.36],
            "quality_high": [0.61, 0.59],
            "latency_ms": [100.0, 100.0],
            "cost": [1.0, 0.5],
        }
    )
    assert len(decide(rows, Constraints()).ties) == 2
    apart = decide(rows, Constraints(), paired=Paired(names(2), values))
    assert [rows["run_id"][row] for row in apart.ties] == ["s0"]
    # the other way round where less is better
    least = decide(rows, Constraints(higher_is_better=False), paired=Paired(names(2), values))
    assert [rows["run_id"][row] for row in least.ties] == ["s1"]
    # in any order of the table, and with rows that it lacks
    turned = decide(rows.reverse(), Constraints(), paired=Paired(["x", *names(2)], np.vstack([best, values])))
    assert turned.ties == (1,)


def test_only_averages_are_compared_with_the_interval_of_the_best():
    values = np.array([[0.4, 0.6, 0.5, 0.5], [0.5] * 4])
    rows = pl.DataFrame(
        {
            "run_id": ["s0", "reported", "far", "s1"],
            "quality": [0.5, 0.48, 0.3, 0.5],
            "quality_low": [0.45, None, None, None],
            "quality_high": [0.55, None, None, None],
            "latency_ms": [100.0] * 4,
            "cost": [1.0, 2.0, 2.0, 3.0],
        }
    )
    ties = decide(rows, Constraints(), paired=Paired(["s0", "s1"], values)).ties
    assert sorted(rows["run_id"][row] for row in ties) == ["reported", "s0", "s1"]


def test_a_quality_that_is_taken_to_be_another_moves_its_values_along():
    best = RNG.random(50)
    noise = RNG.normal(0, 0.001, 50)
    values = np.stack([best, best - 0.02, best - 0.02 + noise - noise.mean()])
    up = np.array([0.0, 0.02, 0.0])
    assert found(values, 0).tolist() == [True, False, False]
    assert found(values, 0, up).tolist() == [True, True, False]
    assert found(values, 0, np.full(3, 0.1)).tolist() == [True, False, False]
    down = np.array([-0.02, 0.0, 0.0])
    assert found(values, 0, down).tolist() == [True, True, True]


@pytest.mark.slow
def test_ten_thousand_stacks_are_compared_as_a_few_are():
    base = RNG.random(64)
    values = base + RNG.normal(0, 0.15, (3000, 64)) - RNG.random((3000, 1)) * 0.2
    best = int(values.mean(axis=1).argmax())
    pairs = Paired(names(3000), values)
    some = RNG.integers(0, 3000, 40)
    whole = pairs.alike(best, np.arange(3000), np.zeros(3000))
    assert whole[some].tolist() == [one_by_one(values, best, row) for row in some]
    assert pairs.alike(best, some, np.zeros(3000)).tolist() == whole[some].tolist()
    assert 0 < whole.sum() < 3000


def test_another_best_is_compared_without_resampling_everybody(monkeypatch):
    values = RNG.random(64) + RNG.normal(0, 0.15, (2000, 64)) - RNG.random((2000, 1)) * 0.2
    pairs, drawn = Paired(names(2000), values), []
    pairs.alike(0, np.arange(2000), np.zeros(2000))
    plain = core.decide.ties.resampled

    def counted(sample, weights):
        drawn.append(len(sample.top))
        return plain(sample, weights)

    monkeypatch.setattr(core.decide.ties, "resampled", counted)
    for best in (1, 2, 1, 2):
        pairs.alike(best, np.arange(2000), np.zeros(2000))
    assert sum(drawn) < 0.01 * 2 * 2000  # those at the border of the interval, once a best
