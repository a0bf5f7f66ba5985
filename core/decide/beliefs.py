"""Beliefs about the quality of stacks on new queries, before any limit (metrics.md §9).

The best of many estimates is optimistic. Draws shrink the mean of every stack towards the mean of all
compared ones before they add its deviation in a joint resample; the expected quality on new queries is
its posterior mean under a prior estimated from all compared stacks by maximum likelihood without assuming its
shape (Kiefer & Wolfowitz 1956, Ann. Math. Stat. 27). Stacks of equal results count once in both.

The interval of a single stack does not hold for one selected because it is the highest; moved to
the expected quality it does (docs/statistics.md). The very best is counted in draws around a point
halfway between both ways to shrink: the first alone is overconfident if many stacks are nearly as good as
the best, the second too cautious if few are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from core.arrays import Floats, Mask
from core.decide.axes import COST, QUALITY, Axis
from core.decide.joint import JointSample
from core.decide.ties import units_of
from core.stats.intervals import CLUSTERS, Sample, query_weights, quotient
from core.stats.mixture import posterior_means

CONFIDENCE = 0.95
_NOTHING = 1e-20  # Variance due to rounding alone
DRAWS = 10_000  # Enough for a chance to be accurate to .01
_FEWEST = 500
_CELLS = 8_000_000  # Stacks × draws, and draws × queries, that are held at most


@dataclass(frozen=True, slots=True, eq=False)
class Beliefs:
    """Quality of S stacks on new queries."""

    sample: JointSample  # the underlying results
    drawn: Floats  # [B, Q], how often each query counts in each draw
    means: Floats  # [S], the estimates; NaN = unknown
    quality: NDArray[np.float32]  # [S, B], shrunk draws
    shrunk: Floats  # [S], the centres of the draws
    expected: Floats  # [S], posterior means
    reach: Floats  # [S], half the width of the 95 % interval around the posterior mean
    distinct: int  # stacks of different results
    _asked: dict[tuple[str, int], Floats] = field(default_factory=dict, repr=False)
    _peaks: dict[int, NDArray[np.float32]] = field(default_factory=dict, repr=False)

    def peaks(self, sign: int) -> NDArray[np.float32]:
        """Return the best draw of each stack in merit [S]; a sign of −1 if lower is better."""
        if sign not in self._peaks:
            self._peaks[sign] = (sign * self.quality).max(axis=1)
        return self._peaks[sign]

    def leading(self) -> Floats:
        """Return the draws in which the very best is counted [S, B]."""
        apart = np.zeros(len(self.shrunk)) if _alike(self.shrunk) else (self.expected - self.shrunk) / 2
        return np.asarray(self.quality + apart[:, None])

    def again(self) -> Floats:
        """Return draws of the means on as many new queries [S, B]: new results around other true values."""
        other = np.roll(self.quality, 1, axis=1) - self.shrunk[:, None]
        return np.asarray(self.quality + other + (self.expected - self.shrunk)[:, None])

    def numbers(self, axis: Axis, rows: NDArray[np.intp]) -> NDArray[Any]:
        """Return the numbers of rows on an axis in every draw [m, B].

        The queries of a draw serve every axis. Draws are cached.
        """
        if axis.key == QUALITY.key:
            return self.quality[rows]
        if axis.key == COST.key:
            return np.repeat(self.sample.cost[rows, None], len(self.drawn), axis=1)
        fresh = [row for row in rows.tolist() if (axis.key, row) not in self._asked]
        if fresh:
            values = self.sample.take(fresh).on_axis(axis.key, self.drawn)
            self._asked.update(((axis.key, row), drawn) for row, drawn in zip(fresh, values, strict=True))
        return np.array([self._asked[axis.key, row] for row in rows.tolist()]).reshape(-1, len(self.drawn))


def beliefs(sample: JointSample, *, seed: int, draws: int = DRAWS) -> Beliefs | None:
    """Draw the beliefs about the quality of stacks.

    Args:
        sample: Results of all compared stacks, with judge noise if that counts.
        draws: Maximum number.

    Returns:
        As many draws as the judge noise has, otherwise `draws`, or fewer if there are many stacks.
        None if a stack of known quality has no results per query, or queries, or their
        clusters, are fewer than `CLUSTERS`.
    """
    known = sample.quality_varies
    if not known.any() or (~known & ~np.isnan(sample.fixed_quality)).any():
        return None
    common = np.asarray(~np.isnan(sample.quality[known]).any(axis=0))
    values = sample.quality[known][:, common]
    if units_of(common, sample.clusters) < CLUSTERS:
        return None
    most = _CELLS // max(sample.quality.shape)
    rounds = sample.noisy.shape[1] or max(_FEWEST, min(draws, most))
    drawn = query_weights(sample.quality.shape[1], rounds, seed, sample.clusters)
    first, which = np.unique(values, axis=0, return_index=True, return_inverse=True)[1:]
    means = values.mean(axis=1)
    apart = values - values[first].mean(axis=0)
    alike = None if sample.clusters is None else sample.clusters[common]
    parts = Sample.means(apart, alike).parts()
    variances = parts.var(axis=1, ddof=1) / parts.shape[1]
    middle = _shrunk(means, variances, first)
    deviations = _deviations(sample, means, (known, common), drawn)
    quality = middle[:, None] + deviations
    expected = posterior_means(means[first], variances[first])[which.reshape(-1)]
    return Beliefs(
        sample=sample,
        drawn=drawn,
        means=_everywhere(means, known),
        quality=_everywhere(quality.astype(np.float32), known),
        shrunk=_everywhere(middle, known),
        expected=_everywhere(expected, known),
        reach=_everywhere(_reach(deviations, first, parts.shape[1]), known),
        distinct=len(first),
    )


def _alike(values: Floats) -> bool:
    return bool(np.nanmin(values) == np.nanmax(values))


def _reach(deviations: Floats, first: NDArray[np.intp], units: int) -> Floats:
    """Return half the width of Student's 95 % interval of each mean [S]; NaN if nothing varies.

    The variance has two parts: one shared by all stacks, and that of a stack's departures from it. So a stack
    that is right on every query is not taken to be free of noise.

    Args:
        deviations: [S, B], the draws.
        units: Number of queries, or clusters of them, behind the draws.
    """
    shared = deviations[first].mean(axis=0)
    variance = shared.var() + (deviations - shared).var(axis=1)
    variance = np.where(variance > _NOTHING, variance, np.nan)
    return np.asarray(stdtrit(units - 1, (1 + CONFIDENCE) / 2) * np.sqrt(variance * units / (units - 1)))


def _everywhere(values: NDArray[Any], known: Mask) -> NDArray[Any]:
    """Return rows of the known stacks, placed among all stacks; NaN = unknown."""
    rows = np.full((len(known), *values.shape[1:]), np.nan, dtype=values.dtype)
    rows[known] = values
    return rows


def _shrunk(means: Floats, variances: Floats, first: NDArray[np.intp]) -> Floats:
    """Return means shrunk towards the overall mean, each by its variance's share of the total variance."""
    middle = means[first].mean()
    spread = float(means[first].var(ddof=1)) if len(first) > 1 else 0.0
    between = max(0.0, spread - float(variances[first].mean()))
    kept = quotient(np.full(len(means), between), between + variances)
    return np.asarray(middle + np.nan_to_num(kept, nan=1.0) * (means - middle))


def _deviations(sample: JointSample, means: Floats, among: tuple[Mask, Mask], drawn: Floats) -> Floats:
    """Return the deviation of each known stack's mean in each draw [S, B]."""
    known, common = among
    counts = drawn[:, common]
    replicates = quotient(sample.quality[known][:, common] @ counts.T, counts.sum(axis=1))
    if sample.noisy.size:
        noisy = sample.noisy[known]
        replicates = np.where(np.isnan(noisy), replicates, noisy)
    return np.asarray(np.nan_to_num(replicates - means[:, None]))
