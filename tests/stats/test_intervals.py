import pytest
from scipy.stats import binom

from core.stats.intervals import (
    SEED,
    quantile_ranks,
    resample_weights,
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
