"""The interval of a mean over queries by one rule for every page, for many rows at once.

Shares of 0 and 1 have Wilson's interval (1927, J. Am. Stat. Assoc. 22), other means Student's t. If the
skewness γ of n values asks for more, n < 25 γ² (Cochran 1977, Sampling Techniques, §2.15), values that are
not differences get the bias-corrected and accelerated bootstrap with Student's tails (Hesterberg 2015, Am.
Stat. 69), and shares of fewer than ten queries get Wilson's interval, scaled to the variance that they show.
Differences of similar stacks lie on both sides of their mean, even with long tails: they keep Student's t.

Queries in clusters get Student's t of the clusters' sums, with the variance and the degrees of freedom that
their sizes leave (Bell & McCaffrey 2002, Surv. Methodol. 28): G − 1 for G clusters of one size.
docs/statistics.md says how often each interval covers the mean.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri, stdtrit

from core.arrays import Floats, Mask
from core.errors import InputError
from core.stats.intervals import FEW, Sample, accelerated, quotient, resampled, weights, without_one

Of = Literal["shares", "points", "amounts", "differences"]
"""What is averaged: values in 0..1, in 0..100, without an upper limit, or differences between two stacks."""
_GREATEST: dict[Of, float] = {"shares": 1.0, "points": 100.0}
_SKEWED = 25.0  # n / γ² below which Student's t misses more often than it says (Cochran)
_BLOCK = 512  # rows that are resampled at a time; bounds the memory
_TIE = 1e-12
_SQUARED = float(ndtri(0.975)) ** 2
_LOWER = 4.0  # Standard errors by which a skewness may be lower than it shows


def mean_interval(
    values: ArrayLike, of: Of, *, level: float = 0.95, clusters: ArrayLike | None = None
) -> tuple[Floats, Floats]:
    """Return the interval of the mean over queries, row by row.

    Args:
        values: [S, Q] (or [Q], taken as one row); NaN = not applicable.
        of: What is averaged. A row with values beyond its range is treated as amounts.
        level: Coverage in (0, 1).
        clusters: [Q], a whole number per query, equal within a cluster; None if each is its own.

    Returns:
        (low [S], high [S]); NaN below two queries, below `CLUSTERS` clusters, and if fewer than `FEW`
        values that are not shares are all equal.

    Raises:
        InputError: If the level is not within (0, 1), there is no query, or clusters are not one per query.
    """
    if not 0 < level < 1:
        raise InputError(f"A coverage of {level} is not possible.", do="Give a level between 0 and 1.")
    sample, tail = Sample.means(values, clusters), (1 - level) / 2
    parts, few = sample.parts(), sample.units < FEW
    ends = np.stack(student(parts, sample.bottom, tail))
    flat = ends[1] - ends[0] <= _TIE
    asks = skewed(parts) & ~flat & (sample.clusters is None and of != "differences")
    resample = np.flatnonzero(asks & ~few)
    for start in range(0, len(resample), _BLOCK):
        rows = resample[start : start + _BLOCK]
        ends[:, rows] = _accelerated(sample.rows(rows), tail)
    if of in _GREATEST:
        greatest = _GREATEST[of]
        shares = _within(sample.singly, greatest)
        counted = flat | _counted(sample, greatest)
        scored = shares & (counted | asks & few)
        ends[:, scored] = greatest * _scores(parts[scored] / greatest, counted[scored], tail)
        ends[:, shares] = np.clip(ends[:, shares], 0.0, greatest)
        flat &= ~shares
    ends[:, ~sample.enough() | (flat & few)] = np.nan
    return ends[0], ends[1]


def student(parts: Floats, sizes: Floats, tail: float) -> tuple[Floats, Floats]:
    """Return the two ends of Student's interval for a mean of parts, each [P].

    Args:
        parts: As of `student_error`.
        sizes: As of `student_error`.
        tail: The chance that is left beyond either end.
    """
    middle, error, freedom = student_error(parts, sizes)
    reach = stdtrit(freedom, 1 - tail) * error
    return middle - reach, middle + reach


def student_error(parts: Floats, sizes: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the mean of parts, its standard error and the degrees of freedom, each [P].

    Args:
        parts: [P, U], from `Sample.parts`; NaN = the unit does not count.
        sizes: [P, U], the bottom of the sample: the weight of each unit. For queries of equal weight the
            degrees of freedom are n − 1.
    """
    known = ~np.isnan(parts)
    units = known.sum(axis=1).astype(np.float64)
    middle = quotient(np.sum(parts, axis=1, where=known), units)
    weights = np.where(known, sizes, 0.0)
    share = quotient(weights, weights.sum(axis=1, keepdims=True))
    lever = quotient(np.ones_like(share), 1 - share)
    squares = np.sum((parts - middle[:, None]) ** 2 * lever, axis=1, where=known)
    pull = lever * share**2
    both = np.sum(share**2, axis=1) + np.sum(pull, axis=1) ** 2 - np.sum(pull**2, axis=1)
    freedom = np.maximum(quotient(np.ones_like(both), both), 1.0)
    return middle, quotient(np.sqrt(squares), units), freedom


def skewed(parts: Floats) -> Mask:
    """Return the rows that are too skewed for Student's t [P]."""
    n = np.maximum((~np.isnan(parts)).sum(axis=1), 1)
    return np.asarray(n < _SKEWED * skewness(parts) ** 2)


def skewness(parts: Floats) -> Floats:
    """Return the skewness of each row [P]: the third central moment in standard deviations; NaN if flat."""
    known = ~np.isnan(parts)
    n = np.maximum(known.sum(axis=1), 1)
    middle = np.sum(parts, axis=1, where=known) / n
    away = np.where(known, parts - middle[:, None], 0.0)
    return quotient((away**3).sum(axis=1) / n, ((away**2).sum(axis=1) / n) ** 1.5)


def less_skewed(t: Floats, skewness: Floats, n: Floats) -> Floats:
    """Return the statistics of one-sided tests that a mean is larger, without what skewness adds to them [P].

    By Student's t a mean with few but large losses looks surely positive too often. A statistic t is as
    likely as z without skewness where t = z − γ (2 z² + 1) / (6 √n) (Johnson 1978, J. Am. Stat. Assoc. 73).
    γ is taken four standard errors lower than it shows, as few units seldom show their large losses:
    `bench.switching` says how often the tests err then. No statistic grows, so that no test becomes more
    lenient.

    Args:
        t: Means less the bound of the test, in standard errors.
        skewness: From `skewness`; NaN where nothing varies, and nothing is taken out.
        n: The units behind each mean.
    """
    low = np.nan_to_num(skewness - _LOWER * np.sqrt(6 / n))
    lean = np.maximum(-low / (6 * np.sqrt(n)), _TIE)
    finite = np.where(np.isfinite(t), t, 0.0)
    z = (np.sqrt(np.maximum(1 + 8 * lean * (finite - lean), 0.0)) - 1) / (4 * lean)
    return np.where(np.isfinite(t) & (low < 0), np.minimum(t, z), t)


def share_interval(shares: ArrayLike, n: ArrayLike, squared: ArrayLike = _SQUARED) -> tuple[Floats, Floats]:
    """Return Wilson's 95 % interval of shares, each counted over n queries.

    Args:
        shares: 0..1.
        n: How many queries, at least 1.
        squared: The squared normal quantile, times the observed part of the variance p (1 − p).

    Returns:
        (low, high), of the shape of the shares.
    """
    p, z2 = np.asarray(shares, dtype=np.float64), np.asarray(squared) / n
    middle = (p + z2 / 2) / (1 + z2)
    half = np.sqrt(z2 * (p * (1 - p) + z2 / 4)) / (1 + z2)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def _within(sample: Sample, greatest: float) -> Mask:
    """Return the rows whose values all lie in 0..greatest, as a mask [S]."""
    return np.asarray(((sample.top >= 0) & (sample.top <= greatest)).all(axis=1))


def _counted(sample: Sample, greatest: float) -> Mask:
    """Return the rows in which every query is a yes or a no [S]; none if queries come in clusters."""
    if sample.clusters is not None:
        return np.zeros(len(sample.top), dtype=np.bool_)
    return np.asarray(((sample.top == 0) | (sample.top == greatest)).all(axis=1))


def _scores(parts: Floats, counted: Mask, tail: float) -> Floats:
    """Return Wilson's interval of shares [2, S], scaled to the part of p (1 − p) they show; 1 if counted."""
    n = np.maximum((~np.isnan(parts)).sum(axis=1), 2)
    shares = np.nansum(parts, axis=1) / n
    variance = np.nansum((parts - shares[:, None]) ** 2, axis=1) / (n - 1)
    shown = np.minimum(quotient(variance, shares * (1 - shares)), 1.0)
    of_few = stdtrit(n - 1, 1 - tail) ** 2 * shown
    return np.stack(share_interval(shares, n, np.where(counted, ndtri(1 - tail) ** 2, of_few)))


def _accelerated(sample: Sample, tail: float) -> Floats:
    """Return the ends of BCa, with tails widened as Student's t widens the normal distribution for n."""
    n = sample.units[:, None]
    reach = np.sqrt(n / (n - 1)) * stdtrit(n - 1, 1 - tail)
    replicates = resampled(sample, weights(sample.top.shape[1]))
    tails = ndtr(np.concatenate([-reach, reach], axis=1))
    return np.stack(accelerated(sample.estimate(), replicates, without_one(sample), tails))
