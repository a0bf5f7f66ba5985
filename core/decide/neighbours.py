"""Unevaluated stacks one step from the frontier, with a guess of their quality.

The guess is additive: every value of every axis shifts quality by the same amount in every stack, fitted
to all evaluated stacks by least squares. It is good for choosing what to evaluate next, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import stdtr

from core.arrays import Floats
from core.axes import TOGETHER
from core.decide.axes import QUALITY, Axis

_Stack = tuple[str | None, ...]  # A stack's value on each axis
LEAST_FREEDOM = 3  # Stacks in excess of the fitted effects that are needed to estimate a spread


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A stack to evaluate."""

    of: int  # row of the frontier stack that it is one step from
    axis: str  # the axis that differs
    before: object  # the frontier stack's value
    after: object  # its own value
    stack: _Stack  # its values on all axes, in words
    quality: float  # the guess; 0..1 mostly, as the model knows no bounds
    spread: float  # standard error of the guess for one new stack
    chance: float  # that it scores better than the target


def neighbours(
    table: pl.DataFrame,
    axes: Sequence[str],
    frontier: Sequence[int],
    target: float,
    quality: Axis = QUALITY,
    *,
    read: Callable[[_Stack], _Stack] = lambda stack: stack,
) -> list[Neighbour]:
    """Find the stacks one step from the frontier and guess their quality.

    Args:
        table: One row per evaluated stack with quality (null = unknown) and the axes (null = the stack has no
            such axis, which no step changes).
        target: Quality to beat; 0..1.
        read: Returns the keys that matter in a stack: stacks that agree in them count as one, whose quality
            is known as soon as any of them is evaluated.

    Returns:
        The likeliest to beat the target first, each stack once; empty if no axis is given, or too few
        stacks are known for the number of values that the axes take.
    """
    if not axes:
        return []
    levels = table.select(pl.col(axis).cast(pl.String) for axis in axes)
    known = [read(stack) for stack in levels.iter_rows()]
    model = _effects(known, table["quality"].cast(pl.Float64).fill_null(np.nan).to_numpy())
    if model is None:
        return []
    up = 1 if quality.higher_is_better else -1
    taken = set(known)
    guesses: dict[_Stack, Neighbour] = {}
    for row in frontier:
        here = levels.row(row)
        for place, axis in enumerate(axes):
            for there in _steps(levels, here, place):
                key = read(there)
                if key in taken or key in guesses:
                    continue
                guess, spread = model.guess(key)
                ahead = up * (guess - target)
                chance = float(stdtr(model.freedom, ahead / spread)) if spread > 0 else 0.0
                guesses[key] = Neighbour(row, axis, here[place], there[place], there, guess, spread, chance)
    return sorted(guesses.values(), key=lambda guessed: (-guessed.chance, -up * guessed.quality))


def _steps(levels: pl.DataFrame, here: _Stack, place: int) -> Iterator[_Stack]:
    """Yield stacks with another value of an axis, taken from stacks that have the same axes as this one.

    Values that were only seen together change together, in the step of the first of them.
    """
    if here[place] is None:
        return
    stated = [
        pl.col(name).is_null() == (value is None) for name, value in zip(levels.columns, here, strict=True)
    ]
    axis = levels.columns[place]
    moved = [axis]
    if axis in TOGETHER:
        moved = [name for name in TOGETHER if name in levels.columns]
        earlier = moved[: moved.index(axis)]
        stated += [pl.col(name) == here[levels.columns.index(name)] for name in earlier]
    for values in (
        levels.filter(stated, pl.col(axis) != here[place]).select(moved).unique().sort(moved).rows()
    ):
        changed = dict(zip(moved, values, strict=True))
        yield tuple(changed.get(name, value) for name, value in zip(levels.columns, here, strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class _Effects:
    """Additive effects, with the data for the spread of a new value."""

    columns: dict[tuple[int, str | None], int]
    sizes: Floats
    spread: Floats
    residual: float
    freedom: int

    def guess(self, stack: _Stack) -> tuple[float, float]:
        """Return a stack's predicted figure, and its standard error for one new stack."""
        point = np.zeros(len(self.sizes))
        point[[0, *(self.columns[place, value] for place, value in enumerate(stack))]] = 1.0
        return float(point @ self.sizes), self.residual * float(np.sqrt(1 + point @ self.spread @ point))


def _effects(stacks: Sequence[_Stack], values: Floats) -> _Effects | None:
    """Fit the effect of every value of every axis on a figure of the stacks; None if too few are known (NaN).

    Least squares of the least norm, since the columns of an axis add up to one.
    """
    levels = dict.fromkeys((place, value) for stack in stacks for place, value in enumerate(stack))
    columns = {level: column for column, level in enumerate(levels, 1)}
    design = np.zeros((len(stacks), len(columns) + 1))
    design[:, 0] = 1.0
    for row, stack in enumerate(stacks):
        design[row, [columns[place, value] for place, value in enumerate(stack)]] = 1.0
    known = ~np.isnan(values)
    design, values = design[known], values[known]
    if not len(values):
        return None
    sizes, _, rank, _ = np.linalg.lstsq(design, values, rcond=None)
    freedom = len(values) - int(rank)
    if freedom < LEAST_FREEDOM:
        return None
    residual = float(np.sqrt(np.sum((values - design @ sizes) ** 2) / freedom))
    spread = np.asarray(np.linalg.pinv(design.T @ design), dtype=np.float64)
    return _Effects(columns, np.asarray(sizes, dtype=np.float64), spread, residual, freedom)
