"""Which stacks the evidence does not order: the paired difference in quality, query by query (metrics.md §9).

One set of resamples serves all stacks. Their resampled means are kept, so that telling the best from ten
thousand others is one comparison of two matrices and no resampling. Only those asked for are compared, which
are few (a tie lies within the jitter band), and what was found is kept by the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.stats.intervals import SEED, Sample, interval, paired_rows, resampled, weights

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]

LEVEL = 0.95
DIGITS = 3  # Decimals that qualities are printed with: averages that print the same are the same
_NOISE = 1e-6  # Differences below it come from the order of adding up; a replicate holds seven digits
_NEAR = 1.5
"""Resamples by which a count may miss the border of the interval for the row to be looked at exactly."""
_BLOCK = 1024
_KEPT = 64  # Bests of which it is remembered who is alike: 1, who is not: 0, and who was not compared yet: -1


@dataclass(frozen=True, eq=False)
class Paired:
    """The quality of stacks, query by query."""

    run_ids: Sequence[str]  # [S], the stacks
    values: Floats  # [S, Q]; NaN = not applicable. A stack without any value has none.
    seed: int = SEED  # of the resampling
    _known: dict[int, NDArray[np.int8]] = field(default_factory=dict, init=False, repr=False)

    def places(self, run_ids: pl.Series) -> Rows:
        """Where stacks stand here [n]; −1 = there are no values of theirs."""
        names = pl.Series(list(self.run_ids), dtype=pl.String)
        found = run_ids.replace_strict(
            names, pl.int_range(len(names), eager=True), default=-1, return_dtype=pl.Int64
        )
        places = found.to_numpy().astype(np.intp)
        empty = ~np.asarray(self._applies.any(axis=1))
        return np.where((places >= 0) & empty[places], -1, places)

    def alike(self, best: int, rows: Rows, shift: Floats) -> Mask:
        """Which stacks do not differ significantly from the best of them.

        Args:
            rows: [m], their places.
            shift: [S], by how much the mean of a stack is taken to be another than that of its values.

        Returns:
            Mask [m]: whether the 95 % interval of the paired difference contains 0, over the queries that
            both have; False where they have none in common.
        """
        others = (self._pattern[rows] != self._pattern[best]) | (shift[rows] != shift[best])
        found = np.empty(len(rows), dtype=np.bool_)
        found[~others] = self._like(best, rows[~others])
        found[others] = self._exactly(best, rows[others], shift)
        return found

    @cached_property
    def _applies(self) -> Mask:
        return np.asarray(~np.isnan(self.values))

    @cached_property
    def _pattern(self) -> Rows:
        """Which stacks have values for the same queries: a number for each set of queries [S]."""
        return np.asarray(np.unique(self._applies, axis=0, return_inverse=True)[1].reshape(-1))

    @cached_property
    def means(self) -> Floats:
        """The mean of every stack [S]; NaN where it has no values."""
        return self._sample.estimate()

    @cached_property
    def _sample(self) -> Sample:
        return Sample.means(self.values)

    @cached_property
    def _drawn(self) -> Floats:
        return weights(self.values.shape[1], seed=self.seed)

    @cached_property
    def _replicates(self) -> NDArray[np.float32]:
        """The mean of every stack in every resample [S, R]."""
        return resampled(self._sample, self._drawn).astype(np.float32)

    def _like(self, best: int, rows: Rows) -> Mask:
        """`alike` of rows that have values for the same queries; what was compared before is remembered."""
        if best not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[best] = np.full(len(self.values), -1, dtype=np.int8)
        known = self._known[best]
        fresh = rows[known[rows] < 0]
        for start in range(0, len(fresh), _BLOCK):
            part = fresh[start : start + _BLOCK]
            known[part] = self._counted(best, part)
        return known[rows] > 0

    def _counted(self, best: int, rows: Rows) -> Mask:
        """By how many resamples lie beyond 0, seen from the difference; at the interval's border exactly.

        On the side of the difference itself there always are enough: a third of the resamples or more.
        """
        top, beyond = self._replicates[best], np.empty(len(rows))
        lower = self.means[rows] <= self.means[best]
        beyond[lower] = np.count_nonzero(self._replicates[rows[lower]] >= top - _NOISE, axis=1)
        beyond[~lower] = np.count_nonzero(self._replicates[rows[~lower]] <= top + _NOISE, axis=1)
        place = (1 - LEVEL) / 2 * (len(top) - 1)
        found = np.asarray(beyond > place + 1)
        border = np.abs(beyond - place) <= _NEAR
        found[border] = self._exactly(best, rows[border], np.zeros(len(self.values)))
        return found

    def _exactly(self, best: int, rows: Rows, shift: Floats) -> Mask:
        """By the interval itself."""
        found = np.zeros(len(rows), dtype=np.bool_)
        for start in range(0, len(rows), _BLOCK):
            part = rows[start : start + _BLOCK]
            one, other = paired_rows(self._sample, part, np.full(len(part), best))
            gap = Sample(one.top - other.top, one.bottom, one.applies)
            low, high = interval(gap.estimate(), resampled(gap, self._drawn), level=LEVEL)
            moved = shift[part] - shift[best]
            found[start : start + _BLOCK] = (low + moved <= _NOISE) & (high + moved >= -_NOISE)
        return found


class PairedReplicates(Paired):
    """Means of stacks in joint resamples, as `values` [S, R], where more is drawn than the queries."""

    def alike(self, best: int, rows: Rows, shift: Floats) -> Mask:
        """Which stacks do not differ significantly from the best of them; takes what `Paired.alike` does."""
        gap = self.values[rows] - self.values[best]
        low, high = interval(np.nanmean(gap, axis=1), gap, level=LEVEL)
        moved = shift[rows] - shift[best]
        return np.asarray((low + moved <= _NOISE) & (high + moved >= -_NOISE))


def printed_alike(quality: Floats, interval_of_best: tuple[float, float], best: float) -> Mask:
    """Which averages do not differ from the best: within its interval, or printed alike without one [m]."""
    low, high = interval_of_best
    if np.isnan(low) or np.isnan(high):
        return np.asarray(np.round(quality, DIGITS) == np.round(best, DIGITS))
    return np.asarray((quality >= low) & (quality <= high))
