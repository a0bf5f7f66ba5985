"""How surely the chosen stack is better than the others within the limits, query by query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from core.analysis.workspace.view import View
from core.decide.rules import Decision
from core.decide.ties import LEVEL, ROUNDING, Numbers, Paired, lightest
from core.views import text

SURELY = "Surely better than"
NAMED = 4
"""How many of the surely beaten stacks are named."""


@dataclass(frozen=True)
class Lead:
    """The lead of the chosen stack: over how many it is sure, and the rival over which it is least so."""

    # Stacks than which it is surely better: at 95 % for all pairs together, as it was selected among them
    surely: int
    others: int  # stacks within the limits besides it
    rival: str | None = None  # None = unknown
    by: float | None = None  # lead over the rival; above 0 is better, whatever the measure's direction
    low: float | None = None  # its 95 % interval
    high: float | None = None
    beaten: tuple[str, ...] = ()  # names of those than which it is surely better, the best first
    spread: float = 0.0  # standard deviation over the queries of its lead over each other, on average

    @property
    def named(self) -> str:
        """The names of those than which it is surely better, or "" if that is sure of none or of all."""
        if not self.beaten or self.surely == self.others:
            return ""
        return f"Those are: {text.first_of(self.beaten, NAMED, between='; ')}."

    @property
    def maybe(self) -> str:
        """How many others may yet be better: ``7 of 11 others are not proven worse``."""
        unsure = self.others - self.surely
        if not unsure:
            return "surely better than each other one"
        if self.others == 1:
            return "the other one is not proven worse"
        return f"{unsure:,} of {self.others:,} others {'is' if unsure == 1 else 'are'} not proven worse"

    @property
    def interval(self) -> str:
        """The lead over the rival: ``+0.009 [−0.015, +0.032]``; "" if unknown."""
        if self.by is None or self.low is None or self.high is None:
            return ""
        return f"{text.signed(self.by)} [{text.signed(self.low)}, {text.signed(self.high)}]"

    @property
    def sentences(self) -> tuple[str, str]:
        """What is sure, and what is not; the second is "" if the lead over the rival is sure or unknown."""
        some = (
            f"{self.surely or 'none'} of the {self.others:,} others" if self.others > 1 else "the other one"
        )
        sure = (
            f"{SURELY} {some}, all pairs together, grades as given." if self.surely or self.others > 1 else ""
        )
        doubted = self.low is not None and self.low <= 0
        return (
            sure,
            f"Not surely better than {self.rival}: {self.interval}, this pair alone." if doubted else "",
        )

    @property
    def data(self) -> dict[str, object]:
        """The lead as plain data."""
        return {
            "surely_better_than": self.surely,
            "others": self.others,
            "beaten": list(self.beaten),
            "rival": self.rival,
            "by": self.by,
            "low": self.low,
            "high": self.high,
        }


def lead(view: View, decided: Decision | None = None) -> Lead | None:
    """Return the lead of the chosen stack; None if not chosen by quality, or not known by query.

    Args:
        decided: With another stack as the chosen one; None = the decision of the view.
    """
    decision, paired = decided or view.decision, view.paired
    if decision.chosen is None or decision.rule != "quality" or paired is None:
        return None
    others = np.flatnonzero(decision.feasible)
    others = others[others != decision.chosen]
    numbers = Numbers.of(
        view.table, decision.quality, view.constraints.jitter_ms, paired, delta=decision.delta
    )
    if not len(others) or numbers.places[decision.chosen] < 0 or not numbers.singly(others).all():
        return None
    rival = nearest_rival(view.table, decision, paired)
    pairs = len(others) * (len(others) + 1) / 2
    least, _ = numbers.better_by(decision.chosen, others, (1 - LEVEL) / 2 / pairs)
    beaten = others[least > ROUNDING]
    names = tuple(view.table["name"][beaten[np.argsort(-numbers.merit[beaten], kind="stable")]].to_list())
    surely, places = len(beaten), numbers.places
    leads = paired.values[places[others]] - paired.values[places[decision.chosen]]
    spread = float(np.nanstd(leads, axis=1).mean())
    if rival is None:
        return Lead(surely, len(others), beaten=names, spread=spread)
    pair = (str(view.table["run_id"][decision.chosen]), str(rival["run_id"]))
    by, low, high = lead_over(paired, pair, higher_is_better=decision.quality.higher_is_better)
    return Lead(surely, len(others), str(rival["name"]), by, low, high, names, spread)


def lead_over(
    paired: Paired, pair: tuple[str, str], *, higher_is_better: bool
) -> tuple[float, float, float] | tuple[None, None, None]:
    """Return by how much a run leads another, with the 95 % interval; None if not known by query."""
    first, other = paired.places(pl.Series(pair, dtype=pl.String)).tolist()
    if min(first, other) < 0:
        return None, None, None
    sign = 1.0 if higher_is_better else -1.0
    by, *ends = (sign * float(each[0]) for each in paired.differences(np.array([first]), other))
    return by, min(ends), max(ends)


def nearest_rival(table: pl.DataFrame, decision: Decision, paired: Paired | None) -> dict[str, Any] | None:
    """Return the feasible stack that the choice leads least significantly, or None if that is unknown.

    Stacks with identical results don't count: cost and time decide between them. Of
    rivals with equal results it is the cheapest, then the fastest.
    """
    if decision.chosen is None or paired is None:
        return None
    feasible = np.flatnonzero(decision.feasible)
    places = paired.places(table["run_id"])
    others = feasible[(feasible != decision.chosen) & (places[feasible] >= 0)]
    if places[decision.chosen] < 0 or not len(others):
        return None
    sign = 1.0 if decision.quality.higher_is_better else -1.0
    ahead, *ends = paired.differences(places[others], int(places[decision.chosen]))
    closest = np.max([sign * end for end in ends], axis=0)
    closest = np.where((ahead == 0) & ~(closest > 0) | np.isnan(closest), -np.inf, closest)
    if not np.isfinite(closest).any():
        return None
    numbers = Numbers.of(table, decision.quality, None, paired, delta=decision.delta)
    first = lightest(replace(numbers, band=decision.band), int(others[closest.argmax()]), others)
    return table.row(first, named=True)
