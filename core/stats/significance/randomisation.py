"""Paired randomisation test: would a difference as large arise if the two stacks' labels meant nothing?

Under the null hypothesis the two figures of a query could have come from either stack. For a mean, swapping
them flips the sign of the query's difference (Fisher's randomisation test; Smucker, Allan & Carterette 2007,
CIKM, for retrieval); for a ratio of means both parts are swapped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.stats.intervals import SEED
from core.stats.significance.sample import Floats, Sample, paired_rows, quotient

EXACT_UP_TO = 14
"""Queries that differ, up to which all 2^n swaps are tried."""
PERMUTATIONS = 10_000
_BLOCK = 2500  # swaps per matrix product; bounds its memory
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
    for start in range(0, swaps.draws, _BLOCK):
        size = (min(_BLOCK, swaps.draws - start), pairs.above.shape[1])
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
