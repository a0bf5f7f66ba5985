"""Measures of how well a score separates two classes: the area under the curve, and the cost of a threshold.

The interval is the score interval of Newcombe (2006, Statistics in Medicine 25, part 2, method 5): all areas
that are compatible with the observed one, given their own deviation by Hanley and McNeil's formula. It
holds even if few pairs are misordered, or none. With more misordered pairs its variance is drawn towards that
of DeLong, DeLong and Clarke-Pearson (1988, Biometrics 44), which assumes no shape.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri, stdtrit

from core.arrays import Floats, Mask
from core.stats.intervals import CLUSTERS, Labels, columns_of

FEW = 5  # Members of either class below which nothing is said
_PRIOR = 3.0  # Weight, in members, of the formula's variance beside the observed one
_TINY = 1e-12


class Area(NamedTuple):
    """Chance that a member of the class scores above a non-member, ties counting half."""

    value: float
    low: float
    high: float


def area(
    members: Floats, others: Floats, level: float = 0.95, clusters: tuple[Labels, Labels] | None = None
) -> Area:
    """Return the area under the receiver operating characteristic, with its interval.

    Args:
        members: [m], scores of the class that should score high.
        others: [n], scores of the other class.
        clusters: [m] and [n], the same number within a group of questions; None = each is by itself. The
            deviation is then that of sums of groups (Obuchowski 1997, Biometrics 53), by Student's t.

    Returns:
        NaN below `FEW` members of either class; without an interval below `CLUSTERS` groups.
    """
    m, n = len(members), len(others)
    if min(m, n) < FEW:
        return Area(np.nan, np.nan, np.nan)
    above = (members[:, None] > others).astype(np.float64) + (members[:, None] == others) / 2
    value = float(above.mean())
    units, seen = _scatter((above.mean(axis=1), above.mean(axis=0)), value, clusters)
    if clusters is not None and units < CLUSTERS:
        return Area(value, np.nan, np.nan)
    inner = (above.sum() + 0.5) / (m * n + 1)  # never 0 or 1
    told = min(m, n) * 4 * inner * (1 - inner)
    trust = told / (told + _PRIOR)
    wider = 1 - trust + trust * seen / _variance(inner, m, n)
    tail = (1 + level) / 2
    reach = float(ndtri(tail) if clusters is None else stdtrit(units - 1, tail))

    def beyond(at: float) -> float:
        return float((value - at) ** 2 - reach**2 * wider * _variance(at, m, n))

    low = brentq(beyond, 0.0, value - _TINY) if value > _TINY else 0.0
    high = brentq(beyond, value + _TINY, 1.0) if value < 1 - _TINY else 1.0
    return Area(value, float(low), float(high))


def _scatter(
    placed: tuple[Floats, Floats], value: float, clusters: tuple[Labels, Labels] | None
) -> tuple[int, float]:
    """Return the number of units behind an area, and its variance by DeLong, or by Obuchowski for groups."""
    if clusters is None:
        return sum(map(len, placed)), float(sum(each.var(ddof=1) / len(each) for each in placed))
    apart = np.concatenate([(each - value) / len(each) for each in placed])
    labels = columns_of(np.concatenate(clusters), len(apart))
    sums = np.bincount(labels, apart)
    units = len(sums)
    return units, float((sums**2).sum() * units / max(units - 1, 1))


def _variance(at: float, m: int, n: int) -> float:
    """Return the variance of an area by Hanley and McNeil's formula, for equal classes in Newcombe's form."""
    more = (m + n) / 2 - 1
    return at * (1 - at) * (1 + more * ((1 - at) / (2 - at) + at / (1 + at))) / (m * n)


def threshold(members: Floats, most: float) -> float:
    """Return the score below which at most a given share of new members is expected.

    The j-th lowest of m leaves j / (m + 1) of new ones below it (as in conformal prediction), so j is the
    largest that stays within the share; the quantile of the sample itself would lose more.

    Args:
        members: [m], scores of the class that should be kept.
        most: The share that may be lost, 0..1.

    Returns:
        NaN if m is too small for any threshold, as below 19 for a share of .05; see `needed`.
    """
    place = min(int(np.floor(most * (len(members) + 1) + 1e-9)), len(members))
    return float(np.sort(members)[place - 1]) if place else float("nan")


def needed(most: float) -> int:
    """Return how many members a threshold needs that loses no more than this share of them; above 0."""
    return int(np.ceil(1 / most - 1 - 1e-9))


def lost(members: Floats, most: float) -> Mask:
    """Return which members lie below the threshold of all others [m]; their share estimates the true loss."""
    return np.array(
        [each < threshold(np.delete(members, place), most) for place, each in enumerate(members)],
        dtype=np.bool_,
    )
