"""Resampling as a product against loops over resamples and against scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri
from scipy.stats import bootstrap

from core.errors import InputError, UnknownNameError
from core.stats.intervals import (
    SEED,
    Sample,
    interval,
    resample_weights,
    resampled,
    weights,
    without_one,
)

TAILS = (0.025, 0.975)


def holey(shape, share=0.3, seed=5):
    rng = np.random.default_rng(seed)
    values = rng.random(shape)
    values[rng.random(shape) < share] = np.nan
    return values


def drawn(queries, resamples):
    """Resamples as lists of query numbers, the same ones that the weights count."""
    rng = np.random.default_rng(SEED)
    return rng.integers(queries, size=(resamples, queries), dtype=np.int32)


def test_every_resample_equals_a_mean_over_drawn_queries():
    values = holey((5, 14))
    made = resampled(Sample.means(values), weights(14, 200))
    for picked, column in zip(drawn(14, 200), made.T, strict=True):
        with np.errstate(invalid="ignore"):
            expected = [
                row[~np.isnan(row)].sum() / max(1, (~np.isnan(row)).sum()) for row in values[:, picked]
            ]
        empty = np.isnan(values[:, picked]).all(axis=1)
        assert column[~empty] == pytest.approx(np.array(expected)[~empty], abs=1e-12)
        assert np.isnan(column[empty]).all()


def test_every_resample_equals_a_ratio_of_means_over_drawn_queries():
    actual, ceiling = holey((4, 12)) * 0.5, holey((4, 12), seed=6)
    sample = Sample.ratios(actual, ceiling)
    both = ~(np.isnan(actual) | np.isnan(ceiling))
    assert sample.n.tolist() == both.sum(axis=1).tolist()
    for row in range(4):
        expected = actual[row, both[row]].mean() / ceiling[row, both[row]].mean()
        assert sample.estimate()[row] == pytest.approx(expected)
    made = resampled(sample, weights(12, 100))
    for picked, column in zip(drawn(12, 100), made.T, strict=True):
        for row in range(4):
            counts = picked[both[row, picked]]
            if len(counts):
                expected = actual[row, counts].sum() / ceiling[row, counts].sum()
                assert column[row] == pytest.approx(expected)
            else:
                assert np.isnan(column[row])


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_percentile_intervals_are_those_of_a_loop_over_resamples(share):
    values = holey((40, 25), share)
    sample = Sample.means(values)
    low, high = interval(sample.estimate(), resampled(sample, weights(25, 300)))
    for row, ends in zip(values, zip(low, high, strict=True), strict=True):
        means = [np.nanmean(row[picked]) for picked in drawn(25, 300)]
        assert ends == pytest.approx(tuple(np.quantile(means, TAILS)), abs=1e-12)


def bca(values, estimate, statistic):
    """The textbook's BCa of one stack, one resample and one left-out query at a time."""
    n = len(values)
    replicates = np.array([statistic(values[picked]) for picked in drawn(n, 2000)])
    below = np.mean(replicates < estimate - 1e-12) + np.mean(np.abs(replicates - estimate) <= 1e-12) / 2
    bias = ndtri(below)
    left = np.array([statistic(np.delete(values, place, axis=0)) for place in range(n)])
    away = left.mean() - left
    slope = (away**3).sum() / (6 * (away**2).sum() ** 1.5)
    shifted = [bias + ndtri(tail) for tail in TAILS]
    return np.quantile(replicates, [ndtr(bias + each / (1 - slope * each)) for each in shifted])


@pytest.mark.parametrize("seed", range(4))
def test_bca_equals_the_textbook(seed):
    values = np.random.default_rng(seed).gamma(1.0, size=23)
    sample = Sample.means(values)
    found = interval(
        sample.estimate(), resampled(sample, weights(23)), left_out=without_one(sample), method="BCa"
    )
    expected = bca(values, values.mean(), np.mean)
    assert (found[0][0], found[1][0]) == pytest.approx(tuple(expected), abs=1e-12)


def test_bca_of_a_ratio_of_means_equals_the_textbook():
    rng = np.random.default_rng(9)
    ceiling = rng.random(20)
    pairs = np.column_stack([ceiling * rng.random(20), ceiling])
    sample = Sample.ratios(pairs[:, 0], pairs[:, 1])
    found = interval(
        sample.estimate(), resampled(sample, weights(20)), left_out=without_one(sample), method="BCa"
    )

    def ratio(rows):
        return rows[:, 0].sum() / rows[:, 1].sum()

    assert (found[0][0], found[1][0]) == pytest.approx(tuple(bca(pairs, ratio(pairs), ratio)), abs=1e-12)


@pytest.mark.parametrize("method", ["percentile", "BCa"])
def test_intervals_agree_with_scipy(method):
    values = np.random.default_rng(3).gamma(2.0, size=40)
    theirs = bootstrap(
        (values,), np.mean, n_resamples=20_000, method=method, rng=np.random.default_rng(1)
    ).confidence_interval
    sample = Sample.means(values)
    low, high = interval(
        sample.estimate(),
        resampled(sample, weights(40, 20_000)),
        left_out=without_one(sample),
        method=method,
    )
    width = theirs.high - theirs.low
    assert low[0] == pytest.approx(theirs.low, abs=0.03 * width)
    assert high[0] == pytest.approx(theirs.high, abs=0.03 * width)


def test_a_constant_has_an_interval_of_no_width():
    sample = Sample.means([[0.4] * 6, [0.4, 0.4] + [np.nan] * 4])
    for method in ("percentile", "BCa"):
        low, high = interval(
            sample.estimate(), resampled(sample, weights(6)), left_out=without_one(sample), method=method
        )
        assert low == pytest.approx([0.4, 0.4])
        assert high == pytest.approx([0.4, 0.4])


def test_no_query_that_counts_has_no_interval():
    sample = Sample.means([[np.nan, np.nan], [0.1, 0.2]])
    low, high = interval(sample.estimate(), resampled(sample, weights(2)))
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == [True, False]


def test_blocks_and_company_do_not_change_a_stack():
    values = holey((1500, 9))
    whole = resampled(Sample.means(values), weights(9, 50))
    alone = resampled(Sample.means(values[[3, 1400]]), weights(9, 50))
    assert whole[[3, 1400]] == pytest.approx(alone, nan_ok=True)


def test_weights_are_kept_and_cannot_be_changed():
    assert weights(7, 50) is weights(7, 50)
    assert (weights(7, 50) == resample_weights(7, 50)).all()
    with pytest.raises(ValueError, match="read-only"):
        weights(7, 50)[0, 0] = 1.0


@pytest.mark.slow
@given(st.integers(1, 40), st.integers(0, 2**32 - 1), st.floats(0.01, 100), st.floats(-10, 10))
def test_intervals_move_with_the_scale(queries, seed, scale, shift):
    values = np.random.default_rng(seed).random((2, queries))
    for method in ("percentile", "BCa"):
        bounds = []
        for table in (values, values * scale + shift):
            sample = Sample.means(table)
            bounds.append(
                np.array(
                    interval(
                        sample.estimate(),
                        resampled(sample, weights(queries, 100)),
                        left_out=without_one(sample),
                        method=method,
                    )
                )
            )
        assert bounds[1] == pytest.approx(bounds[0] * scale + shift, abs=1e-6 * (scale + abs(shift)))


def test_what_cannot_be_is_refused():
    with pytest.raises(InputError, match="hold no query"):
        Sample.means(np.empty((2, 0)))
    with pytest.raises(InputError, match="two equal shapes"):
        Sample.ratios([[0.1, 0.2]], [[0.1]])
    sample = Sample.means([0.1, 0.2])
    with pytest.raises(UnknownNameError, match="bca"):
        interval(sample.estimate(), resampled(sample, weights(2)), method="bca")
    with pytest.raises(UnknownNameError, match="left_out"):
        interval(sample.estimate(), resampled(sample, weights(2)), method="BCa")
