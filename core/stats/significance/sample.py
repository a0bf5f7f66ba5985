"""Figures per query whose statistic is a ratio of sums over queries: a mean, or a ratio of two means.

Writing both as sum(top) / sum(bottom) lets one matrix product resample either, and makes queries to which a
measure does not apply exact: they add nothing to either sum, in any resample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import InputError

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Figures of several stacks on the same queries."""

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
