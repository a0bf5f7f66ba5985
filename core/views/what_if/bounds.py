"""Limits on a way of answering: all queries at one depth, or each at the depth chosen by a rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.analysis.families import Option
from core.analysis.workspace.scope import MEAN, Percentile
from core.analysis.workspace.view import View
from core.decide.axes import COST, LATENCY, QUALITY, Axis
from core.views.what_if import sent

_OWN = (LATENCY.key, COST.key, QUALITY.key)  # axes on which a way has its own numbers


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a workspace on ways between some options; without limits, every way meets them."""

    sla_ms: float | None = None  # limit on the latency of this percentile
    percentile: Percentile = "p50"
    budget: float | None = None
    floor: float | None = None
    higher_is_better: bool = True
    beside: tuple[str, ...] = ()  # per option the other limits that it breaks, in words; "" if none

    @classmethod
    def of(cls, view: View, options: Sequence[Option]) -> Bounds:
        """Read the bounds from a workspace; a floor applies to its own measure only."""
        limits, decision = view.constraints, view.decision
        rows = {run_id: row for row, run_id in enumerate(view.table["run_id"])}
        others = [(place, axis) for place, axis in enumerate(decision.axes) if axis.key not in _OWN]
        beside = []
        for option in options:
            row = rows.get(option.run_id) if option.deep is None else None
            broken = [
                axis.beyond for place, axis in others if row is not None and decision.over[row, place] > 0
            ]
            beside.append(" and ".join(broken))
        same = sent.quality(options[-1], view.quality) == view.quality if options else True
        return cls(
            limits.sla_ms, view.latency.percentile, limits.budget, limits.min_quality if same else None,
            limits.higher_is_better, tuple(beside),
        )  # fmt: skip

    def broken(self, way: Mapping[str, Any], used: Sequence[int] = ()) -> str | None:
        """Return the limits that a way breaks, as far as its numbers are known, or None.

        Args:
            way: p50, p95, cost and quality; null = unknown.
            used: The options that it uses.
        """
        value, floor = way["quality"], self.floor
        worse = floor is not None and (value < floor if self.higher_is_better else value > floor)
        words = [
            _over(LATENCY, way.get("mean_ms" if self.percentile == MEAN else self.percentile), self.sla_ms),
            _over(COST, way["cost"], self.budget),
            f"{'under' if self.higher_is_better else 'over'} the {QUALITY.limit_word}" if worse else "",
            *(self.beside[place] for place in used if place < len(self.beside)),
        ]
        return " and ".join(dict.fromkeys(filter(None, words))) or None


def _over(axis: Axis, value: float | None, most: float | None) -> str:
    if value is None or most is None or value <= most:
        return ""
    return f"{axis.written(value - most)} {axis.beyond}"
