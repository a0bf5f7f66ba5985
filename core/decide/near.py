"""Costs of limits: the best stack that one alone excludes, and the choice at each of several targets.

The module also finds what would make the runner-up win: the change of one number at which the choice turns.

Each number is changed by itself and the whole rule is applied again, with ties and all, so that the result is
what the product would then choose. Time and cost come from models: stacks of the same models change by the
same factor, since none of them could become slower or dearer alone. A choice that turns and turns
back within 1/32 of the way is overlooked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.arrays import Floats, Mask
from core.decide.axes import BESIDE, COST, LATENCY, QUALITY, Axis, floats
from core.decide.pareto import frontier_2d
from core.decide.rules import Constraints, Decision, Rule, best, decide, feasible
from core.decide.ties import ROUNDING, Paired

_SEARCHED = 32
_HALVINGS = 50
_TRACE = 1e-9  # Share of a number that stands for 0, because nothing takes no time
_NOISE = 0.1  # Share of a number within which two count as equal: limits that admit stacks, times, costs
_DEARER = 10.0  # Largest factor by which a cost or a latency of the chosen stack is raised
ROUNDED = 0.01  # Largest share of a value by which the limit that admits it is rounded
_TURNS = 5
_DIGITS = 17  # Significant digits that tell any two numbers apart


@dataclass(frozen=True, slots=True)
class Turn:
    """A change after which another stack is chosen."""

    of: int  # row whose number changes: the runner-up's (it gets better) or the chosen one's (it gets worse)
    axis: Axis  # the axis of the number
    now: float | None  # its value, in the axis's unit
    # The nearest value at which the choice has turned; None = no value within reach turns it
    then: float | None
    winner: int | None  # row that is chosen then; None = nothing
    reason: str = ""  # why `then` is None, in words

    @property
    def change(self) -> float | None:
        """How much the number changes; None if either value is unknown."""
        return None if self.then is None or self.now is None else self.then - self.now


def turns(
    table: pl.DataFrame,
    constraints: Constraints,
    rule: Rule = "quality",
    *,
    decision: Decision | None = None,
    paired: Paired | None = None,
) -> list[Turn]:
    """Return the changes that make the runner-up win, and those that make the chosen stack lose.

    Args:
        table: As for `core.decide.rules.decide`.
        paired: Quality per query, which moves with the quality that changes; None = only averages are known.

    Returns:
        One change for each axis of the runner-up (cost, latency, quality, and any other limited axis), each
        an improvement that makes it win; then one for each axis of the chosen stack, each a worsening that
        turns the choice to whichever stack then wins. Empty without a choice or a runner-up, and if a
        person took the chosen one.
    """
    decided = decision or decide(table, constraints, rule, paired=paired)
    if decided.chosen is None or decided.runner_up is None or decided.instead_of is not None:
        return []
    looked_at = {axis.key: axis for axis in decided.axes if axis.compared or axis in decided.required}
    order = [looked_at[axis.key] for axis in (COST, LATENCY, QUALITY, *BESIDE) if axis.key in looked_at]

    def winner(row: int, axis: Axis, value: float) -> int | None:
        rows = _of_same_models(table, row) if axis in (COST, LATENCY) else np.arange(table.height) == row
        noise = 0.0 if axis.key == rule else _NOISE
        return best(_changed(table, (row, axis, value), rows, noise), constraints, rule, paired=paired)

    first, second = decided.chosen, decided.runner_up
    better = partial(_turn, table, second, better=True, chosen=winner, wins=lambda row: row == second)
    worse = partial(_turn, table, first, better=False, chosen=winner, wins=lambda row: row != first)
    return [*map(better, order), *map(worse, order)]


def _turn(
    table: pl.DataFrame,
    row: int,
    axis: Axis,
    *,
    better: bool,
    chosen: Callable[[int, Axis, float], int | None],
    wins: Callable[[int | None], bool],
) -> Turn:
    """Step from the present value towards the end, then bisect the step in which the choice turned."""
    now = float(axis.read(table)[row])
    if np.isnan(now):
        return Turn(row, axis, None, None, None, f"its {axis.word} is unknown")
    end = _end(now, axis, better=better)
    kept = now
    for share in np.linspace(0, 1, _SEARCHED + 1)[1:]:
        there = float(now + (end - now) * share) or _TRACE * now
        if wins(chosen(row, axis, there)):
            break
        kept = there
    else:
        worst = axis.written(end) if end else axis.pattern.format(0)
        reason = f"not even {axis.article or 'a '}{axis.word} of {worst} turns the choice"
        return Turn(row, axis, now, None, None, reason)
    for _ in range(_HALVINGS):
        middle = (kept + there) / 2
        if abs(there - kept) <= 1e-9 * abs(there):
            break
        kept, there = (kept, middle) if wins(chosen(row, axis, middle)) else (middle, there)
    return Turn(row, axis, now, there, chosen(row, axis, there))


def _end(now: float, axis: Axis, *, better: bool) -> float:
    """Return where the search ends: at 0, at 1 for a share, or at many times the value."""
    up = better == axis.higher_is_better
    if axis.unit or not 0 <= now <= 1:
        return _DEARER * max(now, 1.0) if up else min(0.0, _DEARER * now)
    return 1.0 if up else 0.0


def _of_same_models(table: pl.DataFrame, row: int) -> Mask:
    """Return the rows with the same models as one; if it has none, those with the same search by words."""
    here: Mask = np.arange(table.height) == row
    for names in (("embedder", "reranker"), ("sparse",)):
        if not {*names} <= {*table.columns}:
            return here
        own = table.select(names).row(row)
        if any(name not in (None, "none") for name in own):
            same = [pl.col(name).eq_missing(value) for name, value in zip(names, own, strict=True)]
            return np.asarray(table.select(pl.all_horizontal(same)).to_series().to_numpy(), dtype=np.bool_)
    return here


def _changed(table: pl.DataFrame, change: tuple[int, Axis, float], rows: Mask, noise: float) -> pl.DataFrame:
    """Return the table with another value for a row, and the others of some rows changed by the same factor.

    Args:
        change: The row, its axis and the value.
        noise: Share of the row's value within which other rows share its side of a limit.
    """
    row, axis, value = change
    values = axis.read(table)
    alike = np.abs(values - values[row]) <= noise * abs(values[row]) if noise else np.zeros_like(rows)
    alike[row] = True
    moved = np.where(alike, value, values * (value / values[row]) if values[row] else values)
    return table.with_columns(pl.Series(axis.column, np.where(rows, moved, values)))


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A stack that one limit alone excludes."""

    row: int  # its row of the table
    axis: Axis  # the axis of the limit
    value: float  # the stack's value there, in the axis's unit
    over: float  # excess of that value over the limit; above 0
    # Its gain in quality over the chosen stack; None if nothing is chosen
    gain: float | None
    set_to: float  # the nearest round limit that admits it
    edge: bool  # whether it breaks the SLA by less than the band within which latencies count as equal

    @property
    def limit(self) -> str:
        """The name of the limit: one of `core.decide.axes.LIMITS`."""
        return self.axis.limit

    @property
    def unit(self) -> str:
        """The unit of its value."""
        return self.axis.unit


def near_misses(
    table: pl.DataFrame,
    decision: Decision,
    constraints: Constraints,
    rule: Rule = "quality",
    *,
    paired: Paired | None = None,
) -> list[NearMiss]:
    """Return for each limit the best stack that it alone excludes, if it would then ship.

    The one that would ship after the smallest loosening is returned too. A gain below δ is listed only at the
    SLA's edge. If the best is beyond the edge of the SLA, the best at the edge is listed too; if nothing is
    chosen, the closest one too.

    Args:
        table: As for `core.decide.rules.decide`.
        paired: Quality per query, if known.

    Returns:
        The largest gain over the chosen stack first. Stacks that would not ship or gain nothing are left out;
        under a rule for cost or latency, a lower cost or latency is also a gain. If nothing is chosen, the
        best quality first.
    """
    merit = decision.quality.merit(decision.quality.read(table))
    chosen = decision.chosen
    here = np.nan if chosen is None else merit[chosen]
    better = np.ones(table.height, dtype=np.bool_) if chosen is None else merit > here + ROUNDING
    aim = merit
    if rule != "quality":
        aim = -(COST if rule == "cost" else LATENCY).read(table)
        better |= np.zeros_like(better) if chosen is None else aim > aim[chosen]
    by_gain = chosen is not None and rule == "quality"
    worth = merit - here >= decision.delta - ROUNDING
    misses: dict[tuple[int, str], NearMiss] = {}
    for axis in decision.axes:
        bound = constraints.of(axis)
        if bound is None or not axis.lifts:
            continue
        values = axis.read(table)
        over = axis.merit(np.asarray(bound)) - axis.merit(values)
        lifted: dict[str, Any] = {axis.limit: None}
        alone = feasible(table, replace(constraints, **lifted), rule)
        at_edge = (over < decision.band) & (axis == LATENCY)
        told = worth | at_edge if by_gain else True
        rows = np.flatnonzero(alone & ~decision.feasible & (over > 0) & better & told)

        def wide(row: int, axis: Axis = axis, values: Floats = values) -> Constraints:
            enough: dict[str, Any] = {
                axis.limit: lets_in(float(values[row]), upper=not axis.higher_is_better)
            }
            return replace(constraints, **enough)

        firsts = _best(aim, over, rows, at_edge, closest=chosen is None)
        if by_gain:
            same = np.maximum(decision.band if axis == LATENCY else 0.0, _NOISE * np.abs(values))
            firsts += _least_loosening(merit - here, over, rows[worth[rows]], same)
        for first in firsts:
            row = _ships(first, set(rows.tolist()), lambda row: best(table, wide(row), rule, paired=paired))
            if row is None:
                continue
            gain = None if chosen is None else float(merit[row] - here)
            set_to = lets_in(float(values[row]), upper=not axis.higher_is_better)
            value, beyond = float(values[row]), float(over[row])
            misses[row, axis.key] = NearMiss(row, axis, value, beyond, gain, set_to, bool(at_edge[row]))
    return sorted(misses.values(), key=lambda miss: (-merit[miss.row], miss.over))


def _least_loosening(gain: Floats, over: Floats, rows: NDArray[np.intp], same: Floats) -> list[int]:
    """Return the best of the rows that the least loosening admits.

    Args:
        same: Width within which values under a limit count as equal [n].
    """
    if not len(rows):
        return []
    closest = rows[over[rows].argmin()]
    alike = rows[over[rows] <= over[closest] + same[closest]]
    return [int(alike[gain[alike].argmax()])]


def _ships(row: int, among: Collection[int], chosen_with: Callable[[int], int | None]) -> int | None:
    """Return the row that ships under the limit that admits a given row; None if none does.

    If another row then ships, its own limit may be nearer: it is tried in turn.
    """
    for _ in range(_TURNS):
        then = chosen_with(row)
        if then == row:
            return row
        if then is None or then not in among:
            return None
        row = then
    return None


def _best(merit: Floats, over: Floats, rows: NDArray[np.intp], at_edge: Mask, *, closest: bool) -> list[int]:
    """Return the best row, and the best at the edge if it is another; among equals, the closest.

    Args:
        closest: Whether to add the closest of all, or among equally close ones the best.
    """
    ordered = rows[np.lexsort((over[rows], -merit[rows]))]
    by_distance = rows[np.lexsort((-merit[rows], over[rows]))] if closest else rows[:0]
    firsts = (ordered[:1], ordered[at_edge[ordered]][:1], by_distance[:1])
    return list(dict.fromkeys(int(row) for first in firsts for row in first))


def lets_in(value: float, *, upper: bool = True) -> float:
    """Return the nearest round number that a value meets as a limit."""
    exact = Decimal(repr(value))
    if not exact:
        return 0.0
    for digits in range(1, _DIGITS + 1):
        step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
        rounded = exact.quantize(step, ROUND_CEILING if upper else ROUND_FLOOR)
        if abs(rounded - exact) <= abs(exact) * Decimal(str(ROUNDED)):
            break
    return float(rounded)


@dataclass(frozen=True, slots=True, eq=False)
class Conditioned:
    """Decision under one latency target."""

    sla_ms: float  # the target
    decision: Decision  # what the rule chooses within it
    # Rows of the feasible stacks that are not dominated in cost and quality, by rising cost
    frontier: NDArray[np.intp]


def conditioned(
    table: pl.DataFrame,
    targets_ms: Sequence[float],
    constraints: Constraints,
    rule: Rule = "quality",
    *,
    paired: Paired | None = None,
) -> list[Conditioned]:
    """Decide at every target, with the other constraints unchanged.

    Latency is limited by the target here, so the frontier at one target is that of cost and quality among
    the stacks that meet it.

    Args:
        table: As for `core.decide.rules.decide`.
        targets_ms: Latency targets; ms.
        constraints: Budget, floor and jitter band; its own SLA is ignored.
        rule: As for `core.decide.rules.decide`.

    Returns:
        One result per target, in the given order.
    """
    cost, quality = (floats(table, name) for name in ("cost", "quality"))
    results = []
    for sla_ms in targets_ms:
        decision = decide(table, replace(constraints, sla_ms=sla_ms), rule, paired=paired)
        within = np.where(decision.feasible, decision.quality.merit(quality), np.nan)
        results.append(Conditioned(sla_ms, decision, frontier_2d(cost, within)))
    return results
