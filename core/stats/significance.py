"""Tests of whether a difference between stacks is more than chance: bootstrap, randomisation, effect, power.

Everything compares the same queries: one set of resamples and one set of swaps is drawn from the seed and
applied to every stack as a matrix product, so that statements about several stacks hold jointly.

`compare` puts difference, interval, test, effect size and power of pairs of stacks into one table.

Paired randomisation test: would a difference as large arise if the two stacks' labels meant nothing? Under
the null hypothesis the two figures of a query could have come from either stack. For a mean, swapping them
flips the sign of the query's difference (Fisher's randomisation test; Smucker, Allan & Carterette 2007, CIKM,
for retrieval); for a ratio of means both parts are swapped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtri, ndtri, stdtr

from core.arrays import Floats, Ints, Mask
from core.stats.intervals import (
    FEW,
    RESAMPLES,
    SEED,
    IntervalMethod,
    Sample,
    interval,
    paired_rows,
    quotient,
    resampled,
    weights,
    without_one,
)
from core.stats.means import student

ALPHA = 0.05
POWER = 0.8
ROUNDING = 1e-12  # Largest difference between sums of the same values in another order; 0.3 − 0.2 is 0.1
TOLERANCE = 0.01  # Two scores of a query that differ by no more are a tie, unless the user says otherwise


EXACT_UP_TO = 14  # Number of differing queries up to which all 2^n swaps are tried
PERMUTATIONS = 10_000
_DRAWN = 2500  # swaps per matrix product; bounds its memory
_SLACK = 1e-9  # rounding error between sums of the same numbers in another order
_Z = float(ndtri(1 - ALPHA / 2) + ndtri(POWER))
PILOT = 0.8
"""Level of a pilot's limits for further questions: each end holds in nine of ten pilots."""
_Test = Literal["randomisation", "paired t", "Wilcoxon"]
TESTS: tuple[_Test, ...] = ("randomisation", "paired t", "Wilcoxon")
Correction = Literal["Holm", "Benjamini–Hochberg"]
_BLOCK = 512  # pairs at a time; bounds the memory of their resamples
_DIGITS = 12


def detectable(sd: ArrayLike, n: ArrayLike) -> Floats:
    """Return the smallest true difference that n queries detect with `POWER` at the level `ALPHA`."""
    counts = np.asarray(n, dtype=np.float64)
    spread = np.asarray(sd, dtype=np.float64)
    return np.where(counts >= 2, _Z * spread / np.sqrt(np.maximum(counts, 1)), np.nan)


def queries_needed(sd: ArrayLike, difference: ArrayLike) -> Floats:
    """Return how many queries detect a difference with `POWER` at the level `ALPHA`; NaN for 0."""
    ratio = quotient(np.asarray(sd, dtype=np.float64), np.abs(np.asarray(difference, dtype=np.float64)))
    return np.ceil((_Z * ratio) ** 2)


def spread_limits(sd: ArrayLike, n: ArrayLike) -> tuple[Floats, Floats]:
    """Return the `PILOT` limits of the standard deviation from n questions (chi-square); NaN below two."""
    seen, free = np.asarray(sd, dtype=np.float64), np.asarray(n, dtype=np.float64) - 1
    ends = (chdtri(np.maximum(free, 1), tail) for tail in ((1 - PILOT) / 2, (1 + PILOT) / 2))
    low, high = (np.where(free >= 1, seen * np.sqrt(np.maximum(free, 1) / end), np.nan) for end in ends)
    return low, high


def needed_limits(gap: ArrayLike, sd: ArrayLike, n: ArrayLike) -> tuple[Floats, Floats]:
    """Return the fewest and the most questions that may detect a difference estimated from n of them.

    The ends follow from the `PILOT` limits of the difference in standard deviations (Hedges & Olkin 1985,
    §5), so that both its parts are uncertain. The larger end has `POWER` in nine of ten pilots; it is NaN if
    the true difference may be zero.
    """
    counts = np.maximum(np.asarray(n, dtype=np.float64), 1)
    size = quotient(np.abs(np.asarray(gap, dtype=np.float64)), np.asarray(sd, dtype=np.float64))
    reach = ndtri((1 + PILOT) / 2) * np.sqrt(1 / counts + size**2 / (2 * counts))
    fewest, most = queries_needed(1.0, size + reach), queries_needed(1.0, np.maximum(size - reach, 0.0))
    return fewest, most


def differences(one: Sample, other: Sample) -> Floats:
    """Return what each unit adds to the difference, other − one: [P, U], NaN if it does not count.

    For a mean over queries that is the plain difference; see `Sample.parts`.
    """
    return other.parts() - one.parts()


def spread(deltas: Floats) -> Floats:
    """Return the standard deviation over queries that count (divisor n − 1): [P, Q] to [P], NaN below two."""
    known = ~np.isnan(deltas)
    n = known.sum(axis=1)
    middle = quotient(np.sum(deltas, axis=1, where=known), n.astype(np.float64))
    squares = np.sum((deltas - middle[:, None]) ** 2, axis=1, where=known)
    deviation: Floats = np.sqrt(np.where(n > 1, squares / np.maximum(n - 1, 1), np.nan))
    return deviation


def student_ends(deltas: Floats, tail: float, clusters: ArrayLike | None = None) -> tuple[Floats, Floats]:
    """Return the ends of an interval of each mean by Student's t: [P, Q] to two [P].

    Args:
        deltas: One row per pair of stacks; NaN = the query does not count.
        tail: The chance that is left beyond either end.
        clusters: [Q], which queries belong together; None if each is its own.

    Returns:
        Low and high; NaN below two queries, and below `CLUSTERS` clusters.
    """
    sample = Sample.means(deltas, clusters)
    ends = np.stack(student(sample.parts(), sample.bottom, tail))
    ends[:, ~sample.enough()] = np.nan
    return ends[0], ends[1]


def outcomes(deltas: Floats, tolerance: float) -> tuple[Ints, ...]:
    """Count the queries on which the second stack wins, ties and loses: three [P].

    Args:
        deltas: [P, Q], from `differences`, with the sign flipped if lower is better.
        tolerance: Largest difference that is a tie.
    """
    limit = tolerance + ROUNDING
    wins, losses = (deltas > limit).sum(axis=1), (deltas < -limit).sum(axis=1)
    return wins, (~np.isnan(deltas)).sum(axis=1) - wins - losses, losses


def superiority(deltas: Floats) -> Floats:
    """Return P(second > first) + ½ P(equal) for a random query [P] (Vargha & Delaney 2000, paired)."""
    wins, ties, losses = outcomes(deltas, 0.0)
    return quotient(wins + ties / 2, (wins + ties + losses).astype(np.float64))


def holm(p: ArrayLike) -> Floats:
    """Adjust the p-values of a family so that the chance of any false alarm stays below the level.

    Step-down Bonferroni (Holm 1979, Scand. J. Statist. 6): the smallest of m is multiplied by m, the next by
    m − 1 and so on, never below an earlier one, at most 1.
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]
    adjusted = np.full(values.shape, np.nan)
    steps = values[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Adjust the p-values of a family so that at most the level's share of discoveries is false on average.

    Step-up (Benjamini & Hochberg 1995, J. R. Stat. Soc. B 57): the i-th smallest of m times m / i, never
    above a later one, at most 1. It finds more than Holm's if many pairs differ (Otero et al.,
    arXiv:2501.03930).
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]
    adjusted = np.full(values.shape, np.nan)
    steps = values[order] * len(order) / np.arange(1, len(order) + 1)
    adjusted[order] = np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1.0)
    return adjusted


CORRECTIONS: Mapping[Correction, Callable[[ArrayLike], Floats]] = {
    "Holm": holm,
    "Benjamini–Hochberg": benjamini_hochberg,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Settings of a comparison, all of which are shown beside the numbers."""

    method: IntervalMethod = (
        "Student"  # kind of interval: the one used on every page, or a bootstrap of the queries
    )
    level: float = 0.95  # its coverage, in (0, 1)
    tolerance: float = TOLERANCE  # largest per-query difference that is a tie
    resamples: int = RESAMPLES  # number of bootstrap resamples
    permutations: int = PERMUTATIONS  # number of swaps if they are drawn
    seed: int = SEED  # seed of both
    test: _Test = "randomisation"  # the test that gives p
    correction: Correction = "Holm"  # adjusts p over the pairs
    higher_is_better: bool = True  # decides who wins a query


def compare(sample: Sample, first: ArrayLike, second: ArrayLike, setup: Setup | None = None) -> pl.DataFrame:
    """Compare pairs of stacks, each on the queries that count for both.

    Args:
        first: [P], row of the first stack of each pair.
        second: [P], row of the second; differences are second − first.

    Returns:
        One row per pair: first, second, n (queries), units (their clusters; n where each is its own),
        value_first, value_second, difference, low, high (null below two queries, and below `CLUSTERS`
        clusters, as is p), p (two-sided), exact (every swap was tried), p_holm (adjusted over these pairs),
        p_adjusted (the same by the correction that was chosen),
        wins, ties, losses (of the second, with the tolerance), sd (of the queries' differences; of their
        linear part for a ratio of means), d_z = difference / sd (null if nothing varies), superiority,
        detectable (smallest difference that these units show at 80 % power), detectable_high (where the
        spread is at its upper `PILOT` limit), needed (queries that would show the observed difference, in
        clusters of the same size), needed_low and needed_high (see `needed_limits`).
    """
    chosen = setup or Setup()
    left, right = (np.asarray(rows, dtype=np.intp) for rows in (first, second))
    blocks = [
        _block(sample, left[start : start + _BLOCK], right[start : start + _BLOCK], chosen)
        for start in range(0, max(1, len(left)), _BLOCK)
    ]
    p, exact = _tested(sample, left, right, chosen)
    return (
        pl.concat([pl.DataFrame(block) for block in blocks])
        .with_columns(pl.Series("p", p), pl.Series("exact", exact), pl.Series("p_holm", holm(p)))
        .with_columns(pl.Series("p_adjusted", CORRECTIONS[chosen.correction](p)))
        .with_columns(pl.col(pl.Float64).fill_nan(None))
    )


def _block(sample: Sample, left: NDArray[np.intp], right: NDArray[np.intp], setup: Setup) -> dict[str, Any]:
    one, other = paired_rows(sample, left, right)
    before, after = one.estimate(), other.estimate()
    low, high = bounds(one, other, setup)
    deltas = differences(one.singly, other.singly)
    gains = deltas if setup.higher_is_better else -deltas
    wins, ties, losses = outcomes(gains, setup.tolerance)
    sd, n, units = spread(deltas), one.n, one.units
    apart = sd if one.clusters is None else spread(differences(one, other))
    gap = np.where(np.abs(after - before) <= ROUNDING, 0.0, after - before)
    return {
        "first": left,
        "second": right,
        "n": n,
        "units": units,
        "value_first": before,
        "value_second": after,
        "difference": gap,
        "low": low,
        "high": high,
        "wins": wins,
        "ties": ties,
        "losses": losses,
        "sd": sd,
        "d_z": quotient(gap, np.where(sd > ROUNDING, sd, 0.0)),
        "superiority": superiority(gains),
        "detectable": detectable(apart, units),
        "detectable_high": detectable(spread_limits(apart, units)[1], units),
        **_needed(gap, apart, units, n / np.maximum(units, 1)),
    }


def _needed(gap: Floats, apart: Floats, units: Ints, each: Floats) -> dict[str, Floats]:
    """Return how many questions detect the observed difference, in clusters of the given size."""
    fewest, most = needed_limits(gap, apart, units)
    counts = {"needed": queries_needed(apart, gap), "needed_low": fewest, "needed_high": most}
    return {name: np.ceil(many * each) for name, many in counts.items()}


def bounds(one: Sample, other: Sample, setup: Setup) -> tuple[Floats, Floats]:
    """Return the interval of each paired difference, other − one: low and high [P]; NaN below two queries.

    The interval is Student's, from `student_ends`; a bootstrap that is asked for replaces it from `FEW` units
    on. Fewer units that are all equal have no interval.
    """
    ends = np.stack(student(differences(one, other), one.bottom + other.bottom, (1 - setup.level) / 2))
    few = one.units < FEW
    ends[:, ~one.enough() | (few & (ends[1] - ends[0] <= ROUNDING))] = np.nan
    if setup.method == "Student":
        return ends[0], ends[1]
    replicates = _replicates(one, other, weights(one.top.shape[1], setup.resamples, setup.seed))
    gap = np.where(one.enough(), other.estimate() - one.estimate(), np.nan)
    left_out = without_one(other) - without_one(one) if setup.method == "BCa" else None
    drawn = np.stack(interval(gap, replicates, left_out=left_out, method=setup.method, level=setup.level))
    low, high = np.where(few, ends, drawn)
    return low, high


def _replicates(one: Sample, other: Sample, drawn: Floats) -> Floats:
    if (one.bottom == other.bottom).all():  # means: one product, and equal stacks differ by exactly 0
        return resampled(Sample(other.top - one.top, one.bottom, one.applies), drawn)
    return resampled(other, drawn) - resampled(one, drawn)


def _tested(
    sample: Sample, left: NDArray[np.intp], right: NDArray[np.intp], setup: Setup
) -> tuple[Floats, Mask]:
    """Return each pair's p by the chosen test, and whether every swap was tried."""
    if setup.test == "randomisation":
        return swap_test(sample, left, right, draws=setup.permutations, seed=setup.seed)
    one, other = paired_rows(sample, left, right)
    test = _student if setup.test == "paired t" else _signed_ranks
    p = np.array([test(deltas[~np.isnan(deltas)]) for deltas in differences(one, other)])
    return np.where(one.enough(), p, np.nan), np.zeros(len(left), dtype=np.bool_)


def _student(deltas: Floats) -> float:
    """Return the two-sided p of the paired t-test; 1 if both are equal on each unit."""
    if not (np.abs(deltas) > ROUNDING).any():
        return 1.0
    error = deltas.std(ddof=1) / np.sqrt(len(deltas))
    apart = abs(deltas.mean()) / error if error > ROUNDING else np.inf
    return float(2 * stdtr(len(deltas) - 1, -apart))


def _signed_ranks(deltas: Floats) -> float:
    """Return the two-sided p of Wilcoxon's signed ranks; units without a difference are left out."""
    from scipy.stats import wilcoxon  # noqa: PLC0415 - takes as long to import as a page to draw

    moved = np.round(deltas, _DIGITS)  # equal ones tie
    moved = moved[moved != 0]
    return float(wilcoxon(moved).pvalue) if len(moved) else 1.0


def swap_test(
    sample: Sample, first: ArrayLike, second: ArrayLike, *, draws: int = PERMUTATIONS, seed: int = SEED
) -> tuple[Floats, Mask]:
    """Return two-sided p-values of differences between stacks; NaN below `CLUSTERS` clusters.

    All queries of a cluster are swapped together. Units on which both stacks have the same figures stay as
    they are under any swap and are left out of the enumeration. A drawn test counts the observed assignment
    as one of the draws, (b + 1) / (m + 1), so that it is never 0 and keeps its level (Phipson & Smyth 2010).
    """
    one, other = paired_rows(sample, first, second)
    moved = (one.top != other.top) | (one.bottom != other.bottom)
    exact = moved.sum(axis=1) <= EXACT_UP_TO
    values = np.full(len(moved), np.nan)
    for pair in np.flatnonzero(exact & one.applies.any(axis=1)):
        values[pair] = _enumerated(_Pairs.of(one.rows([pair]), other.rows([pair])), moved[pair])
    drawn = np.flatnonzero(~exact)
    if len(drawn):
        values[drawn] = _drawn(_Pairs.of(one.rows(drawn), other.rows(drawn)), draws, seed)
    if one.clusters is not None:
        values[~one.enough()] = np.nan
    return values, exact


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Sums that swaps leave alone, and the parts that they move: pairs [P], queries [P, Q]."""

    above: Floats
    below: Floats
    first: tuple[Floats, Floats]
    second: tuple[Floats, Floats]

    @classmethod
    def of(cls, one: Sample, other: Sample) -> _Pairs:
        sums = [(sample.top.sum(axis=1), sample.bottom.sum(axis=1)) for sample in (one, other)]
        return cls(other.top - one.top, other.bottom - one.bottom, sums[0], sums[1])


def _enumerated(pairs: _Pairs, moved: Mask) -> float:
    """Return the p of one pair over all swaps.

    Swapping every query as well only changes the sign, so the first one stays.
    """
    queries = np.flatnonzero(moved)
    if not len(queries):
        return 1.0
    swapped = queries[1:]
    patterns = _bits(len(swapped))
    part = replace(pairs, above=pairs.above[:, swapped], below=pairs.below[:, swapped])
    return float(_as_extreme(part, patterns)[0] / len(patterns))


@lru_cache(maxsize=EXACT_UP_TO)
def _bits(width: int) -> Floats:
    """Return every pattern of 0 and 1: [2^width, width]."""
    numbers = np.arange(2**width, dtype=np.int64)[:, None]
    return ((numbers >> np.arange(width)) & 1).astype(np.float64)


def _drawn(pairs: _Pairs, draws: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    reached = np.zeros(len(pairs.above), dtype=np.int64)
    for start in range(0, draws, _DRAWN):
        size = (min(_DRAWN, draws - start), pairs.above.shape[1])
        reached += _as_extreme(pairs, rng.integers(2, size=size, dtype=np.int8).astype(np.float64))
    return np.asarray((reached + 1) / (draws + 1))


def _as_extreme(pairs: _Pairs, patterns: Floats) -> Ints:
    """Count the swaps whose difference is at least as large as the observed one: [M, Q] patterns to [P]."""
    (top, bottom), (other_top, other_bottom) = pairs.first, pairs.second
    shift = pairs.above @ patterns.T
    if not pairs.below.any():  # means: the divisors stay, so the sums decide
        gap = other_top - top
        slack = _SLACK * np.maximum(np.abs(gap), np.abs(pairs.above).sum(axis=1))
        shift *= -2
        shift += gap[:, None]
        reached = np.abs(shift, out=shift) >= (np.abs(gap) - slack)[:, None]
        return np.asarray(np.count_nonzero(reached, axis=1))
    base = pairs.below @ patterns.T
    first = quotient(top[:, None] + shift, bottom[:, None] + base)
    second = quotient(other_top[:, None] - shift, other_bottom[:, None] - base)
    observed = np.abs(quotient(other_top, other_bottom) - quotient(top, bottom))[:, None]
    scale = np.maximum(np.abs(first), np.abs(second))
    # A swap that leaves one side without a divisor counts as the most extreme.
    smaller = np.abs(second - first) < observed - _SLACK * scale
    return np.asarray(np.count_nonzero(~smaller, axis=1))
