"""Intervals: the bootstrap over queries, for many stacks at once, and order-statistic intervals of quantiles.

The bootstrap draws one set of resamples of the queries and applies it to every stack as a matrix product, so
that intervals of differences (and joint statements about several stacks) stay paired. Its intervals are
percentile ones, or bias-corrected and accelerated ones (BCa; Efron 1987, J. Am. Stat. Assoc. 82; Efron &
Tibshirani, An Introduction to the Bootstrap, §14.3) with the jackknife's acceleration. Order-statistic
intervals assume nothing about the shape of a latency distribution (CLQ paper §4.1; David & Nagaraja, Order
Statistics, §7.1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import scipy  # which takes a quarter of a second to load its parts when they are first used
from numpy.typing import ArrayLike, NDArray

from core.arrays import Floats, Mask
from core.errors import InputError, UnknownNameError

Counts = NDArray[np.int64]
Labels = NDArray[np.intp]
IntervalMethod = Literal["Student", "percentile", "BCa"]
METHODS: tuple[IntervalMethod, ...] = ("percentile", "BCa")
"""The methods of `interval`, all of which resample."""
RESAMPLES = 2000
FEW = 10
"""Queries below which an interval of a mean is not bootstrapped."""
LEAST = 6
"""Queries that a test needs: five differences that all point the same way still give p = 2/2⁵ > .05."""


CLUSTERS = 8
"""Clusters of questions below which nothing is said beyond what was seen (metrics.md §10)."""

Alike = Callable[[Sequence[str]], Labels | None]
"""A function that numbers the groups of queries; it returns None if each query is by itself."""
SEED = 20251112  # Default seed of every resampling here, shown to people beside the intervals
_BLOCK = 1024  # rows per matrix product; bounds the memory of one product to about 16 MB
_TIE = 1e-12


def singly(query_ids: Sequence[str]) -> Labels | None:  # noqa: ARG001 - as every `Alike`
    """Return None, because each query is by itself."""
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Figures of several stacks on the same queries, whose statistic is a mean or a ratio of sums.

    One matrix product resamples either, and queries to which a measure does not apply add nothing to it. The
    columns are the U units that are resampled: the queries, or clusters with the sums of their queries. If a
    stack has no query of a cluster, the cluster does not count for it.
    """

    top: Floats  # [S, U], sums of the dividend; 0 if not applicable
    bottom: Floats  # [S, U], sums of the divisor; 0 if not applicable
    applies: Mask  # [S, U], whether the unit counts for the stack
    clusters: Labels | None = None  # [Q], the column of each query; None if each is its own
    queries: Sample | None = None  # the same query by query, if they come in clusters

    @classmethod
    def means(cls, values: ArrayLike, clusters: ArrayLike | None = None) -> Sample:
        """Make the sample of means over the queries that have a value.

        Args:
            values: [S, Q] (or [Q], taken as one stack); NaN = not applicable.
            clusters: [Q], a whole number per query, equal within a cluster; None if each is its own.

        Raises:
            InputError: If there is no query, or clusters are not one number per query.
        """
        table = _table(values)
        applies = ~np.isnan(table)
        return cls(np.where(applies, table, 0.0), applies.astype(np.float64), applies)._in(clusters)

    @classmethod
    def ratios(cls, actual: ArrayLike, ceiling: ArrayLike, clusters: ArrayLike | None = None) -> Sample:
        """Make the sample of ratios of two means over queries that have both: the published %PROC.

        Args:
            actual: [S, Q] (or [Q]); NaN = not applicable.
            clusters: As in `means`.

        Raises:
            InputError: If the shapes differ, there is no query, or clusters are not one number per query.
        """
        above, below = _table(actual), _table(ceiling)
        if above.shape != below.shape:
            raise InputError(
                f"A ratio of means needs two equal shapes; found {above.shape} and {below.shape}."
            )
        applies = ~(np.isnan(above) | np.isnan(below))
        return cls(np.where(applies, above, 0.0), np.where(applies, below, 0.0), applies)._in(clusters)

    @property
    def singly(self) -> Sample:
        """The figures query by query."""
        return self if self.queries is None else self.queries

    @property
    def n(self) -> Counts:
        """Number of queries that count for each stack: [S]."""
        return np.asarray(self.singly.applies.sum(axis=1))

    @property
    def units(self) -> Counts:
        """Number of columns (queries, or clusters of them) that count for each stack: [S]."""
        return np.asarray(self.applies.sum(axis=1))

    def estimate(self) -> Floats:
        """Return the statistic of each stack: [S], or NaN if no query counts or the divisor is 0."""
        return quotient(self.singly.top.sum(axis=1), self.singly.bottom.sum(axis=1))

    def enough(self) -> Mask:
        """Return for which stacks an interval is possible [S]: two queries, or eight clusters."""
        return self.units >= (2 if self.clusters is None else CLUSTERS)

    def parts(self) -> Floats:
        """Return what each unit adds to the statistic: [S, U], NaN if it does not count.

        Their mean is the statistic, and their spread is that of the estimate. For a mean over queries these
        are the values; for other ratios they are the linear part (delta method).
        """
        if self.clusters is None and (self.bottom == self.applies).all():
            return np.where(self.applies, self.top, np.nan)
        at, bottom = self.estimate()[:, None], self.bottom.sum(axis=1, keepdims=True)
        linear = at + quotient(self.units[:, None] * (self.top - at * self.bottom), bottom)
        return np.where(self.applies, linear, np.nan)

    def rows(self, picked: ArrayLike) -> Sample:
        """Return the sample of some stacks, in the given order; a stack may be repeated."""
        which = np.asarray(picked, dtype=np.intp)
        single = None if self.queries is None else self.queries.rows(which)
        return Sample(self.top[which], self.bottom[which], self.applies[which], self.clusters, single)

    def where(self, kept: Mask) -> Sample:
        """Return the sample on fewer queries: [Q] for all stacks alike, or [S, Q]."""
        single = self.singly
        return Sample(single.top * kept, single.bottom * kept, single.applies & kept)._in(self.clusters)

    def _in(self, clusters: ArrayLike | None) -> Sample:
        """Return the sample with a column per cluster; itself if each query is its own."""
        if clusters is None:
            return self
        labels = columns_of(clusters, self.top.shape[1])
        order, count = np.argsort(labels, kind="stable"), labels.max() + 1
        if count == len(labels):
            return self
        starts = np.searchsorted(labels[order], np.arange(count))
        top, bottom = (np.add.reduceat(part[:, order], starts, axis=1) for part in (self.top, self.bottom))
        applies = np.logical_or.reduceat(self.applies[:, order], starts, axis=1)
        return Sample(top, bottom, applies, labels, self)


def columns_of(clusters: ArrayLike, queries: int) -> Labels:
    """Return the clusters of queries, numbered from 0: [Q].

    Raises:
        InputError: If they are not one whole number per query.
    """
    labels = np.asarray(clusters)
    if labels.shape != (queries,) or labels.dtype.kind not in "iu":
        raise InputError(
            f"Clusters of {queries} queries cannot be read from {labels.dtype} of shape {labels.shape}.",
            do="Give one whole number per query.",
        )
    return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.intp)


def paired_rows(sample: Sample, first: ArrayLike, second: ArrayLike) -> tuple[Sample, Sample]:
    """Return two samples of pairs of stacks, each pair on the queries that count for both of its stacks.

    Args:
        first: [P], row of the first stack of each pair.
        second: [P], row of the second.

    Returns:
        The first and the second stacks of the pairs, P rows each.
    """
    one, other = sample.rows(first), sample.rows(second)
    both = one.singly.applies & other.singly.applies
    return one.where(both), other.where(both)


def quotient(top: Floats, bottom: Floats) -> Floats:
    """Divide top by bottom, NaN if the bottom is 0; the shapes broadcast."""
    top, bottom = np.broadcast_arrays(top, bottom)
    return np.asarray(np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom != 0))


def _table(values: ArrayLike) -> Floats:
    table = np.atleast_2d(np.asarray(values, dtype=np.float64))
    if table.ndim != 2 or not table.shape[1]:
        raise InputError(f"Figures of shape {table.shape} hold no query.", do="Give [stacks, queries].")
    return table


def resample_weights(queries: int, resamples: int = RESAMPLES, seed: int = SEED) -> Floats:
    """Count how often each query is drawn in each bootstrap resample [R, Q]; every row sums to Q."""
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


@lru_cache(maxsize=2)
def weights(queries: int, resamples: int = RESAMPLES, seed: int = SEED) -> Floats:
    """Return `resample_weights`, read-only and cached."""
    drawn = resample_weights(queries, resamples, seed)
    drawn.flags.writeable = False
    return drawn


def query_weights(
    queries: int, resamples: int = RESAMPLES, seed: int = SEED, clusters: ArrayLike | None = None
) -> Floats:
    """Return how often each query is drawn in each resample [R, Q]; queries of a cluster are drawn together.

    Without clusters, and for a `Sample`, whose columns already are clusters, these are plain `weights`.
    """
    if clusters is None:
        return weights(queries, resamples, seed)
    labels = columns_of(clusters, queries)
    return weights(int(labels.max()) + 1, resamples, seed)[:, labels]


def resampled(sample: Sample, drawn: Floats) -> Floats:
    """Return the statistic of every stack in every resample, paired: column r is one resample of the queries.

    Args:
        sample: Figures of S stacks on U units.
        drawn: [R, U], from `weights`.

    Returns:
        [S, R]; NaN if a resample has no query that counts for the stack.
    """
    statistics = np.empty((len(sample.top), len(drawn)))
    for start in range(0, len(statistics), _BLOCK):
        rows = slice(start, start + _BLOCK)
        bottoms, which = _distinct(sample.bottom[rows])
        below = bottoms @ drawn.T
        np.matmul(sample.top[rows], drawn.T, out=statistics[rows])
        if not below.all():
            statistics[rows] = quotient(statistics[rows], below[which])
        elif len(below) == 1:
            statistics[rows] /= below
        else:
            statistics[rows] /= below[which]
    return statistics


def _distinct(bottom: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """Return the distinct rows, and the index of each row among them; most stacks share one pattern."""
    if (bottom == bottom[:1]).all():
        return bottom[:1], np.zeros(len(bottom), dtype=np.intp)
    rows = np.ascontiguousarray(bottom)
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return rows[first], which


def interval(
    estimates: Floats,
    replicates: Floats,
    *,
    left_out: Floats | None = None,
    method: IntervalMethod = "percentile",
    level: float = 0.95,
) -> tuple[Floats, Floats]:
    """Return the interval of a statistic from its resampled values.

    Args:
        estimates: [P], the statistic itself.
        replicates: [P, R], its resampled values; NaN ones are left out.
        left_out: [P, Q], the statistic without one query each (NaN if the query does not count); needed
            by BCa only.
        method: "percentile" or "BCa".
        level: Coverage in (0, 1).

    Returns:
        (low [P], high [P]); NaN if there is no estimate.

    Raises:
        UnknownNameError: If the method does not exist, or BCa lacks `left_out`.
    """
    if method not in METHODS:
        raise UnknownNameError("interval", method, METHODS)
    tails = np.tile([(1 - level) / 2, (1 + level) / 2], (len(estimates), 1))
    if method == "BCa":
        if left_out is None:
            raise UnknownNameError("interval without left_out", method, METHODS[:1])
        return accelerated(estimates, replicates, left_out, tails)
    return _between(estimates, replicates, tails)


def accelerated(
    estimates: Floats, replicates: Floats, left_out: Floats, tails: Floats
) -> tuple[Floats, Floats]:
    """Return the interval of BCa as `interval` does, for tails of each row: [P, 2], shares in (0, 1)."""
    return _between(estimates, replicates, _corrected(estimates, replicates, left_out, tails))


def _between(estimates: Floats, replicates: Floats, shares: Floats) -> tuple[Floats, Floats]:
    bounds = _quantiles(replicates, shares)
    bounds[np.isnan(estimates)] = np.nan
    return bounds[:, 0], bounds[:, 1]


def _quantiles(replicates: Floats, shares: Floats) -> Floats:
    """Interpolate row by row between order statistics: values [P, R], shares [P, 2] to [P, 2]."""
    ordered = np.sort(replicates, axis=1)  # NaN goes to the end; much faster than np.quantile
    known = np.count_nonzero(~np.isnan(ordered), axis=1)
    place = shares * (np.maximum(known, 1) - 1)[:, None]
    below = np.clip(np.floor(np.nan_to_num(place)).astype(np.intp), 0, ordered.shape[1] - 1)
    above = np.minimum(below + 1, np.maximum(known - 1, 0)[:, None])
    low, high = np.take_along_axis(ordered, below, 1), np.take_along_axis(ordered, above, 1)
    return np.asarray(low + (high - low) * (place - below))


def _corrected(estimates: Floats, replicates: Floats, left_out: Floats, tails: Floats) -> Floats:
    """Return the shares of BCa; a statistic that never varies keeps the percentile ones."""
    gap = replicates - estimates[:, None]
    # Sums of the same values in another order differ in the last digit: they are ties, and ties count half.
    near = _TIE * np.maximum(1.0, np.abs(estimates))[:, None]
    known = np.maximum(np.count_nonzero(~np.isnan(gap), axis=1), 1)
    below = (
        np.count_nonzero(gap < -near, axis=1) + np.count_nonzero(np.abs(gap) <= near, axis=1) / 2
    ) / known
    bias = scipy.special.ndtri(np.clip(below, 0.5 / known, 1 - 0.5 / known))[:, None]
    shifted = bias + scipy.special.ndtri(tails)
    return np.asarray(scipy.special.ndtr(bias + shifted / (1 - _acceleration(left_out)[:, None] * shifted)))


def without_one(sample: Sample) -> Floats:
    """Return the statistic with one unit left out: [S, U], NaN if the unit does not count."""
    rest = sample.bottom.sum(axis=1, keepdims=True) - sample.bottom
    left = quotient(sample.top.sum(axis=1, keepdims=True) - sample.top, rest)
    return np.where(sample.applies, left, np.nan)


def _acceleration(left_out: Floats) -> Floats:
    """Return a sixth of the skewness of jackknife values: [P, Q] to [P]; 0 if they do not vary."""
    known = ~np.isnan(left_out)
    n = np.maximum(known.sum(axis=1), 1)
    middle = np.sum(left_out, axis=1, where=known) / n
    away = np.where(known, middle[:, None] - left_out, 0.0)
    scale = np.sqrt(np.sum(away**2, axis=1))
    flat = scale <= _TIE * np.maximum(1.0, np.abs(middle))
    return np.where(flat, 0.0, np.sum(away**3, axis=1) / np.where(flat, 1.0, 6 * scale**3))


@lru_cache(maxsize=4096)
def quantile_ranks(n: int, q: float, level: float = 0.95) -> tuple[int, int] | None:
    """Return ranks of the order statistics that bracket a quantile with at least the wanted coverage.

    The tails are equal if both exist. If one bound falls outside the sample, the extreme value replaces it
    and the other tail shrinks by as much, so that the coverage is kept.
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
    """Find the least count whose binomial probability, summed, reaches `tail`; 0 for a tail of 0 or less."""
    return int(np.searchsorted(scipy.special.bdtr(np.arange(n + 1), n, q), tail))


def too_few(n: int, q: float) -> str:
    """Explain why an interval of a quantile is withheld, in words."""
    return f"{n} queries are too few for a 95 % interval of p{q * 100:g}"
