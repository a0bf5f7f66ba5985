"""What a choice hangs on: the number that would turn it, what the limits exclude, the frontier's shape."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from core.decide.axes import COST, LATENCY
from core.decide.pareto import frontier, hypervolume, knee
from core.decide.rules import Decision
from core.decide.turning import Turn


def turn_rows(table: pl.DataFrame, turns: list[Turn]) -> pl.DataFrame:
    """What would have to be true: one row per number, each changed by itself.

    Args:
        turns: From `core.decide.turning.turns` on the same table.

    Returns:
        stack, number (the word of its axis), now, then and change in words with their unit, winner
        (what is chosen then) and reason (why nothing turns the choice).
    """
    rows = [
        {
            "stack": table["name"][turn.of],
            "number": turn.axis.word,
            "now": turn.axis.written(turn.now),
            "then": None if turn.then is None else turn.axis.written(turn.then),
            "change": _change(turn),
            "winner": _winner(table, turn),
            "reason": turn.reason or None,
        }
        for turn in turns
    ]
    columns = ("stack", "number", "now", "then", "change", "winner", "reason")
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String))


def _winner(table: pl.DataFrame, turn: Turn) -> str | None:
    if turn.then is None:
        return None
    return "no stack" if turn.winner is None else str(table["name"][turn.winner])


def _change(turn: Turn) -> str | None:
    if turn.change is None or turn.now is None:
        return None
    sign = "+" if turn.change >= 0 else "−"
    share = f" ({sign}{abs(turn.change) / turn.now:.1%})".replace("%", " %") if turn.now else ""
    return f"{sign}{turn.axis.written(abs(turn.change))}{share}"


def excluded_rows(table: pl.DataFrame, decision: Decision) -> pl.DataFrame:
    """Every excluded stack with the first constraint that excludes it, the nearest misses first.

    Returns:
        run_id, name, constraint, by (in unit; null where the value is unknown), unit, reason, quality,
        latency_ms, cost.
    """
    numbers_of = table.select("run_id", "name", "quality", "latency_ms", "cost")
    return (
        decision.excluded()
        .join(numbers_of, on="run_id", how="left", maintain_order="left")
        .sort("constraint", "by", nulls_last=True, maintain_order=True)
        .select("run_id", "name", "constraint", "by", "unit", "reason", "quality", "latency_ms", "cost")
    )


@dataclass(frozen=True)
class Front:
    """The frontier of the feasible stacks in two numbers."""

    size: int  # stacks on it
    volume: float  # share of the box between the worst stack and the ideal that it dominates
    of_all: float  # the same for all stacks, limits or not; at the same worst corner
    knee: str | None  # the stack beyond which more quality is bought dearest; None where it bends nowhere


def front(table: pl.DataFrame, decision: Decision) -> Front | None:
    """Size, hypervolume and knee of the frontier; None where neither cost nor latency is known."""
    compared = {axis.key for axis in decision.required if axis.compared}
    quality = decision.quality.read(table)
    if np.isnan(quality).all() or len(compared) < 2:
        return None
    # Of a measure that is better the lower what it lacks to 1 is the gain, so that the ideal is 0.
    gain = quality if decision.quality.higher_is_better else 1.0 - quality
    cost, latency = (axis.read(table) if axis.key in compared else None for axis in (COST, LATENCY))
    paid = [each for each in (cost, latency) if each is not None]
    complete = ~np.isnan(np.column_stack([gain, *paid])).any(axis=1)
    if not complete.any():
        return None
    corner = (
        None if cost is None else float(cost[complete].max()),
        None if latency is None else float(latency[complete].max()),
        float(gain[complete].min()),
    )
    within = np.where(decision.feasible, gain, np.nan)
    bend = knee(cost, latency, within)
    return Front(
        size=int(frontier(table, decision).sum()),
        volume=hypervolume(cost, latency, within, reference=corner),
        of_all=hypervolume(cost, latency, gain, reference=corner),
        knee=None if bend is None else str(table["name"][bend]),
    )
