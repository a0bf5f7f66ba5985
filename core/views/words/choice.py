"""Sentences on a choice, shared by several pages: its limits, measure and cost, and each stack's status."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from core.analysis.workspace.scope import Latency, Quality
from core.analysis.workspace.stacks import UNPROVEN
from core.decide.axes import BESIDE, COST, MOVING
from core.decide.rules import Constraints, Decision
from core.views import text

RULE_WORDS: Mapping[str, str] = {
    "quality": "the best quality within the limits, or the cheapest that is surely as good",
    "cost": "the best within 1 % of the lowest cost within the limits",
    "latency": "the best of the fastest within the limits",
}
"""Rules for choosing, in words, by their names in links and options."""
_KIND: Mapping[str, str] = {
    "sparse": "Keyword search",
    "dense": "Vector search",
    "hybrid": "Keyword and vector search, fused",
}
COSTED: Mapping[str, str] = {"answered query": "answered queries", "correct answer": "correct answers"}
"""Units that costs are counted in other than queries, by the table's `cost_per`."""
ALL_AXES = "cost, latency and quality"
"""Axes of the table's frontier; the chart's frontier has the chart's two axes."""


def decided_by(decision: Decision) -> str:
    """Say which rule chose the stack, and which part of it decided; "" if nothing is chosen."""
    if decision.chosen is None:
        return ""
    said = f"Rule: {RULE_WORDS[decision.rule]}."
    if decision.instead_of is not None:
        return f"{said} A person took another."
    if decision.rule != "quality":
        return said
    if len(decision.ties) > 1:
        return f"{said} Here {len(decision.ties):,} are surely as good."
    alone = int(decision.feasible.sum()) == 1
    return f"{said} Here only one is left." if alone else f"{said} Here no other is surely as good."


def limits(constraints: Constraints, latency: Latency) -> str:
    """Return the constraints in words: ``within 500 ms (p50) and $2.50 / 1k``; "" without any."""
    inside = []
    if constraints.sla_ms is not None:
        inside.append(f"{text.ms(constraints.sla_ms)} ({latency.percentile})")
    if constraints.budget is not None:
        cost = next(axis for axis in constraints.axes if axis.key == COST.key)
        inside.append(cost.written(constraints.budget))
    words = f" within {' and '.join(inside)}" if inside else ""
    if constraints.min_quality is not None:
        side = "above a quality of" if constraints.higher_is_better else "with a quality of at most"
        words += f" {side} {constraints.min_quality:.2f}"
    asked = [(axis, limit) for axis in (*BESIDE, *MOVING) if (limit := constraints.of(axis)) is not None]
    for place, (axis, limit) in enumerate(asked):
        also = " and" if place or constraints.min_quality is not None else ""
        most = axis.written(limit) if axis.unit else f"{limit:.2f}"
        words += f"{also} with {axis.article}{axis.word} of at {axis.side} {most}"
    return words


def all_unknown(table: pl.DataFrame) -> bool:
    """Return whether no stack has a quality."""
    return table["quality"].null_count() == table.height


def quality_notes(table: pl.DataFrame) -> pl.Series:
    """Return why stacks without a quality have none."""
    return table.get_column("quality_note", default=pl.Series(dtype=pl.String)).drop_nulls()


def undecided(table: pl.DataFrame) -> str:
    """Say why a workspace lacks the evidence for a decision, or return "" if it doesn't."""
    if not all_unknown(table):
        return ""
    notes = quality_notes(table)
    proofless = notes.filter(notes.str.starts_with(UNPROVEN)).str.strip_prefix(UNPROVEN)
    return "" if proofless.is_empty() else f"{proofless[0][:1].upper()}{proofless[0][1:]}."


def meaning(quality: Quality, *, at_any: bool = False) -> str:
    """Describe what the measure counts: ``share of the best possible evidence in ten passages``.

    The description is "" for a measure not computed here. At any cutoff, it is in K passages. A name that is
    written out before a share is left out, as the short one stands beside it.
    """
    measure = quality.measure
    if measure is None:
        return ""
    said = measure.info.text.removeprefix(f"{measure.name}: ").partition("; ")[0].rstrip(".")
    said = re.sub(r"^[^:]+: (?=share of )", "", said)
    k = "K" if at_any else "ten" if measure.k == 10 else str(measure.k)
    return re.sub(r"\bK\b", k, f"{said[:1].lower()}{said[1:]}")


def axis(quality: Quality, *, at_any: bool = False) -> str:
    """Return the title of a quality axis, at its cutoff or at any, including what the measure counts."""
    name, counted = quality.bare if at_any else quality.name, meaning(quality, at_any=at_any)
    return f"{name}: {counted}" if counted else name


def kind_of_search(row: Mapping[str, Any]) -> str:
    """Say what a stack of a stack table is, its parts unnamed; "" if its specification does not say.

    For example ``Keyword and vector search, fused, then reranked``.
    """
    kind = _KIND.get(str(row.get("mode")), "")
    return f"{kind}{', then reranked' if row.get('reranker') not in (None, 'none') else ''}" if kind else ""


def costed(table: pl.DataFrame) -> str:
    """Return the unit that the costs of a stack table are per: ``queries``."""
    per = table["cost_per"].first() if "cost_per" in table.columns and table.height else None
    return COSTED.get(str(per), "queries")


def listed(rows: pl.DataFrame, roles: Mapping[str, str]) -> pl.DataFrame:
    """Return rows of `marked`, merged, with outcome (status, or why excluded).

    Args:
        roles: What stacks are instead of their status, by run_id.
    """
    status = pl.col("status").cast(pl.String).replace("frontier", f"frontier of {ALL_AXES}")
    own = [pl.col("run_id").replace_strict(roles, default=None, return_dtype=pl.String)] if roles else []
    return rows.with_columns(outcome=pl.coalesce("reason", *own, status))
