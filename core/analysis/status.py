"""The status of every stack: chosen, runner-up, on the frontier, within the limits, or why excluded."""

from __future__ import annotations

import numpy as np
import polars as pl

from core.decide.axes import LATENCY, NEEDED, SWITCHING, Axis
from core.decide.pareto import by_noise, frontier, frontier_2d
from core.decide.rules import Decision

CHANCES = ("p_frontier", "p_sla", "p_feasible", "p_best", "p_again")

STATUSES = ("chosen", "runner-up", "frontier", "within the limits", "excluded")


def marked(
    table: pl.DataFrame, decision: Decision, across: Axis = LATENCY, *, weak: bool = False
) -> pl.DataFrame:
    """Return the stack table with each stack's status."""
    merit = decision.quality.merit(decision.quality.read(table))
    line = np.zeros(table.height, dtype=np.bool_)
    drawn = decision.feasible & ~by_noise(table, decision)
    line[frontier_2d(np.where(drawn, across.read(table), np.nan), merit)] = True
    on = frontier(table, decision, weak=weak)
    place = np.where(decision.feasible, np.where(on, 2, 3), 4)
    for at, rank in ((decision.runner_up, 1), (decision.chosen, 0)):
        if at is not None:
            place[at] = rank
    out = np.flatnonzero(~decision.feasible)
    reason = np.full(table.height, len(out))  # after the last: none
    reason[out] = np.arange(len(out))
    return table.with_row_index("row").hstack(
        [
            pl.Series("feasible", decision.feasible),
            pl.Series("line", line),
            pl.Series("frontier", on),
            pl.Series("status", place.astype(np.uint8)).cat.to(pl.Enum(STATUSES)),
            decision.reasons(out).extend_constant(None, 1).gather(reason),
        ]
    )


def ordered(rows: pl.DataFrame, decision: Decision) -> pl.DataFrame:
    """Return rows of `marked` by status, the best quality first."""
    return rows.sort(
        ["status", "quality"],
        descending=[False, decision.quality.higher_is_better],
        nulls_last=True,
        maintain_order=True,
    )


def status_rows(table: pl.DataFrame, decision: Decision, *, weak: bool = False) -> pl.DataFrame:
    """Return the stack table as a list of statuses, the chosen stack first.

    Args:
        weak: Whether to use the paper's form of the frontier.

    Returns:
        status (one of `STATUSES`), run_id, stack, quality, latency_ms, cost with least and missing, reason
        (why excluded), the step and the cost of a move if a stack runs today, and the chances if the table
        has them.
    """
    shown = [name for name in CHANCES if name in table.columns]
    of_a_move = [name for name in (NEEDED, SWITCHING.column) if name in table.columns]
    numbers = ("quality", "latency_ms", "cost", "cost_least", "cost_missing", *of_a_move)
    return ordered(marked(table, decision, weak=weak), decision).select(
        pl.col("status").cast(pl.String), "run_id", pl.col("name").alias("stack"), *numbers, *shown, "reason"
    )
