"""The paired randomisation test against scipy's, against full enumeration by hand, and Holm."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, permutation_test

from core.stats.intervals import Sample
from core.stats.significance import EXACT_UP_TO, holm, swap_test


def p_of(first, second, **swaps):
    p, exact = swap_test(Sample.means([first, second]), [0], [1], **swaps)
    return float(p[0]), bool(exact[0])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("queries", [2, 3, 5, 9, 12])
def test_an_exact_test_equals_scipys(queries, seed):
    rng = np.random.default_rng(seed)
    # Steps of a tenth, as precision at 10 has them: sums tie, and ties must count.
    first, second = rng.integers(0, 11, size=(2, queries)) / 10
    theirs = permutation_test(
        (second, first),
        lambda one, other, axis: np.mean(one - other, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )
    p, exact = p_of(first, second)
    assert exact
    assert p == pytest.approx(theirs.pvalue)


@pytest.mark.parametrize("seed", range(3))
def test_a_drawn_test_agrees_with_scipys(seed):
    rng = np.random.default_rng(seed)
    first = rng.random(60)
    second = first + rng.normal(0.04, 0.15, size=60)
    theirs = permutation_test(
        (second, first),
        lambda one, other, axis: np.mean(one - other, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=20_000,
        rng=np.random.default_rng(1),
    )
    p, exact = p_of(first, second, draws=20_000)
    assert not exact
    assert p == pytest.approx(theirs.pvalue, abs=0.015)
    assert p == p_of(first, second, draws=20_000)[0], "the seed fixes the draws"


def test_a_ratio_of_means_swaps_both_parts():
    rng = np.random.default_rng(4)
    ceiling = rng.random((2, 8))
    actual = ceiling * rng.random((2, 8))

    def gap(swap):
        rows = np.where(swap, [[1], [0]], [[0], [1]])
        tops, bottoms = np.take_along_axis(actual, rows, 0), np.take_along_axis(ceiling, rows, 0)
        ratios = tops.sum(axis=1) / bottoms.sum(axis=1)
        return abs(ratios[1] - ratios[0])

    gaps = [gap(np.array(swap)) for swap in itertools.product([False, True], repeat=8)]
    p, exact = swap_test(Sample.ratios(actual, ceiling), [0], [1])
    assert exact.all()
    assert p[0] == pytest.approx(np.mean(np.array(gaps) >= gaps[0] - 1e-12))


def test_queries_without_a_difference_do_not_make_a_test_inexact():
    first = np.array([0.5] * 200 + [0.1, 0.2, 0.3])
    second = np.array([0.5] * 200 + [0.4, 0.6, 0.8])
    assert p_of(first, second) == (0.25, True)  # 2 of 2^3 sign patterns


def test_queries_that_do_not_count_for_both_are_left_out():
    first = np.array([np.nan, 0.1, 0.2, 0.3, 0.9])
    second = np.array([0.9, 0.4, 0.6, 0.8, np.nan])
    assert p_of(first, second) == (0.25, True)
    p, _ = swap_test(Sample.means([[np.nan, 0.1], [0.1, np.nan]]), [0], [1])
    assert np.isnan(p[0])


def test_the_smallest_drawn_p_counts_the_observed_one():
    first = np.linspace(0, 0.4, 40)
    assert p_of(first, first + 0.5, draws=999) == (1 / 1000, False)


def test_pairs_share_their_draws_and_do_not_disturb_each_other():
    rng = np.random.default_rng(2)
    values = rng.random((6, 30))
    values[4] = values[0]
    values[5, :-8] = values[0, :-8]  # eight queries differ: exact
    together, exact = swap_test(Sample.means(values), [0, 0, 0, 0, 0], [1, 2, 3, 4, 5])
    assert exact.tolist() == [False, False, False, True, True]
    for row, p in enumerate(together, 1):
        assert p == swap_test(Sample.means(values), [0], [row])[0][0]
    assert together[3] == 1.0


def test_the_level_holds_where_nothing_differs():
    rng = np.random.default_rng(7)
    table = rng.random((800, 30))
    p, _ = swap_test(Sample.means(table), range(0, 800, 2), range(1, 800, 2), draws=999)
    assert np.mean(p <= 0.05) < 0.09
    assert np.mean(p) == pytest.approx(0.5, abs=0.05)


@pytest.mark.slow
@given(
    st.integers(1, EXACT_UP_TO + 6).flatmap(
        lambda n: st.tuples(
            *[st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0, np.nan]), min_size=n, max_size=n)] * 2
        )
    )
)
def test_p_values_are_symmetric_and_in_range(pair):
    first, second = np.array(pair[0]), np.array(pair[1])
    sample = Sample.means([first, second])
    (forth, back, same), _ = swap_test(sample, [0, 1, 0], [1, 0, 0], draws=199)
    assert forth == back or (np.isnan(forth) and np.isnan(back))
    assert np.isnan(forth) == bool(np.isnan(first + second).all())
    assert np.isnan(forth) or 0 < forth <= 1
    assert np.isnan(same) or same == 1.0
    if np.count_nonzero(np.nan_to_num(first - second)) <= EXACT_UP_TO:
        order = np.random.default_rng(0).permutation(len(first))
        shuffled, _ = swap_test(Sample.means([first[order], second[order]]), [0], [1])
        assert shuffled[0] == pytest.approx(forth, nan_ok=True)


@pytest.mark.parametrize(
    ("p", "adjusted"),
    [
        # Holm (1979) by hand: 0.01·4, 0.02·3 … each at least the one before
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.2], [0.2]),
        ([], []),
        ([0.6, 0.7], [1.0, 1.0]),
        ([0.01, 0.01, 0.01], [0.03, 0.03, 0.03]),
        ([0.03, np.nan, 0.01], [0.03, np.nan, 0.02]),
    ],
)
def test_holm(p, adjusted):
    assert holm(p) == pytest.approx(adjusted, nan_ok=True)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_between_the_p_value_and_bonferroni(values):
    p = np.array(values)
    found = holm(p)
    assert (found >= p).all()
    assert (found <= np.minimum(1, p * len(p)) + 1e-12).all()
    assert (found[np.argsort(p, kind="stable")] == np.sort(found)).all()
    assert (found >= false_discovery_control(p) - 1e-12).all()  # stricter than the rate of false discoveries
    naive = [max(min(1, (p >= p[j]).sum() * p[j]) for j in np.flatnonzero(p <= p[i])) for i in range(len(p))]
    assert found == pytest.approx(naive)
