"""Stacks that were not evaluated and lie one step from the frontier, with a guess of their quality.

The guess is additive: every value of every axis moves quality by the same amount wherever it stands, fitted
to all evaluated stacks by least squares. It is good for choosing what to evaluate next, for nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import stdtr

from core.decide.axes import QUALITY, Axis
from core.stats.intervals import Floats

LEAST_FREEDOM = 3  # Stacks above the number of fitted effects below which no spread can be told


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A stack to evaluate."""

    of: int  # row of the frontier stack that it is one step from
    axis: str  # the axis that differs
    before: object  # the frontier stack's value
    after: object  # its own value
    quality: float  # the guess; 0..1 mostly, as the model knows no bounds
    spread: float  # standard error of the guess for one new stack
    chance: float  # that it scores better than the target


def neighbours(
    table: pl.DataFrame, axes: Sequence[str], frontier: Sequence[int], target: float, quality: Axis = QUALITY
) -> list[Neighbour]:
    """Find the stacks one step from the frontier and guess how good they are.

    Args:
        table: One row per evaluated stack with quality (null = unknown) and the axes (null = the stack has no
            such axis, which no step changes).
        target: Quality to beat; 0..1.

    Returns:
        The likeliest to beat the target first, each stack once; empty where no axis is stated, or too few
        stacks are known for the number of values that the axes take.
    """
    if not axes:
        return []
    levels = table.select(pl.col(axis).cast(pl.String) for axis in axes)
    model = _fit(levels, table["quality"].cast(pl.Float64).fill_null(np.nan).to_numpy())
    if model is None:
        return []
    up = 1 if quality.higher_is_better else -1
    taken = set(levels.iter_rows())
    guesses: dict[tuple[str | None, ...], Neighbour] = {}
    for row in frontier:
        here = levels.row(row)
        for place, axis in enumerate(axes):
            for after in _others(levels, here, place):
                there = (*here[:place], after, *here[place + 1 :])
                if there in taken or there in guesses:
                    continue
                guess, spread = model.guess(there)
                ahead = up * (guess - target)
                chance = float(stdtr(model.freedom, ahead / spread)) if spread > 0 else 0.0
                guesses[there] = Neighbour(row, axis, here[place], after, guess, spread, chance)
    return sorted(guesses.values(), key=lambda guessed: (-guessed.chance, -up * guessed.quality))


def _others(levels: pl.DataFrame, here: tuple[str | None, ...], place: int) -> list[str]:
    """Return other values of an axis among the stacks that have the same axes as this one."""
    if here[place] is None:
        return []
    same = [
        pl.col(name).is_null() == (value is None) for name, value in zip(levels.columns, here, strict=True)
    ]
    values = levels.filter(same).to_series(place).unique().drop_nulls().sort().to_list()
    return [value for value in values if value != here[place]]


@dataclass(frozen=True, slots=True, eq=False)
class _Model:
    """Additive effects, with what the spread of a new value needs."""

    columns: dict[tuple[int, str | None], int]
    effects: Floats
    spread: Floats
    residual: float
    freedom: int

    def guess(self, stack: tuple[str | None, ...]) -> tuple[float, float]:
        """Return quality of a stack and the standard error of one new value of it."""
        point = np.zeros(len(self.effects))
        point[[0, *(self.columns[place, value] for place, value in enumerate(stack))]] = 1.0
        return float(point @ self.effects), self.residual * float(np.sqrt(1 + point @ self.spread @ point))


def _fit(levels: pl.DataFrame, quality: Floats) -> _Model | None:
    """Solve least squares of the least norm, since the columns of an axis add up to one."""
    columns: dict[tuple[int, str | None], int] = {}
    for place, name in enumerate(levels.columns):
        for value in levels[name].unique().sort().to_list():
            columns[place, value] = len(columns) + 1
    design = np.zeros((levels.height, len(columns) + 1))
    design[:, 0] = 1.0
    for row, stack in enumerate(levels.iter_rows()):
        design[row, [columns[place, value] for place, value in enumerate(stack)]] = 1.0
    known = ~np.isnan(quality)
    design, values = design[known], quality[known]
    if not len(values):
        return None
    effects, _, rank, _ = np.linalg.lstsq(design, values, rcond=None)
    freedom = len(values) - int(rank)
    if freedom < LEAST_FREEDOM:
        return None
    residual = float(np.sqrt(np.sum((values - design @ effects) ** 2) / freedom))
    spread = np.asarray(np.linalg.pinv(design.T @ design), dtype=np.float64)
    return _Model(columns, np.asarray(effects, dtype=np.float64), spread, residual, freedom)
