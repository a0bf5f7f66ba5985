"""The decision in words: what to ship, how good, how fast, how dear, how sure."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from core.decide.rules import Constraints, Decision
from core.views import text
from core.views.decision.promising import unasked_words
from core.views.workspace.harm import cap_words
from core.views.workspace.holes import overturned
from core.views.workspace.scope import Latency, Quality

_NO_QUALITY = (
    "It is computed from rankings and judgements, or was reported at this cutoff: import what is missing, or "
    "choose another measure or cutoff in the sidebar."
)


@dataclass(frozen=True)
class Answer:
    """The answer of the pages that decide.

    Attributes:
        sentence: The chosen stack with its numbers, or why there is none.
        reason: How a tie was broken, and what else would do.
        warning: What of the evidence could overturn it, what a harm cap is about, and what the choice could
            not look at; empty when there is nothing to say.
    """

    sentence: str
    reason: str
    warning: str = ""


def limits(constraints: Constraints, latency: Latency) -> str:
    """The constraints in words: ``within 500 ms (p50) and $2.50 / 1k``; empty without any."""
    inside = []
    if constraints.sla_ms is not None:
        inside.append(f"{text.ms(constraints.sla_ms)} ({latency.percentile})")
    if constraints.budget is not None:
        inside.append(text.usd(constraints.budget))
    words = f" within {' and '.join(inside)}" if inside else ""
    if constraints.floor is not None:
        side = "above a quality of" if constraints.higher_is_better else "with a quality of at most"
        words += f" {side} {constraints.floor:.2f}"
    if constraints.max_harm is not None:
        also = " and" if constraints.floor is not None else ""
        words += f"{also} with harm of at most {constraints.max_harm:.2f}"
    return words


def numbers(row: dict[str, object], quality: Quality) -> str:
    """A stack's three numbers: ``RA-nWG@10 0.805 [0.750, 0.850], n = 50; 337 ms; $1.25 / 1k``."""
    value, low, high = (_float(row[name]) for name in ("quality", "quality_low", "quality_high"))
    return (
        f"{quality.name} {text.score(value)}{text.interval(low, high)}, {text.sample(row['n'])}; "
        f"{_or_unknown('latency', text.ms(_float(row['latency_ms'])))}; "
        f"{_or_unknown('cost', text.cost_of(row))}"
    )


def _or_unknown(what: str, written: str) -> str:
    return f"{what} unknown" if written == text.UNKNOWN else written


def answer(
    table: pl.DataFrame, decision: Decision, constraints: Constraints, quality: Quality, latency: Latency
) -> Answer:
    """Say which stack the constraints select.

    Args:
        table: The stack table.
        decision: What was selected from it.
        constraints: SLA, budget, floor and harm cap.
        quality: The measure that stands for quality.
        latency: The latency that the SLA is about.

    Returns:
        The sentence to head a page with, and the reasons.
    """
    within = limits(decision.applied(constraints), latency)
    if decision.chosen is None and table["quality"].is_null().all():
        notes = table.get_column("quality_note", default=pl.Series(dtype=pl.String)).drop_nulls()
        why = f"It {notes[0]}." if len(notes) else _NO_QUALITY
        return Answer(f"No stack here has a known {quality.name}.", why)
    doubts = [overturned(table, decision, quality), cap_words(table, constraints), *unasked_words(decision)]
    warning = " ".join(filter(None, doubts))
    if decision.chosen is None:
        return Answer(f"No stack{within} is left.", _nearest(decision), warning)
    row = table.row(decision.chosen, named=True)
    feasible = int(decision.feasible.sum())
    sentence = f"Ship {row['name']}{within}: {numbers(row, quality)}."
    meet = f"{feasible:,} of {text.count(table.height, 'stack')} within the limits"
    reason = f"{meet}. {_tie(table, decision, quality)}".strip()
    if decision.runner_up is not None:
        other = table.row(decision.runner_up, named=True)
        reason += f" Runner-up: {other['name']} ({numbers(other, quality)})."
    return Answer(sentence, reason, warning)


def _tie(table: pl.DataFrame, decision: Decision, quality: Quality) -> str:
    """How a tie was broken, and what the highest quality was, where another stack has it."""
    up = quality.higher_is_better
    best = table[list(decision.ties)].sort("quality", descending=up).row(0, named=True)
    if not decision.note or best["run_id"] == decision.run_ids[decision.chosen or 0]:
        return decision.note
    figures = f"{text.score(best['quality'])}{text.interval(best['quality_low'], best['quality_high'])}"
    head = f"{decision.note} The {'highest' if up else 'lowest'} {quality.name} among them"
    return f"{head}: {best['name']}, {figures}."


def _nearest(decision: Decision) -> str:
    """Which constraint is missed by the least, as a hint what to relax."""
    missed = decision.excluded().filter(pl.col("by").is_not_null())
    if missed.is_empty():
        return "Every stack has an unknown value that the limits need."
    nearest = missed.sort("by").unique("constraint", keep="first", maintain_order=True)
    return f"Nearest misses: {'; '.join(nearest['reason'])}."


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
