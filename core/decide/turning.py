"""What would have to be true for the runner-up to win: the change of one number at which the choice turns.

Each number is changed by itself and the whole rule is applied again, ties and all, so that what is said here
is what the product would then choose. A choice that turns and turns back within 1/32 of the way is
overlooked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from core.decide.axes import COST, HARM, LATENCY, QUALITY, Axis, floats
from core.decide.paired import Paired
from core.decide.rules import Constraints, Decision, Rule, decide

_SEARCHED = 32
_HALVINGS = 50
_DEARER = 10.0
"""Up to how many times its value a cost or a latency of the chosen stack is raised."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One change after which another stack is chosen."""

    of: int  # row whose number changes: the runner-up's (it gets better) or the chosen one's (it gets worse)
    axis: Axis  # which number
    now: float | None  # its value, in the axis's unit
    # The nearest value at which the choice has turned; None = no value within reach turns it
    then: float | None
    winner: int | None  # row that is chosen then; None = nothing
    reason: str = ""  # why `then` is None, in words

    @property
    def change(self) -> float | None:
        """How much the number changes; None where either value is unknown."""
        return None if self.then is None or self.now is None else self.then - self.now


def turns(
    table: pl.DataFrame,
    constraints: Constraints,
    rule: Rule = "quality",
    *,
    decision: Decision | None = None,
    paired: Paired | None = None,
) -> list[Turn]:
    """The changes at which the runner-up would win, and those at which the chosen stack would lose.

    Args:
        table: As for `core.decide.rules.decide`; a quality that changes takes its interval along.
        constraints: What a stack must meet.
        decision: What was chosen, where it is known already.
        paired: Quality per query, which moves with the quality that changes; None = only averages are known.

    Returns:
        A change per axis of the runner-up (cost, latency, quality, and harm where it is capped; each
        better), which win only by making it the chosen one, then those of the chosen stack (each worse),
        which turn the choice to whichever stack then wins. Empty without a choice or a runner-up.
    """
    found = decision or decide(table, constraints, rule, paired=paired)
    if found.chosen is None or found.runner_up is None:
        return []
    looked_at = {axis.key: axis for axis in found.axes if axis.compared or axis in found.required}
    order = [looked_at[axis.key] for axis in (COST, LATENCY, QUALITY, HARM) if axis.key in looked_at]

    def chosen_with(row: int, axis: Axis, value: float) -> int | None:
        return decide(_changed(table, row, axis, value), constraints, rule, paired=paired).chosen

    made = [
        _turn(table, found.runner_up, axis, better=True, chosen=chosen_with, wins=_is(found.runner_up))
        for axis in order
    ]
    made += [
        _turn(table, found.chosen, axis, better=False, chosen=chosen_with, wins=_is_not(found.chosen))
        for axis in order
    ]
    return made


def _is(row: int) -> Callable[[int | None], bool]:
    return lambda chosen: chosen == row


def _is_not(row: int) -> Callable[[int | None], bool]:
    return lambda chosen: chosen != row


def _turn(
    table: pl.DataFrame,
    row: int,
    axis: Axis,
    *,
    better: bool,
    chosen: Callable[[int, Axis, float], int | None],
    wins: Callable[[int | None], bool],
) -> Turn:
    """Go from the present value towards the end in steps, then halve the step in which the choice turned."""
    now = float(axis.read(table)[row])
    if np.isnan(now):
        return Turn(row, axis, None, None, None, f"its {axis.word} is unknown")
    end = _end(now, axis, better=better)
    kept = now
    for share in np.linspace(0, 1, _SEARCHED + 1)[1:]:
        there = float(now + (end - now) * share)
        if wins(chosen(row, axis, there)):
            break
        kept = there
    else:
        reason = f"not even a {axis.word} of {axis.pattern.format(f'{end:g}')} turns the choice"
        return Turn(row, axis, now, None, None, reason)
    for _ in range(_HALVINGS):
        middle = (kept + there) / 2
        if abs(there - kept) <= 1e-9 * abs(there):
            break
        kept, there = (kept, middle) if wins(chosen(row, axis, middle)) else (middle, there)
    return Turn(row, axis, now, there, chosen(row, axis, there))


def _end(now: float, axis: Axis, *, better: bool) -> float:
    """Where the search ends: at 0 or, upwards, at 1 or at many times the value."""
    if better != axis.higher_is_better:
        return 0.0
    return 1.0 if not axis.unit else _DEARER * max(now, 1.0)


def _changed(table: pl.DataFrame, row: int, axis: Axis, value: float) -> pl.DataFrame:
    """The table with one number changed; the interval of a quality moves with it."""
    names = [axis.column, *(("quality_low", "quality_high") if axis.key == QUALITY.key else ())]
    here, by = np.arange(table.height) == row, value - axis.read(table)[row]
    moved = {name: floats(table, name) for name in names if name in table.columns}
    return table.with_columns(
        pl.Series(name, np.where(here, value if name == axis.column else numbers + by, numbers))
        for name, numbers in moved.items()
    )
