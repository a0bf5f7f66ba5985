"""The table of comparisons: cases by hand, invariants, effect size and power against simulation."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from core.stats.intervals import FEW, Sample
from core.stats.significance import Setup, compare, detectable, differences, queries_needed, spread

QUICK = Setup(resamples=200, permutations=199)
TABLES = st.integers(1, 25).flatmap(
    lambda n: st.lists(
        st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.85, 1.0, math.nan]), min_size=n, max_size=n),
        min_size=2,
        max_size=2,
    )
)


def one(sample, setup=QUICK):
    return compare(sample, [0], [1], setup).row(0, named=True)


def test_a_case_by_hand():
    found = one(Sample.means([[0.2, 0.4, 0.6, 0.8, math.nan], [0.3, 0.4, 1.0, 0.7, 0.9]]), Setup())
    deltas = np.array([0.1, 0.0, 0.4, -0.1])
    assert found["n"] == 4
    assert found["value_first"] == pytest.approx(0.5)
    assert found["value_second"] == pytest.approx(0.6)
    assert found["difference"] == pytest.approx(0.1)
    assert (found["wins"], found["ties"], found["losses"]) == (2, 1, 1)
    assert found["sd"] == pytest.approx(deltas.std(ddof=1))
    assert found["d_z"] == pytest.approx(0.1 / deltas.std(ddof=1))
    assert found["superiority"] == pytest.approx((2 + 0.5) / 4)
    # Of the 8 sign patterns of (.1, .4, -.1), |sum| >= .4 in 6.
    assert found["p"] == found["p_holm"] == pytest.approx(6 / 8)
    assert found["exact"]
    known = ttest_1samp(deltas, 0).confidence_interval(0.95)
    assert (found["low"], found["high"]) == (pytest.approx(known.low), pytest.approx(known.high))


@pytest.mark.parametrize(
    ("tolerance", "outcome"), [(0.0, (2, 1, 1)), (0.05, (2, 1, 1)), (0.1, (1, 3, 0)), (0.5, (0, 4, 0))]
)
def test_the_tolerance_decides_what_is_a_tie(tolerance, outcome):
    sample = Sample.means([[0.2, 0.4, 0.6, 0.8], [0.3, 0.4, 1.0, 0.7]])
    found = one(sample, Setup(tolerance=tolerance, resamples=10))
    assert (found["wins"], found["ties"], found["losses"]) == outcome
    assert found["superiority"] == pytest.approx(0.625), "of the exact figures, whatever the tolerance"


@pytest.mark.slow
@given(TABLES, st.sampled_from(["percentile", "BCa"]))
def test_to_exchange_the_stacks_changes_the_sign(table, method):
    setup = Setup(method=method, resamples=100, permutations=99)
    sample = Sample.means(table)
    forth, back = compare(sample, [0, 1], [1, 0], setup).rows(named=True)
    for name in ("difference", "d_z"):
        assert forth[name] == (None if back[name] is None else pytest.approx(-back[name]))
    assert forth["low"] == (None if back["high"] is None else pytest.approx(-back["high"], abs=1e-9))
    assert forth["high"] == (None if back["low"] is None else pytest.approx(-back["low"], abs=1e-9))
    assert (forth["wins"], forth["losses"]) == (back["losses"], back["wins"])
    for name in ("n", "p", "ties", "sd", "detectable", "needed"):
        assert forth[name] == back[name]
    if forth["superiority"] is not None:
        assert forth["superiority"] == pytest.approx(1 - back["superiority"])


@pytest.mark.slow
@given(TABLES)
def test_a_stack_does_not_differ_from_itself(table):
    found = compare(Sample.means(table), [0], [0], QUICK).row(0, named=True)
    if found["n"]:
        assert (found["difference"], found["p"], found["p_holm"]) == (0.0, 1.0, 1.0)
        assert (found["wins"], found["losses"]) == (0, 0)
        assert found["superiority"] == 0.5
        assert found["d_z"] is None
        assert found["needed"] is None
    else:
        assert found["difference"] is None
        assert found["p"] is None
    if found["n"] >= 2:
        ends = (0.0, 0.0) if found["n"] >= FEW else (None, None)  # few that are equal say nothing of the next
        assert (found["low"], found["high"]) == ends
        assert found["detectable"] == 0.0
    else:
        assert found["low"] is None


@pytest.mark.slow
@given(TABLES, st.integers(0, 2**32 - 1))
def test_the_order_of_the_queries_does_not_matter(table, seed):
    values = np.array(table)
    order = np.random.default_rng(seed).permutation(values.shape[1])
    plain, shuffled = one(Sample.means(values)), one(Sample.means(values[:, order]))
    drawn_anew = {"low", "high"} | (set() if plain["exact"] else {"p", "p_holm", "p_adjusted"})
    for name, value in plain.items():
        if name not in drawn_anew:
            assert shuffled[name] == (pytest.approx(value) if isinstance(value, float) else value), name


def test_the_linear_part_of_a_ratio_has_its_mean_and_its_spread():
    rng = np.random.default_rng(1)
    ceiling = 0.4 + 0.6 * rng.random((2, 400))
    actual = ceiling * (0.5 + 0.5 * rng.random((2, 400)))
    sample = Sample.ratios(actual, ceiling)
    deltas = differences(sample.rows([0]), sample.rows([1]))
    found = one(sample, Setup())
    assert np.nanmean(deltas) == pytest.approx(found["difference"])
    # The bootstrap interval is about four standard errors wide.
    assert 2 * 1.96 * spread(deltas)[0] / 20 == pytest.approx(found["high"] - found["low"], rel=0.1)


def test_the_family_is_what_is_compared():
    values = np.random.default_rng(3).random((4, 20))
    table = compare(Sample.means(values), [0, 0, 0], [1, 2, 3], QUICK)
    assert table["p_holm"].min() == pytest.approx(min(1.0, 3 * table["p"].min()))
    alone = compare(Sample.means(values), [0], [2], QUICK)
    assert alone["p"][0] == table["p"][1]
    assert alone["low"][0] == pytest.approx(table["low"][1])
    assert compare(Sample.means(values), [], [], QUICK).is_empty()


def test_many_pairs_are_compared_in_blocks():
    values = np.random.default_rng(3).random((700, 12))
    table = compare(Sample.means(values), [0] * 699, range(1, 700), Setup(resamples=50, permutations=49))
    one_by_one = [
        compare(Sample.means(values), [0], [row], Setup(resamples=50, permutations=49))
        for row in (1, 350, 699)
    ]
    # Alone, the family is smaller.
    found = table[[0, 349, 698]].drop("p_holm", "p_adjusted")
    expected = (
        pl.concat(one_by_one).drop("p_holm", "p_adjusted").with_columns(pl.Series("second", [1, 350, 699]))
    )
    assert found.drop(pl.selectors.float()).equals(expected.drop(pl.selectors.float()))
    for name in found.select(pl.selectors.float()).columns:
        assert found[name].to_list() == pytest.approx(expected[name].to_list())


def test_power_is_what_it_says():
    rng = np.random.default_rng(11)
    n, sd = 60, 0.2
    true = float(detectable(sd, n))
    assert true == pytest.approx((1.959964 + 0.841621) * sd / math.sqrt(n))
    found = ttest_1samp(rng.normal(true, sd, size=(4000, n)), 0, axis=1).pvalue
    assert np.mean(found < 0.05) == pytest.approx(0.8, abs=0.03)
    assert int(queries_needed(sd, true * 1.0001)) == n
    assert np.isnan(queries_needed(sd, 0.0))
    assert np.isnan(detectable(sd, 1))
