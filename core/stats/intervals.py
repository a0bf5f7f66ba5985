"""Intervals: bootstrap of means over queries and order-statistic intervals of quantiles.

The bootstrap draws one set of resamples of the queries and applies it to every stack, so that intervals of
differences (and joint statements about several stacks) stay paired. Order-statistic intervals assume nothing
about the shape of a latency distribution (CLQ paper §4.1; David & Nagaraja, Order Statistics, §7.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, ndtri

from core.errors import InputError

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Figures of several stacks on the same queries, whose statistic is a ratio of sums: of means, or a mean.

    One matrix product resamples either, and queries to which a measure does not apply add nothing to it.
    """

    top: Floats  # [S, Q], what is summed above; 0 where not applicable
    bottom: Floats  # [S, Q], what is summed below; 0 where not applicable
    applies: Mask  # [S, Q], whether the query counts for the stack

    @classmethod
    def means(cls, values: ArrayLike) -> Sample:
        """The mean over the queries that have a value.

        Args:
            values: [S, Q] (or [Q], taken as one stack); NaN = not applicable.

        Raises:
            InputError: If there is no query.
        """
        table = _table(values)
        applies = ~np.isnan(table)
        return cls(np.where(applies, table, 0.0), applies.astype(np.float64), applies)

    @classmethod
    def ratios(cls, actual: ArrayLike, ceiling: ArrayLike) -> Sample:
        """The ratio of two means over the queries that have both: %PROC as published (metrics.md §2).

        Args:
            actual: [S, Q] (or [Q]); NaN = not applicable.

        Raises:
            InputError: If the shapes differ or there is no query.
        """
        above, below = _table(actual), _table(ceiling)
        if above.shape != below.shape:
            raise InputError(
                f"A ratio of means needs two equal shapes; found {above.shape} and {below.shape}."
            )
        applies = ~(np.isnan(above) | np.isnan(below))
        return cls(np.where(applies, above, 0.0), np.where(applies, below, 0.0), applies)

    @property
    def n(self) -> NDArray[np.int64]:
        """How many queries count for each stack: [S]."""
        return np.asarray(self.applies.sum(axis=1))

    def estimate(self) -> Floats:
        """The statistic of each stack: [S]; NaN where no query counts or the divisor is 0."""
        return quotient(self.top.sum(axis=1), self.bottom.sum(axis=1))

    def rows(self, picked: ArrayLike) -> Sample:
        """The sample of some stacks, in the given order; a stack may be repeated."""
        which = np.asarray(picked, dtype=np.intp)
        return Sample(self.top[which], self.bottom[which], self.applies[which])

    def where(self, kept: Mask) -> Sample:
        """The sample on fewer queries: [Q] for all stacks alike, or [S, Q]."""
        return Sample(self.top * kept, self.bottom * kept, self.applies & kept)


def paired_rows(sample: Sample, first: ArrayLike, second: ArrayLike) -> tuple[Sample, Sample]:
    """Two samples of pairs of stacks, each pair on the queries that count for both of its stacks.

    Args:
        first: [P], row of the first stack of each pair.
        second: [P], row of the second.

    Returns:
        The first and the second stacks of the pairs, P rows each.
    """
    one, other = sample.rows(first), sample.rows(second)
    both = one.applies & other.applies
    return one.where(both), other.where(both)


def quotient(top: Floats, bottom: Floats) -> Floats:
    """Top / bottom, NaN where the bottom is 0; the shapes broadcast."""
    top, bottom = np.broadcast_arrays(top, bottom)
    return np.asarray(np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom != 0))


def _table(values: ArrayLike) -> Floats:
    table = np.atleast_2d(np.asarray(values, dtype=np.float64))
    if table.ndim != 2 or not table.shape[1]:
        raise InputError(f"Figures of shape {table.shape} hold no query.", do="Give [stacks, queries].")
    return table


SEED = 20251112  # Default seed of every resampling here, shown to people beside the intervals

_BLOCK = 1024  # rows per matrix product; bounds the memory of one product to about 16 MB


def resample_weights(queries: int, resamples: int = 2000, seed: int = SEED) -> NDArray[np.float64]:
    """Bootstrap weights: how often each query is drawn in each resample."""
    if queries < 1 or resamples < 1:
        raise InputError(
            f"A bootstrap of {queries} queries with {resamples} resamples is not possible.",
            do="Give at least one of each.",
        )
    drawn = np.random.default_rng(seed).integers(queries, size=(resamples, queries), dtype=np.int32)
    # Counting all draws at once is many times faster than a multinomial draw per resample.
    cells = drawn + np.arange(resamples, dtype=np.int64)[:, None] * queries
    counts = np.bincount(cells.ravel(), minlength=resamples * queries)
    return counts.reshape(resamples, queries).astype(np.float64)


def bootstrap_means(
    values: ArrayLike, *, resamples: int = 2000, seed: int = SEED, level: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Percentile interval of the mean over queries, for many rows at once with shared resamples.

    A query whose value is NaN (not applicable) is left out of that row, in every resample.

    Args:
        values: [S, Q] (or [Q], taken as one row); NaN = not applicable.
        level: Coverage in (0, 1).

    Returns:
        (low [S], high [S]); NaN where fewer than two queries have a value.

    Raises:
        InputError: If the level is not within (0, 1) or there is no query.
    """
    table = np.atleast_2d(np.asarray(values, dtype=np.float64))
    if not 0 < level < 1:
        raise InputError(f"A coverage of {level} is not possible.", do="Give a level between 0 and 1.")
    weights = resample_weights(table.shape[1], resamples, seed)
    low, high = np.full(len(table), np.nan), np.full(len(table), np.nan)
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    for start in range(0, len(table), _BLOCK):
        rows = slice(start, start + _BLOCK)
        low[rows], high[rows] = _block(table[rows], weights, tails)
    return low, high


def _block(
    table: NDArray[np.float64], weights: NDArray[np.float64], tails: NDArray[np.float64]
) -> NDArray[np.float64]:
    valid = ~np.isnan(table)
    sums = np.where(valid, table, 0.0) @ weights.T
    # Rows mostly share one pattern of missing queries: one product per pattern, not per row.
    patterns, which = np.unique(valid, axis=0, return_inverse=True)
    counts = (patterns @ weights.T)[which.reshape(-1)]
    means = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    bounds = np.full((2, len(table)), np.nan)
    enough = valid.sum(axis=1) >= 2
    full = enough & (counts > 0).all(axis=1)
    bounds[:, full] = np.quantile(means[full], tails, axis=1)
    # With very few queries a resample can miss all of them: such resamples are left out.
    partial = enough & ~full
    bounds[:, partial] = np.nanquantile(means[partial], tails, axis=1)
    return bounds


def bootstrap_curve(values: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Percentile band of a curve: `bootstrap_means` at every cutoff with the same resamples.

    Args:
        values: [Q, D], the value of each query at each cutoff 1..D; NaN = not applicable.

    Returns:
        (low [D], high [D]); 95 % at each cutoff by itself.
    """
    return bootstrap_means(np.asarray(values, dtype=np.float64).T)


@lru_cache(maxsize=4096)
def quantile_ranks(n: int, q: float, level: float = 0.95) -> tuple[int, int] | None:
    """Ranks of the order statistics that bracket a quantile with at least the wanted coverage.

    Equal tails where both exist. Where one bound would fall outside the sample, the extreme value takes its
    place and the other tail gives up what that cost, so the coverage is kept.
    """
    spare = 1 - level
    lower, upper = _binomial_quantile(n, q, spare / 2), _binomial_quantile(n, q, 1 - spare / 2) + 1
    if upper > n:
        upper = n
        lower = _binomial_quantile(n, q, spare - q**n)
    elif lower < 1:
        lower = 1
        upper = n + 1 - _binomial_quantile(n, 1 - q, spare - (1 - q) ** n)
    return (lower, upper) if 1 <= lower < upper <= n else None


def _binomial_quantile(n: int, q: float, tail: float) -> int:
    """The smallest count whose cumulative binomial probability reaches `tail`; 0 for a tail of 0 or less."""
    return int(np.searchsorted(bdtr(np.arange(n + 1), n, q), tail))


def share_interval(shares: ArrayLike, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson's 95 % interval of shares that were counted over n queries each.

    Args:
        shares: 0..1.
        n: How many queries, at least 1.

    Returns:
        (low, high), of the shape of the shares.
    """
    p, z2 = np.asarray(shares, dtype=np.float64), float(ndtri(0.975)) ** 2
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (p * (1 - p) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def too_few(n: int, q: float, level: float = 0.95) -> str:
    """Why an interval of a quantile is withheld, in words."""
    return f"{n} queries are too few for a {100 * level:.0f} % interval of p{q * 100:g}"
