"""What limits cost: the best stack that one alone excludes, and the choice at each of several targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.decide.axes import COST, LATENCY, Axis, Floats
from core.decide.paired import Paired
from core.decide.pareto import frontier_2d
from core.decide.rules import Constraints, Decision, Rule, decide, feasible

ROUNDING = 0.01
"""Largest share of a value by which the limit that lets it in is rounded."""
_DIGITS = 17
"""Significant digits that tell any two numbers apart."""


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A stack that one limit alone excludes."""

    row: int  # of the table
    axis: Axis  # whose limit
    value: float  # what the stack has there, in the axis's unit
    over: float  # by how much that breaks the limit; above 0
    # By how much its quality is better than that of the chosen stack; None where nothing is chosen
    gain: float | None
    set_to: float  # the nearest round limit that lets it in
    edge: bool  # whether it breaks the SLA by less than what latencies are told apart by

    @property
    def limit(self) -> str:
        """The name of the limit: one of `core.decide.axes.LIMITS`."""
        return self.axis.limit

    @property
    def unit(self) -> str:
        """The unit of its value."""
        return self.axis.unit


def near_misses(
    table: pl.DataFrame, decision: Decision, constraints: Constraints, rule: Rule = "quality"
) -> list[NearMiss]:
    """For each limit the stack of best quality that this limit alone excludes.

    Where that one is beyond the edge of the SLA, the best at the edge is named besides.

    Args:
        table: As for `core.decide.rules.decide`.
        constraints: What a stack must meet.

    Returns:
        The largest gain over the chosen stack first. Left out is what has no gain; under a rule for cost or
        latency, a gain is also to have less of that. Where nothing is chosen, the best quality first.
    """
    merit = decision.quality.merit(decision.quality.read(table))
    chosen = decision.chosen
    here = np.nan if chosen is None else merit[chosen]
    better = np.ones(table.height, dtype=np.bool_) if chosen is None else merit > here
    if chosen is not None and rule != "quality":
        paid = (COST if rule == "cost" else LATENCY).read(table)
        better |= paid < paid[chosen]
    found = []
    for axis in decision.axes:
        bound = constraints.of(axis)
        if bound is None:
            continue
        values = axis.read(table)
        over = axis.merit(np.asarray(bound)) - axis.merit(values)
        lifted: dict[str, Any] = {axis.field: None}
        alone = feasible(table, replace(constraints, **lifted))
        rows = np.flatnonzero(alone & ~decision.feasible & (over > 0) & better)
        at_edge = (over < decision.band) & (axis == LATENCY)
        for row in _best(merit, over, rows, at_edge):
            gain = None if chosen is None else float(merit[row] - here)
            value, beyond = float(values[row]), float(over[row])
            set_to = lets_in(value, upper=not axis.higher_is_better)
            found.append(NearMiss(row, axis, value, beyond, gain, set_to, bool(at_edge[row])))
    return sorted(found, key=lambda miss: (-merit[miss.row], miss.over))


def _best(merit: Floats, over: Floats, rows: NDArray[np.intp], at_edge: NDArray[np.bool_]) -> list[int]:
    """The best row, and the best of those at the edge where that is another; of equals the closest."""
    ordered = rows[np.lexsort((over[rows], -merit[rows]))]
    firsts = (ordered[:1], ordered[at_edge[ordered]][:1])
    return list(dict.fromkeys(int(row) for first in firsts for row in first))


def lets_in(value: float, *, upper: bool = True) -> float:
    """The nearest round number that a value meets as a limit."""
    exact = Decimal(repr(value))
    if not exact:
        return 0.0
    for digits in range(1, _DIGITS + 1):
        step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
        rounded = exact.quantize(step, ROUND_CEILING if upper else ROUND_FLOOR)
        if abs(rounded - exact) <= abs(exact) * Decimal(str(ROUNDING)):
            break
    return float(rounded)


@dataclass(frozen=True, slots=True, eq=False)
class Conditioned:
    """What one latency target leaves."""

    sla_ms: float | None  # the target; None = none
    decision: Decision  # what the rule chooses within it
    # Rows of the feasible stacks that are not dominated in cost and quality, by rising cost
    frontier: NDArray[np.intp]


def conditioned(
    table: pl.DataFrame,
    targets_ms: Sequence[float | None],
    constraints: Constraints,
    *,
    paired: Paired | None = None,
) -> list[Conditioned]:
    """Decide at every target, the other constraints staying.

    Latency is the target's business here, so the frontier at one target is that of cost and quality among
    the stacks that meet it.

    Args:
        table: As for `core.decide.rules.decide`.
        targets_ms: Latency targets; ms, None = no target.
        constraints: Budget, floor and jitter band; its own SLA does not matter.
        paired: Quality per query, where it is known.

    Returns:
        One result per target, in the given order.
    """
    cost, quality = (
        table[name].cast(pl.Float64).fill_null(np.nan).to_numpy() if table.height else np.empty(0)
        for name in ("cost", "quality")
    )
    made = []
    for sla_ms in targets_ms:
        found = decide(table, replace(constraints, sla_ms=sla_ms), paired=paired)
        within = np.where(found.feasible, found.quality.merit(quality), np.nan)
        made.append(Conditioned(sla_ms, found, frontier_2d(cost, within)))
    return made
