import numpy as np
import pytest
from scipy.stats import binom, binomtest, bootstrap, ttest_1samp

from core.errors import InputError
from core.stats.intervals import (
    FEW,
    SEED,
    bootstrap_curve,
    bootstrap_means,
    quantile_ranks,
    resample_weights,
    share_interval,
    too_few,
)


def coverage(n, q, ranks):
    """Probability that the order statistics bracket the quantile of a continuous distribution."""
    lower, upper = ranks
    return binom.cdf(upper - 1, n, q) - binom.cdf(lower - 1, n, q)


@pytest.mark.parametrize("q", [0.05, 0.25, 0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_order_statistics_cover_and_are_withheld_only_when_nothing_covers(q, level):
    for n in range(1, 130):
        ranks = quantile_ranks(n, q, level)
        if ranks is None:
            assert coverage(n, q, (1, n)) < level + 1e-12
        else:
            assert 1 <= ranks[0] < ranks[1] <= n
            assert coverage(n, q, ranks) >= level - 1e-12


def test_interval_of_a_median_is_symmetric_and_known():
    # n = 10: the 2nd and 9th values cover the median with 97.9 % (David & Nagaraja, table of sign intervals)
    assert quantile_ranks(10, 0.5) == (2, 9)
    assert quantile_ranks(6, 0.5) == (1, 6)
    assert quantile_ranks(5, 0.5) is None


def test_p95_needs_sixty_queries():
    assert quantile_ranks(58, 0.95) is None
    assert quantile_ranks(60, 0.95) is not None


def test_an_interval_that_is_withheld_says_why():
    assert quantile_ranks(2, 0.95) is None
    assert too_few(2, 0.95) == "2 queries are too few for a 95 % interval of p95"
    assert quantile_ranks(0, 0.5) is None


def test_weights_are_a_multinomial_and_repeat():
    weights = resample_weights(7, 50)
    assert weights.shape == (50, 7)
    assert (weights.sum(axis=1) == 7).all()
    assert (weights == resample_weights(7, 50, SEED)).all()
    assert (weights != resample_weights(7, 50, SEED + 1)).any()


def test_bootstrap_agrees_with_scipy():
    values = np.random.default_rng(3).gamma(2.0, size=40)
    theirs = bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    low, high = bootstrap_means(values, resamples=20_000)
    width = theirs.high - theirs.low
    assert low[0] == pytest.approx(theirs.low, abs=0.03 * width)
    assert high[0] == pytest.approx(theirs.high, abs=0.03 * width)


def naive(values, resamples, level=0.95):
    """One row at a time, one resample at a time, with the same weights."""
    known = ~np.isnan(values)
    means = [
        np.average(values[known], weights=weights[known])
        for weights in resample_weights(len(values), resamples)
        if weights[known].sum() > 0
    ]
    return np.quantile(means, [(1 - level) / 2, (1 + level) / 2])


def test_rows_with_missing_queries_equal_the_naive_loop():
    rng = np.random.default_rng(5)
    values = rng.random((6, 30))
    values[rng.random(values.shape) < 0.4] = np.nan
    values[0] = [*rng.random(FEW), *[np.nan] * (30 - FEW)]
    low, high = bootstrap_means(values, resamples=300)
    for row, (a, b) in zip(values, zip(low, high, strict=True), strict=True):
        assert (a, b) == pytest.approx(naive(row, 300), abs=1e-12)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, 1.0], (0.025**0.5, 1.0)),  # Clopper and Pearson: of n successes in n, the n-th root of a tail
        ([0.0] * 4, (0.0, 1 - 0.025**0.25)),
        ([1.0, 0.0, 1.0, 1.0], tuple(binomtest(3, 4).proportion_ci(method="exact"))),
        ([0.5, 0.5, 1.0, 1.0], tuple(binomtest(3, 4).proportion_ci(method="exact"))),  # the same sum
        ([3.0, 5.0, 4.0], tuple(ttest_1samp([3.0, 5.0, 4.0], 0).confidence_interval(0.95))),
        ([-0.5, 0.5, 0.25], tuple(ttest_1samp([-0.5, 0.5, 0.25], 0).confidence_interval(0.95))),
        ([2.0, 2.0, 2.0], (np.nan, np.nan)),  # no spread says nothing of the next
    ],
)
def test_few_queries_have_an_interval_that_needs_no_resampling(values, expected):
    low, high = bootstrap_means([*values, np.nan])
    assert (low[0], high[0]) == pytest.approx(expected, abs=1e-9, nan_ok=True)


@pytest.mark.slow
def test_intervals_of_few_queries_cover():
    rng = np.random.default_rng(3)
    for n in (2, 5, 9):
        for draw, mean in (
            (lambda size: rng.beta(8, 1, size), 8 / 9),
            (lambda size: rng.random(size) < 0.9, 0.9),
        ):
            low, high = bootstrap_means(draw((2000, n)).astype(float))
            assert np.mean((low <= mean) & (mean <= high)) >= 0.94


def test_too_few_queries_have_no_interval():
    low, high = bootstrap_means([[0.5, np.nan, np.nan], [np.nan] * 3, [0.1, 0.2, 0.3]], resamples=50)
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == [True, True, False]


def test_resamples_are_shared_between_rows():
    values = np.random.default_rng(2).random(30)
    low, high = bootstrap_means([values, values + 1.0])
    assert low[1] - low[0] == pytest.approx(1.0)
    assert high[1] - high[0] == pytest.approx(1.0)


def test_blocks_do_not_change_the_result():
    values = np.random.default_rng(4).random((1500, 8))
    low, _ = bootstrap_means(values, resamples=64)
    assert low[[0, 1499]] == pytest.approx(bootstrap_means(values[[0, 1499]], resamples=64)[0])


def test_curve_is_one_interval_per_cutoff():
    values = np.random.default_rng(6).random((20, 5))
    low, high = bootstrap_curve(values)
    assert low.shape == high.shape == (5,)
    assert low[3] == pytest.approx(bootstrap_means(values[:, 3])[0][0])


@pytest.mark.parametrize("level", [0.0, 1.0, 1.5])
def test_level_is_checked(level):
    with pytest.raises(InputError, match="coverage"):
        bootstrap_means([0.1, 0.2], level=level)


def test_no_queries_are_refused():
    with pytest.raises(InputError, match="hold no query"):
        bootstrap_means(np.empty((2, 0)))


@pytest.mark.parametrize(("right", "n"), [(0, 1), (1, 1), (0, 39), (39, 39), (26, 39), (1266, 2837)])
def test_the_interval_of_a_share_agrees_with_scipy(right, n):
    expected = binomtest(right, n).proportion_ci(method="wilson")
    low, high = share_interval([right / n], n)
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-12)
