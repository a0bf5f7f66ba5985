"""Labels on a chart that lie on nothing: neither on marks nor on lines nor on one another."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_LETTER, _LINE, _ROOM = 6.3, 15.0, 3.0
"""Width of a letter, height of a line, and room around a label; pixels at 12 pixels a letter."""
_FARTHEST = 90
"""How far a label may stand from its mark; pixels."""


@dataclass
class Plot:
    """The area of a chart, as far as it is known before a browser draws it."""

    x: tuple[float, float]  # its ends along the x axis; logarithms where that is logarithmic
    y: tuple[float, float]  # its ends along the y axis
    log: bool  # whether the x axis is logarithmic
    width: float  # in pixels
    height: float  # in pixels
    # What stands there already, a row each [m, 4]: left, top, right and bottom in pixels
    taken: list[Floats] = field(default_factory=list)

    def across(self, x: Floats) -> Floats:
        """Pixels from the left."""
        along = np.log10(x) if self.log else x
        return (along - self.x[0]) / ((self.x[1] - self.x[0]) or 1.0) * self.width

    def down(self, y: Floats) -> Floats:
        """Pixels from the top."""
        return (self.y[1] - y) / ((self.y[1] - self.y[0]) or 1.0) * self.height

    def take(self, x: Floats, y: Floats, size: float) -> None:
        """Marks of a size stand there."""
        left, top = self.across(x), self.down(y)
        self.taken.append(np.column_stack([left - size, top - size, left + size, top + size]))

    def take_steps(self, x: Floats, y: Floats) -> None:
        """A line runs there, from mark to mark across and then up or down."""
        left, top = self.across(x), self.down(y)
        runs = np.column_stack([left[:-1], top[:-1], left[1:], top[:-1]])
        rises = np.column_stack([left[1:], top[:-1], left[1:], top[1:]])
        lines = np.concatenate([runs, rises])
        low, high = np.minimum(lines[:, :2], lines[:, 2:]), np.maximum(lines[:, :2], lines[:, 2:])
        self.taken.append(np.column_stack([low - 2, high + 2]))

    def take_bars(self, x: Floats, low: Floats, high: Floats) -> None:
        """Bars stand there, from low to high."""
        left = self.across(x)
        self.taken.append(np.column_stack([left - 4, self.down(high), left + 4, self.down(low)]))

    def take_column(self, x: float) -> None:
        """A line runs there from the bottom to the top."""
        left = float(self.across(np.array([x]))[0])
        self.taken.append(np.array([[left - 2, 0.0, left + 2, self.height]]))

    def take_row(self, y: float) -> None:
        """A line runs there from side to side."""
        top = float(self.down(np.array([y]))[0])
        self.taken.append(np.array([[0.0, top - 2, self.width, top + 2]]))

    def place(self, words: str, x: float, y: float) -> tuple[float, float] | None:
        """Find room for a label beside a mark, and take it.

        Returns:
            By how many pixels its centre lies right of the mark and above it; None where there is no room.
        """
        left, top = float(self.across(np.array([x]))[0]), float(self.down(np.array([y]))[0])
        half = (len(words) * _LETTER / 2 + _ROOM, _LINE / 2)
        shifts = _around(*half)
        at = self.first_free(shifts + np.array([left, top]), half)
        return None if at is None else (float(shifts[at, 0]), -float(shifts[at, 1]))

    def first_free(self, centres: Floats, half: tuple[float, float]) -> int | None:
        """Take the first point [n, 2] with nothing around it, half a width and half a height each way.

        Returns:
            Its position; None where there is no room.
        """
        free = np.flatnonzero(self._free(centres, np.array(half)))
        if not len(free):
            return None
        centre = centres[free[0]]
        self.taken.append(np.concatenate([centre - half, centre + half])[None, :])
        return int(free[0])

    def _free(self, centres: Floats, half: Floats) -> NDArray[np.bool_]:
        """Whether nothing lies around each point, half a width and half a height each way."""
        low, high = centres - half, centres + half
        inside = ((low >= 0) & (high <= (self.width, self.height))).all(axis=1)
        if len(self.taken) != 1:
            self.taken = [np.concatenate([np.empty((0, 4)), *self.taken])]
        there = np.ascontiguousarray(self.taken[0].T)  # a row of each edge: several times as fast
        near = _over(there, *low.min(axis=0), *high.max(axis=0))
        edges = np.hsplit(np.hstack([low, high]), 4)
        return np.asarray(inside & ~_over(there[:, near], *edges).any(axis=1))


def _over(there: Floats, left: Floats, top: Floats, right: Floats, bottom: Floats) -> NDArray[np.bool_]:
    """Whether what stands there [4, m] lies over boxes, each a number or a column [n, 1]."""
    return np.asarray((there[2] >= left) & (there[0] <= right) & (there[3] >= top) & (there[1] <= bottom))


@lru_cache(256)
def _around(wide: float, high: float) -> Floats:
    """Places around a mark [n, 2], the nearest first; y grows downwards."""
    found: list[tuple[float, float]] = []
    for off in range(12, _FARTHEST, 8):
        for up in (-1, 1):
            rows = high + off
            found += [(share * (wide + off), up * rows) for share in (-1, 1, 0, -0.5, 0.5)]
        found += [(-(wide + off), 0.0), (wide + off, 0.0)]
    return np.array(
        sorted(found, key=lambda at: math.hypot(max(0, abs(at[0]) - wide), max(0, abs(at[1]) - high)))
    )
