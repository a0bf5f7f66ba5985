"""The tiles of a decision: each number of the chosen stack, or of two stacks where neither clearly wins."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from core.analysis.stack_cost import ASSUMED_PRICE, cost_basis, priced_by
from core.analysis.workspace.comparable import clock
from core.analysis.workspace.scope import Latency, Quality
from core.analysis.workspace.sure import good_enough
from core.analysis.workspace.view import View
from core.decide.rules import Decision
from core.decide.selection import ALONE, Assessment
from core.stats.intervals import CLUSTERS
from core.views import text
from core.views.blocks import Cards, Comparison
from core.views.decision.words import few
from core.views.words.advice import first_step
from core.views.words.bills import bill, spent
from core.views.words.choice import COSTED, meaning
from core.views.words.late import slow, slow_words
from core.views.words.lead import Lead, lead

CONFIDENCE = "Confidence"
_LATENCIES = {"path": "Latency {}", "rerank": "Reranker latency {}", "end-to-end": "Latency {}, end to end"}
Number = tuple[str, str, Sequence[str], str]
"""Label, number with its unit, what is said of it, and how it was obtained."""


@dataclass(frozen=True)
class Tile:
    """A number of the answer."""

    label: str
    # Of the chosen stack, or of both where neither clearly wins: the number, and what holds for it alone
    numbers: tuple[tuple[str, str], ...]
    note: str  # what holds for all of them
    basis: str = ""  # measured, published, modelled or imported; a cost by its usage; "" if unknown

    @classmethod
    def of(cls, sides: Sequence[Number], between: str = ", ") -> Tile:
        """Put the same number of each stack into a tile, and say once what holds for all.

        Args:
            between: What stands between statements.
        """
        bases = {basis for *_, basis in sides}
        said = [[*parts, *[basis] * (len(bases) > 1)] for *_, parts, basis in sides]
        shared = [part for part in said[0] if all(part in parts for parts in said)]
        numbers = tuple(
            (number, between.join(part for part in parts if part and part not in shared))
            for (_, number, *_), parts in zip(sides, said, strict=True)
        )
        note = between.join(filter(None, shared))
        return cls(sides[0][0], numbers, note, bases.pop() if len(bases) == 1 else "")


def sides(view: View) -> tuple[Mapping[str, Any], ...]:
    """Return the rows of the stacks that the heading names: the chosen one, or two if none clearly wins."""
    if rather := view.once(first_step).rather:
        return rather.sides
    return () if view.decision.chosen is None else (view.table.row(view.decision.chosen, named=True),)


def tiles(view: View) -> list[Tile]:
    """Return the numbers of the stacks that the heading names, and the confidence in each."""
    paid = priced_by(view)
    each = [
        cards(
            row, view.quality, view.latency, bill(view, row["run_id"]),
            late=slow_words(slow(view, row["run_id"])), paid=paid,
        )
        for row in sides(view)
    ]  # fmt: skip
    numbers = [Tile.of(told) for told in zip(*each, strict=True)]
    return [*numbers, Tile.of(confidence(view), "; ")]


def blocks(of: Sequence[Tile], names: Sequence[str]) -> Cards | Comparison:
    """Return tiles as a block, for whatever is not the dashboard; `names` are those of the stacks."""
    if len(names) == 1:
        return Cards([(tile.label, tile.numbers[0][0], _joined(tile.note, tile.basis)) for tile in of])
    return Comparison(
        [
            (
                _joined(tile.label, tile.note, tile.basis),
                [(name, *number) for name, number in zip(names, tile.numbers, strict=True)],
                (),
            )
            for tile in of
        ]
    )


def _joined(*words: str) -> str:
    return " · ".join(filter(None, words))


def cards(
    row: Mapping[str, Any], quality: Quality, latency: Latency, bill: pl.DataFrame, *, late: str, paid: str
) -> list[Number]:
    """Return the three numbers of a stack.

    Args:
        bill: The cost of its stages, from `core.analysis.stack_cost.recorded`; empty if not on record.
        late: Duration of its slow searches, in words; "" if not asked for.
        paid: How costs from measured usage were priced: ``list price``.
    """
    low, high = row["latency_low"], row["latency_high"]
    spread = "" if low is None or high is None else f"{text.ms(low)} to {text.ms(high)}"
    timed = "" if row["latency_n"] is None else text.sample(row["latency_n"])
    clocked = clock(json.loads(row["environment"] or "{}").get("reported"))
    said, cost, share = text.CostUnit.of(row), text.cost_of(row, bare=True), row["correct"]
    guessed = row["cost_basis"] == "modelled" or paid == ASSUMED_PRICE
    about = "≈ " if guessed and row["cost"] is not None else ""
    if share is None:
        spent_on = spent(bill)
    else:
        whole = "" if row["cost"] is None else said.bare(row["cost"] * share)
        spent_on = whole and f"{whole} ÷ {text.percent(share)} correct"
    interval = text.interval(row["quality_low"], row["quality_high"]).strip()
    costed = f"Cost per {said.many} {COSTED.get(str(row['cost_per']), 'queries')}"
    return [
        (
            quality.name,
            text.score(row["quality"]),
            (interval, text.sample(row), meaning(quality)),
            row["quality_basis"] or "",
        ),
        (
            _LATENCIES[latency.scope].format(latency.percentile),
            text.ms(row["latency_ms"]),
            (spread, timed, clocked, late),
            row["latency_basis"] or "",
        ),
        (costed, f"{about}{cost}", spent_on.split(", "), cost_basis(row["cost_basis"], paid)),
    ]


def confidence(view: View) -> list[Number]:
    """Return the confidence in each stack that the heading names."""
    table, decision, rather = view.table, view.decision, view.once(first_step).rather
    firm, said = firmness(table, decision, view.sure)
    good, *meets = said.split("; ")
    if rather is None:
        unsure = [] if view.sure.unknown == ALONE else doubts(view.once(lead))
        return [(CONFIDENCE, firm, [good, *meets, *unsure], "")]
    second = text.UNKNOWN if rather.pgs[1] is None else text.percent(rather.pgs[1])
    return [(CONFIDENCE, firm, [good, *meets], ""), (CONFIDENCE, second, [good], "")]


def doubts(ahead: Lead | None) -> list[str]:
    """Say how many others may be better than a stack."""
    return [] if ahead is None else [ahead.maybe]


def firmness(table: pl.DataFrame, decision: Decision, sure: Assessment) -> tuple[str, str]:
    """Return the one confidence number, and what it is the probability of, or why it is unknown."""
    if decision.chosen is None:
        return text.NOT_APPLICABLE, ""
    feasible = sure.p_feasible
    always = feasible is None or feasible == 1.0
    meets = "" if always else f"; meets the limits in {text.percent(feasible)}"
    if sure.pgs is not None:
        return text.percent(sure.pgs), f"chance to be {good_enough(decision)}{meets}"
    if few(table, decision):
        kind = table["cluster_kind"][decision.chosen]
        return "unknown", f"fewer than {CLUSTERS} {'queries' if kind is None else f'{kind}s'}"
    if sure.unknown == ALONE:
        return "–", f"nothing to choose from{meets}"
    return "unknown", sure.unknown
