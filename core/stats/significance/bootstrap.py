"""Bootstrap over queries for many stacks at once: one matrix of resampling weights, one product.

The resamples are those of `core.stats.intervals`, so an interval here and one in the stack table agree.
Percentile intervals, and bias-corrected and accelerated ones (BCa; Efron 1987, J. Am. Stat. Assoc. 82;
Efron & Tibshirani, An Introduction to the Bootstrap, §14.3) with the jackknife's acceleration.

Paired randomisation test: would a difference as large arise if the two stacks' labels meant nothing?

Under the null hypothesis the two figures of a query could have come from either stack. For a mean, swapping
them flips the sign of the query's difference (Fisher's randomisation test; Smucker, Allan & Carterette 2007,
CIKM, for retrieval); for a ratio of means both parts are swapped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from core.errors import UnknownNameError
from core.stats.intervals import SEED, Floats, Sample, paired_rows, quotient, resample_weights

Method = Literal["percentile", "BCa"]
METHODS: tuple[Method, ...] = ("percentile", "BCa")
RESAMPLES = 2000
_BLOCK = 1024  # rows per matrix product; bounds its memory to about 16 MB
_TIE = 1e-12


@lru_cache(maxsize=2)
def weights(queries: int, resamples: int = RESAMPLES, seed: int = SEED) -> Floats:
    """How often each query is drawn in each resample, kept for further calls.

    Args:
        queries: Number of queries Q, at least 1.
        resamples: Number of resamples R, at least 1.

    Returns:
        Counts [R, Q], read-only; every row sums to Q.

    Raises:
        InputError: If either number is below 1.
    """
    made = resample_weights(queries, resamples, seed)
    made.flags.writeable = False
    return made


def resampled(sample: Sample, drawn: Floats) -> Floats:
    """The statistic of every stack in every resample, paired: column r is one resample of the queries.

    Args:
        sample: Figures of S stacks on Q queries.
        drawn: [R, Q], from `weights`.

    Returns:
        [S, R]; NaN where a resample has no query that counts for the stack.
    """
    made = np.empty((len(sample.top), len(drawn)))
    for rows in _blocks(len(made)):
        bottoms, which = _distinct(sample.bottom[rows])
        below = bottoms @ drawn.T
        np.matmul(sample.top[rows], drawn.T, out=made[rows])
        if not below.all():
            made[rows] = quotient(made[rows], below[which])
        elif len(below) == 1:
            made[rows] /= below
        else:
            made[rows] /= below[which]
    return made


def _blocks(rows: int) -> list[slice]:
    return [slice(start, start + _BLOCK) for start in range(0, rows, _BLOCK)]


def _distinct(bottom: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """The different rows, and which of them each row is: stacks mostly share one pattern of queries."""
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
    method: Method = "percentile",
    level: float = 0.95,
) -> tuple[Floats, Floats]:
    """Interval of a statistic from its resampled values.

    Args:
        estimates: [P], the statistic itself.
        replicates: [P, R], its resampled values; NaN ones are left out.
        left_out: [P, Q], the statistic without one query each (NaN where the query does not count); needed
            by BCa only.
        method: "percentile" or "BCa".
        level: Coverage in (0, 1).

    Returns:
        (low [P], high [P]); NaN where there is no estimate.

    Raises:
        UnknownNameError: If the method does not exist, or BCa lacks `left_out`.
    """
    if method not in METHODS:
        raise UnknownNameError("interval", method, METHODS)
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    shares = np.broadcast_to(tails, (len(estimates), 2))
    if method == "BCa":
        if left_out is None:
            raise UnknownNameError("interval without left_out", method, METHODS[:1])
        shares = _corrected(estimates, replicates, left_out, tails)
    bounds = _quantiles(replicates, shares)
    bounds[np.isnan(estimates)] = np.nan
    return bounds[:, 0], bounds[:, 1]


def _quantiles(replicates: Floats, shares: Floats) -> Floats:
    """Row by row, linearly between order statistics: values [P, R], shares [P, 2] to [P, 2]."""
    ordered = np.sort(replicates, axis=1)  # NaN goes to the end; much faster than np.quantile
    known = np.count_nonzero(~np.isnan(ordered), axis=1)
    place = shares * (np.maximum(known, 1) - 1)[:, None]
    below = np.clip(np.floor(np.nan_to_num(place)).astype(np.intp), 0, ordered.shape[1] - 1)
    above = np.minimum(below + 1, np.maximum(known - 1, 0)[:, None])
    low, high = np.take_along_axis(ordered, below, 1), np.take_along_axis(ordered, above, 1)
    return np.asarray(low + (high - low) * (place - below))


def _corrected(estimates: Floats, replicates: Floats, left_out: Floats, tails: Floats) -> Floats:
    """The shares of BCa; a statistic that never varies keeps the percentile ones."""
    gap = replicates - estimates[:, None]
    # Sums of the same values in another order differ in the last digit: they are ties, and ties count half.
    near = _TIE * np.maximum(1.0, np.abs(estimates))[:, None]
    known = np.maximum(np.count_nonzero(~np.isnan(gap), axis=1), 1)
    below = (
        np.count_nonzero(gap < -near, axis=1) + np.count_nonzero(np.abs(gap) <= near, axis=1) / 2
    ) / known
    bias = ndtri(np.clip(below, 0.5 / known, 1 - 0.5 / known))[:, None]
    shifted = bias + ndtri(tails)[None, :]
    return np.asarray(ndtr(bias + shifted / (1 - _acceleration(left_out)[:, None] * shifted)))


def _acceleration(left_out: Floats) -> Floats:
    """Skewness of the jackknife values, over six: [P, Q] to [P]; 0 where they do not vary."""
    known = ~np.isnan(left_out)
    n = np.maximum(known.sum(axis=1), 1)
    middle = np.sum(left_out, axis=1, where=known) / n
    away = np.where(known, middle[:, None] - left_out, 0.0)
    scale = np.sqrt(np.sum(away**2, axis=1))
    flat = scale <= _TIE * np.maximum(1.0, np.abs(middle))
    return np.where(flat, 0.0, np.sum(away**3, axis=1) / np.where(flat, 1.0, 6 * scale**3))


def share_best(replicates: Floats) -> Floats:
    """In which share of the resamples each stack is the best; equal bests share one."""
    if not replicates.size:
        return np.zeros(len(replicates))
    filled = np.where(np.isnan(replicates), -np.inf, replicates)
    top = filled.max(axis=0)
    best = (filled >= top - _TIE) & np.isfinite(top)
    shares = best / np.maximum(best.sum(axis=0), 1)
    return np.asarray(shares.sum(axis=1) / max(1, int(np.isfinite(top).sum())))


EXACT_UP_TO = 14  # Queries that differ, up to which all 2^n swaps are tried
PERMUTATIONS = 10_000
_DRAWN = 2500  # swaps per matrix product; bounds its memory
_ROUNDING = 1e-9  # sums of the same numbers in another order


@dataclass(frozen=True, slots=True)
class Swaps:
    """How swaps are drawn where there are too many to try all."""

    draws: int = PERMUTATIONS  # number of random swaps
    seed: int = SEED  # seed of the generator


def swap_test(
    sample: Sample, first: ArrayLike, second: ArrayLike, swaps: Swaps | None = None
) -> tuple[Floats, NDArray[np.bool_]]:
    """Two-sided p-values of differences between stacks.

    Queries on which both stacks have the same figures stay as they are under any swap and are left out of the
    enumeration. A drawn test counts the observed assignment as one of the draws, (b + 1) / (m + 1), so that
    it is never 0 and keeps its level (Phipson & Smyth 2010).
    """
    one, other = paired_rows(sample, first, second)
    moved = (one.top != other.top) | (one.bottom != other.bottom)
    exact = moved.sum(axis=1) <= EXACT_UP_TO
    values = np.full(len(moved), np.nan)
    for pair in np.flatnonzero(exact & one.applies.any(axis=1)):
        values[pair] = _enumerated(_Pairs.of(one.rows([pair]), other.rows([pair])), moved[pair])
    drawn = np.flatnonzero(~exact)
    if len(drawn):
        values[drawn] = _drawn(_Pairs.of(one.rows(drawn), other.rows(drawn)), swaps or Swaps())
    return values, exact


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """What swaps move, and the sums that they move: pairs [P], queries [P, Q]."""

    above: Floats
    below: Floats
    first: tuple[Floats, Floats]
    second: tuple[Floats, Floats]

    @classmethod
    def of(cls, one: Sample, other: Sample) -> _Pairs:
        sums = [(each.top.sum(axis=1), each.bottom.sum(axis=1)) for each in (one, other)]
        return cls(other.top - one.top, other.bottom - one.bottom, sums[0], sums[1])


def _enumerated(pairs: _Pairs, moved: NDArray[np.bool_]) -> float:
    """All swaps of one pair. To swap every query as well only changes the sign, so the first one stays."""
    queries = np.flatnonzero(moved)
    if not len(queries):
        return 1.0
    swapped = queries[1:]
    patterns = _bits(len(swapped))
    part = replace(pairs, above=pairs.above[:, swapped], below=pairs.below[:, swapped])
    return float(_as_extreme(part, patterns)[0] / len(patterns))


@lru_cache(maxsize=EXACT_UP_TO)
def _bits(width: int) -> Floats:
    """Every pattern of 0 and 1: [2^width, width]."""
    numbers = np.arange(2**width, dtype=np.int64)[:, None]
    return ((numbers >> np.arange(width)) & 1).astype(np.float64)


def _drawn(pairs: _Pairs, swaps: Swaps) -> Floats:
    rng = np.random.default_rng(swaps.seed)
    reached = np.zeros(len(pairs.above), dtype=np.int64)
    for start in range(0, swaps.draws, _DRAWN):
        size = (min(_DRAWN, swaps.draws - start), pairs.above.shape[1])
        reached += _as_extreme(pairs, rng.integers(2, size=size, dtype=np.int8).astype(np.float64))
    return np.asarray((reached + 1) / (swaps.draws + 1))


def _as_extreme(pairs: _Pairs, patterns: Floats) -> NDArray[np.int64]:
    """How many swaps give a difference at least as large as the observed one: [M, Q] patterns to [P]."""
    (top, bottom), (other_top, other_bottom) = pairs.first, pairs.second
    shift = pairs.above @ patterns.T
    if not pairs.below.any():  # means: the divisors stay, so the sums decide
        gap = other_top - top
        slack = _ROUNDING * np.maximum(np.abs(gap), np.abs(pairs.above).sum(axis=1))
        shift *= -2
        shift += gap[:, None]
        reached = np.abs(shift, out=shift) >= (np.abs(gap) - slack)[:, None]
        return np.asarray(np.count_nonzero(reached, axis=1))
    base = pairs.below @ patterns.T
    first = quotient(top[:, None] + shift, bottom[:, None] + base)
    second = quotient(other_top[:, None] - shift, other_bottom[:, None] - base)
    observed = np.abs(quotient(other_top, other_bottom) - quotient(top, bottom))[:, None]
    scale = np.maximum(np.abs(first), np.abs(second))
    # A swap that leaves one side without a divisor is as extreme as can be.
    smaller = np.abs(second - first) < observed - _ROUNDING * scale
    return np.asarray(np.count_nonzero(~smaller, axis=1))
