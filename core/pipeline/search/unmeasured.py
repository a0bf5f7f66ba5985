"""Proposes combinations of evaluated stacks' values to evaluate next, by the model of a search."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.arrays import Floats
from core.axes import TOGETHER
from core.decide.pareto import undominated
from core.pipeline.search.propose import Space, Value, propose, tell
from core.pipeline.sweep.fields import SearchLimits
from core.records import Stack

MOST = 20_000
"""Maximum number of combinations considered, drawn at random if there are more."""
TOLD = 1_000  # Most evaluated stacks passed to a search
COUNT = 8
Rows: TypeAlias = "NDArray[np.intp]"
Levels: TypeAlias = "tuple[Value | None, ...]"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A stack that hasn't been evaluated."""

    of: int  # row of the evaluated stack that it differs from in the fewest axes
    # Each axis that differs, with the value there and its own
    steps: tuple[tuple[str, Value | None, Value | None], ...]
    spec: Mapping[str, Value]  # its values


def unmeasured(
    levels: pl.DataFrame,
    figures: tuple[Floats, Floats, Floats],
    limits: SearchLimits,
    *,
    harm: Floats | None = None,
    higher_is_better: bool = True,
    read: Callable[[Levels], Levels] = lambda stack: stack,
    count: int = COUNT,
    seed: int = 0,
) -> list[Proposal]:
    """Propose stacks to evaluate, in order; equal results and seeds give the same ones.

    Args:
        levels: The axes of every evaluated stack; null = it has no such axis.
        figures: Quality, milliseconds and dollars per 1,000 queries for each; NaN = unknown.
        harm: Harm of each, if known.
        read: Returns the settings that a stack reads; of stacks that share them one is enough.

    Raises:
        ClqError: If Optuna is not installed.
    """
    if not levels.width:  # the stacks' specifications are unknown
        return []
    evaluated: list[Levels] = list(levels.iter_rows())
    known = _telling(figures, seed, higher_is_better=higher_is_better)
    places = {
        combination: at for at, combination in enumerate(dict.fromkeys(evaluated[row] for row in known))
    }
    combinations = {read(combination): combination for combination in reversed(_combinations(levels, seed))}
    for evaluated_one in evaluated:
        combinations.pop(read(evaluated_one), None)
    further = [*reversed(combinations.values())]
    if not places or not further:
        return []
    every = [*places, *further]
    space = Space([Stack(_spec(levels.columns, combination)) for combination in every])
    quality, ms, usd = (figure[known] for figure in figures)
    rows = [places[evaluated[row]] for row in known]
    harm = None if harm is None else harm[known]
    begun, maximised = tell(rows, (quality, ms, usd), limits, harm=harm, higher_is_better=higher_is_better)
    proposed = propose(space, begun, count, maximised=maximised, seed=seed)
    return [_proposal(levels.columns, evaluated, every[row], read) for row in proposed]


def _telling(figures: tuple[Floats, Floats, Floats], seed: int, *, higher_is_better: bool) -> Rows:
    """Return the rows of known quality to pass to a search: if there are very many, the best and a sample.

    The best are those that none beats. A search's time grows with their number, while it looks closely only
    at the best few.
    """
    known: Rows = np.flatnonzero(~np.isnan(figures[0]))
    if len(known) <= TOLD:
        return known
    quality, *paid = (figure[known] for figure in figures)
    axes = [-quality if higher_is_better else quality, *paid]
    best = undominated([axis for axis in axes if not np.isnan(axis).all()])
    order = np.random.default_rng(seed).permutation(len(known))
    first = order[np.argsort(~best[order], kind="stable")][:TOLD]
    return known[np.sort(first)]


def _combinations(levels: pl.DataFrame, seed: int) -> list[Levels]:
    """Return all combinations of values of stacks that have the same axes."""
    together: dict[tuple[bool, ...], list[Levels]] = {}
    for row in levels.iter_rows():
        together.setdefault(tuple(value is None for value in row), []).append(row)
    pair = [levels.columns.index(axis) for axis in TOGETHER if axis in levels.columns]
    rng = np.random.default_rng(seed)
    combinations: list[Levels] = []
    for stacks in together.values():
        choices = [list(dict.fromkeys(values)) for values in zip(*stacks, strict=True)]
        seen = {tuple(stack[at] for at in pair) for stack in stacks}
        combinations += [
            combination
            for combination in _drawn(choices, rng)
            if tuple(combination[at] for at in pair) in seen
        ]
    return combinations


def _drawn(choices: Sequence[Sequence[Value | None]], rng: np.random.Generator) -> list[Levels]:
    """Return all combinations of choices, or a random sample if there are too many."""
    sizes = [len(choice) for choice in choices]
    if np.prod(sizes, dtype=np.float64) <= MOST:
        return list(itertools.product(*choices))
    places = zip(*(rng.integers(size, size=MOST) for size in sizes), strict=True)
    return list(
        dict.fromkeys(tuple(values[at] for values, at in zip(choices, row, strict=True)) for row in places)
    )


def _proposal(
    axes: Sequence[str], evaluated: Sequence[Levels], own: Levels, read: Callable[[Levels], Levels]
) -> Proposal:
    ours = read(own)
    unread = [value != kept for value, kept in zip(own, ours, strict=True)]

    def steps(row: int) -> list[tuple[str, Value | None, Value | None]]:
        places = zip(axes, evaluated[row], own, unread, strict=True)
        return [(axis, one, other) for axis, one, other, ignored in places if one != other and not ignored]

    of = min(range(len(evaluated)), key=lambda row: len(steps(row)))
    return Proposal(of, tuple(steps(of)), _spec(axes, own))


def _spec(axes: Sequence[str], levels: Levels) -> dict[str, Value]:
    return {axis: value for axis, value in zip(axes, levels, strict=True) if value is not None}
