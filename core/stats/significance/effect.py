"""How large a difference is beside its spread, and how small a one a number of queries can show.

Normal approximation on the paired standard deviation sd: the mean difference of n queries has standard error
sd / √n; a two-sided test at level alpha detects a true difference d with the given power when
d ≥ (z(1 − alpha/2) + z(power)) · sd / √n (Cohen 1988, §2.3, for the paired case). No correction for a family.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from core.stats.significance.sample import Floats, Sample, quotient

ALPHA = 0.05
POWER = 0.8
TOLERANCE = 0.01
"""Two scores of a query that differ by no more are a tie, unless the user says otherwise."""


def detectable(sd: ArrayLike, n: ArrayLike, *, alpha: float = ALPHA, power: float = POWER) -> Floats:
    """The smallest true difference that n queries show with the given power."""
    counts = np.asarray(n, dtype=np.float64)
    spread = np.asarray(sd, dtype=np.float64)
    return np.where(counts >= 2, _z(alpha, power) * spread / np.sqrt(np.maximum(counts, 1)), np.nan)


def queries_needed(
    sd: ArrayLike, difference: ArrayLike, *, alpha: float = ALPHA, power: float = POWER
) -> Floats:
    """How many queries show a difference of that size with the given power; NaN for a difference of 0."""
    ratio = quotient(np.asarray(sd, dtype=np.float64), np.abs(np.asarray(difference, dtype=np.float64)))
    return np.ceil((_z(alpha, power) * ratio) ** 2)


def _z(alpha: float, power: float) -> float:
    return float(ndtri(1 - alpha / 2) + ndtri(power))


def differences(one: Sample, other: Sample) -> Floats:
    """Each query's share in the difference, other − one: [P, Q], NaN where the query does not count.

    For a mean that is the plain difference. For a ratio of means it is the linear part (delta method): its
    mean is the difference of the ratios and its spread that of the estimate.
    """
    parts = []
    for each in (one, other):
        bottom = each.bottom.sum(axis=1, keepdims=True)
        n = each.applies.sum(axis=1, keepdims=True)
        at = quotient(each.top.sum(axis=1, keepdims=True), bottom)
        parts.append(at + quotient(n * (each.top - at * each.bottom), bottom))
    return np.where(one.applies, parts[1] - parts[0], np.nan)


def spread(deltas: Floats) -> Floats:
    """Standard deviation over the queries that count (n − 1 below): [P, Q] to [P], NaN below two."""
    known = ~np.isnan(deltas)
    n = known.sum(axis=1)
    middle = quotient(np.sum(deltas, axis=1, where=known), n.astype(np.float64))
    squares = np.sum((deltas - middle[:, None]) ** 2, axis=1, where=known)
    made: Floats = np.sqrt(np.where(n > 1, squares / np.maximum(n - 1, 1), np.nan))
    return made


def outcomes(deltas: Floats, tolerance: float) -> tuple[NDArray[np.int64], ...]:
    """Queries that the second stack wins, ties and loses: three [P].

    Args:
        deltas: [P, Q], from `differences`; turned where lower is better.
        tolerance: Largest difference that is a tie.
    """
    limit = tolerance + 1e-12  # 0.3 − 0.2 is a tie at a tolerance of 0.1
    wins, losses = (deltas > limit).sum(axis=1), (deltas < -limit).sum(axis=1)
    return wins, (~np.isnan(deltas)).sum(axis=1) - wins - losses, losses


def superiority(deltas: Floats) -> Floats:
    """P(second > first) + ½ P(equal) for a query drawn at random (Vargha & Delaney 2000, paired): [P]."""
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
