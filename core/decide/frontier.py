"""The stacks that a decision leaves and no other one beats: one frontier for pages, record and command."""

from __future__ import annotations

import polars as pl

from core.decide.pareto import undominated
from core.decide.rules import Decision, Mask


def frontier(table: pl.DataFrame, decision: Decision, *, weak: bool = False) -> Mask:
    """Which feasible stacks no other feasible one beats in what the decision compares.

    Compared are cost, latency and quality in the direction of the measure; an axis on which nothing is known
    is not. Where quality alone is left, those of the best quality are on it.

    Args:
        table: The stack table.
        decision: What was selected from it.
        weak: Take the paper's form; see `core.decide.pareto.nondominated`.

    Returns:
        Mask [n].
    """
    mask = decision.feasible.copy()
    points = [-axis.merit(axis.read(table))[mask] for axis in decision.required if axis.compared]
    mask[mask] = undominated(points, weak=weak)
    return mask


def frontier_rows(table: pl.DataFrame, decision: Decision, *, weak: bool = False) -> list[int]:
    """The rows of `frontier`, the best quality first."""
    on = frontier(table, decision, weak=weak).nonzero()[0]
    worst_last = -decision.quality.merit(decision.quality.read(table))[on]
    return [int(row) for row in on[worst_last.argsort(kind="stable")]]
