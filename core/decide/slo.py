"""The frontier and the choice at each of several latency targets (CLQ paper §5.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.decide.paired import Paired
from core.decide.pareto import frontier_2d
from core.decide.rules import Constraints, Decision, Rule, decide

TARGETS_MS = (350.0, 500.0, 1000.0)
"""Targets to begin with; the first two are the paper's."""


@dataclass(frozen=True, slots=True, eq=False)
class Conditioned:
    """What one latency target leaves.

    Attributes:
        sla_ms: The target; None = none.
        decision: What the rule chooses within it.
        frontier: Rows of the feasible stacks that are not dominated in cost and quality, by rising cost.
    """

    sla_ms: float | None
    decision: Decision
    frontier: NDArray[np.intp]


def conditioned(
    table: pl.DataFrame,
    targets_ms: Sequence[float | None],
    constraints: Constraints,
    rule: Rule = "quality",
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
        found = decide(table, replace(constraints, sla_ms=sla_ms), rule, paired=paired)
        within = np.where(found.feasible, found.quality.merit(quality), np.nan)
        made.append(Conditioned(sla_ms, found, frontier_2d(cost, within)))
    return made
