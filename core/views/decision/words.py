"""The wording of page Decision: what to ship, how good, how fast, how dear, how firm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import nlargest
from operator import itemgetter
from typing import Any

import numpy as np
import polars as pl

from core.decide.axes import BESIDE, COST, Axis
from core.decide.near import Substitute
from core.decide.rules import Constraints, Decision
from core.stats.intervals import LEAST
from core.views import text
from core.views.decision.near import overturned, unasked_words
from core.views.workspace.beside import limit_words
from core.views.workspace.comparable import unjudged_words
from core.views.workspace.scope import Latency, Quality
from core.views.workspace.stacks import UNPROVEN

SHORT = 34
"""Letters of a name where several stand in one line."""
FORMS = ("usual", "weak (the paper's)")
"""Forms of the frontier; see `core.decide.pareto.undominated`."""
FORMS_HELP = (
    "usual: a stack is off the frontier if another is at least as good in cost, latency and quality, and "
    "better in one. weak: only if another is better in all three (CLQ paper §3.3)."
)
_NO_QUALITY = (
    "It is computed from rankings and judgements, or was reported at this cutoff: import what is missing, or "
    "choose another measure or cutoff."
)

_REST = 0.05  # Share of the cost from which on stages that are not named are told


@dataclass(frozen=True)
class Answer:
    """The answer of the pages that decide."""

    sentence: str  # the chosen stack with its numbers, or why there is none
    reason: str  # how a tie was broken, and what else would do
    # What of the evidence could overturn it, what a harm cap is about, and what the choice could not look at;
    # empty when there is nothing to say
    warning: str = ""


def limits(constraints: Constraints, latency: Latency) -> str:
    """Return the constraints in words: ``within 500 ms (p50) and $2.50 / 1k``; empty without any."""
    inside = []
    if constraints.sla_ms is not None:
        inside.append(f"{text.ms(constraints.sla_ms)} ({latency.percentile})")
    if constraints.budget is not None:
        cost = next(axis for axis in constraints.axes if axis.key == COST.key)
        inside.append(cost.written(constraints.budget))
    words = f" within {' and '.join(inside)}" if inside else ""
    if constraints.floor is not None:
        side = "above a quality of" if constraints.higher_is_better else "with a quality of at most"
        words += f" {side} {constraints.floor:.2f}"
    asked = [(axis, limit) for axis in BESIDE if (limit := constraints.of(axis)) is not None]
    for place, (axis, limit) in enumerate(asked):
        also = " and" if place or constraints.floor is not None else ""
        words += f"{also} with {axis.article}{axis.word} of at {axis.side} {limit:.2f}"
    return words


def numbers(row: Mapping[str, Any], quality: Quality) -> str:
    """Return a stack's three numbers: ``RA-nWG@10 0.805 [0.750, 0.850], n = 50; 337 ms; $1.25 / 1k``."""
    interval = text.interval(row["quality_low"], row["quality_high"])
    return (
        f"{quality.name} {text.score(row['quality'])}{interval}, {text.sample(row['n'])}; "
        f"{text.told('latency', text.ms(row['latency_ms']))}; {text.told('cost', text.cost_of(row))}"
    )


def answer(
    table: pl.DataFrame,
    decision: Decision,
    constraints: Constraints,
    quality: Quality,
    latency: Latency,
    *,
    one_known: bool = False,
) -> Answer:
    """Say which stack the limits select: the sentence to head a page with, and the reasons.

    Args:
        one_known: Whether one place is known per question by design, so that what is unjudged is no doubt.
    """
    within = limits(decision.applied(constraints), latency)
    if decision.chosen is None and (unscored := undecided(table) or _unscored(table)):
        return Answer(f"{title(table, decision, quality)}.", unscored)
    doubts = [
        "" if one_known else unjudged(table, decision, quality),
        "" if one_known else overturned(table, decision, quality),
        *limit_words(table, constraints, decision.chosen).values(),
    ]
    warning = " ".join(filter(None, [*doubts, *unasked_words(decision).values()]))
    if decision.chosen is None:
        return Answer(f"No stack{within} is left.", _nearest(table, decision), warning)
    row = table.row(decision.chosen, named=True)
    feasible = int(decision.feasible.sum())
    sentence = f"{title(table, decision, quality)}{within}: {numbers(row, quality)}."
    meet = f"{feasible:,} of {text.count(table.height, 'stack')} within the limits."
    reason = f"{lacking(table, decision) or meet} {_tie(table, decision, quality)}".strip()
    if decision.runner_up is not None:
        other = table.row(decision.runner_up, named=True)
        reason += f" Runner-up: {other['name']} ({numbers(other, quality)})."
    return Answer(sentence, reason, warning)


def _unscored(table: pl.DataFrame) -> str:
    """Say why no stack has a quality; empty where some have."""
    if not table["quality"].is_null().all():
        return ""
    notes = _notes(table)
    return f"It {notes[0]}." if len(notes) else _NO_QUALITY


def _notes(table: pl.DataFrame) -> pl.Series:
    return table.get_column("quality_note", default=pl.Series(dtype=pl.String)).drop_nulls()


def undecided(table: pl.DataFrame) -> str:
    """Say why evidence is what keeps a workspace from a decision; empty where it is not."""
    notes = _notes(table) if table["quality"].is_null().all() else pl.Series(dtype=pl.String)
    proofless = notes.filter(notes.str.starts_with(UNPROVEN)).str.strip_prefix(UNPROVEN)
    return "" if proofless.is_empty() else f"{proofless[0][:1].upper()}{proofless[0][1:]}."


def unjudged(table: pl.DataFrame, decision: Decision, quality: Quality) -> str:
    """Name the stacks that are left of whose Top-K more than a tenth is unjudged; empty without any."""
    if decision.chosen is None:
        return ""
    left = table.filter(pl.Series(decision.feasible))
    return unjudged_words(left, f"Top-{quality.k}", among=left.height)


def title(table: pl.DataFrame, decision: Decision, quality: Quality) -> str:
    """Return the heading: what to ship, or that nothing can be."""
    if decision.chosen is not None:
        name = table["name"][decision.chosen]
        if few(table, decision):
            return f"Too few queries to decide on {name}"
        return f"Nothing to compare {name} with" if table.height == 1 else f"Ship {name}"
    if undecided(table):
        return "No decision yet"
    if table["quality"].is_null().all():
        return f"No stack here has a known {quality.name}"
    return "No stack meets these limits"


def few(table: pl.DataFrame, decision: Decision) -> bool:
    """Tell whether the chosen stack was scored on fewer queries than any test needs."""
    n = None if decision.chosen is None else table["n"][decision.chosen]
    return n is not None and n < LEAST


def lacking(table: pl.DataFrame, decision: Decision) -> str:
    """Say what keeps the choice from being one: too few queries, or no other stack; else empty."""
    if decision.chosen is None:
        return ""
    row, lacks = table.row(decision.chosen, named=True), []
    if few(table, decision):
        ahead = "" if table.height == 1 else f"{row['name']} leads, but "
        asked = text.count(row["n"], "query", "queries")
        lacks.append(f"{ahead}it was scored on {asked}; a test takes at least {LEAST}.")
    if table.height == 1:
        lacks.append("It is the only stack here: add or run another to compare it with.")
    return " ".join(f"{words[:1].upper()}{words[1:]}" for words in lacks)


def would_do(table: pl.DataFrame, other: Substitute | None) -> str:
    """Say that a faster or cheaper stack would do, and how surely; empty where none is known."""
    if other is None:
        return ""
    row = table.row(other.row, named=True)
    gains = [
        *([f"faster ({text.ms(row['latency_ms'])})"] if other.faster else ()),
        *([f"cheaper ({text.cost_of(row)})"] if other.cheaper else ()),
    ]
    low, high = (text.signed(end) for end in (other.low, other.high))
    return (
        f"{row['name']} would do: {', '.join(gains)}, no significant difference "
        f"({text.signed(other.difference)}, 95 % CI {low} to {high})."
    )


def why(table: pl.DataFrame, decision: Decision, quality: Quality, other: Substitute | None = None) -> str:
    """Return the line below the heading: why that one, and which other would do, or what would help."""
    if decision.chosen is None:
        return undecided(table) or _unscored(table) or _nearest(table, decision)
    if lacks := lacking(table, decision):
        return lacks
    apart = other is not None and len(decision.ties) > 1 and other.row not in decision.ties
    return f"{_best_of(table, decision, quality)} {'Beside them, ' * apart}{would_do(table, other)}".strip()


def _best_of(table: pl.DataFrame, decision: Decision, quality: Quality) -> str:
    """Say how the chosen stack came to be it."""
    feasible = int(decision.feasible.sum())
    all_of_them = feasible == len(decision.feasible)
    everyone = "both stacks" if feasible == 2 else f"all {feasible:,} stacks"
    left = everyone if all_of_them else f"{text.count(feasible, 'stack')} within the limits"
    if len(decision.ties) > 1:  # the note says what decided: "Chosen by fewer candidates."
        by = decision.note.rpartition("Chosen by ")[2].rstrip(".")
        some = f"{len(decision.ties):,} of {left.replace('all', 'the', 1) if all_of_them else left}"
        among = left.capitalize() if len(decision.ties) == feasible else some
        best = _best_tied(table, decision)
        given_up = "" if best is None else f", {best['name']} ({text.score(best['quality'])})"
        return f"{among} tie for the best {quality.name}{given_up}; chosen by {by}."
    return "The only stack within the limits." if feasible == 1 else f"The best {quality.name} of {left}."


def meaning(quality: Quality) -> str:
    """Return the measure in a sentence; empty of one that is not computed here."""
    measure = quality.measure
    if measure is None:
        return ""
    said = measure.info.text.removeprefix(f"{quality.name.partition('@')[0]}: ")
    return f"{quality.name}: {said[:1].lower()}{said[1:]}"


def cards(
    row: Mapping[str, Any], quality: Quality, latency: Latency, bill: pl.DataFrame
) -> list[tuple[str, str, str, str]]:
    """Return the three numbers of the chosen stack.

    Args:
        bill: What its stages cost, as `core.views.cost.stack.recorded`; empty where that is not on record.

    Returns:
        Of each: label, number with its unit, what it rests on, and how it was come by (measured, published,
        modelled or imported; empty where that is unknown).
    """
    low, high = row["latency_low"], row["latency_high"]
    spread = "" if low is None or high is None else f"{text.ms(low)} to {text.ms(high)} "
    timed = "" if row["latency_n"] is None else text.sample(row["latency_n"])
    (cost, many), share = text.cost_of_many(row), row["correct"]
    modelled = "≈ " if row["cost_basis"] == "modelled" and not cost.startswith("≥") else ""
    if share is None:
        spent: dict[str, float] = {}  # a bill has few rows: adding them up takes less than asking Polars to
        factor = 1000 if many == "million" else 1
        for stage, usd in bill.select("stage", "usd_per_1k").drop_nulls().iter_rows() if bill.height else ():
            spent[stage] = spent.get(stage, 0.0) + factor * usd
        parts = [(stage, usd) for stage, usd in nlargest(2, spent.items(), key=itemgetter(1)) if usd > 0]
        if (rest := sum(spent.values()) - sum(usd for _, usd in parts)) > _REST * sum(spent.values()):
            parts.append(("rest", rest))
        paid = " + ".join(f"{stage} {text.usd(usd, '')}" for stage, usd in parts)
    else:
        paid = (
            "" if row["cost"] is None else f"{text.usd(row['cost'] * share)} ÷ {text.percent(share)} correct"
        )
    interval = f"{text.interval(row['quality_low'], row['quality_high'])} {text.sample(row['n'])}".strip()
    asked = _LATENCIES[latency.scope].format(latency.percentile)
    costed = f"Cost per {many} {COSTED.get(str(row['cost_per']), 'queries')}"
    return [
        (quality.name, text.score(row["quality"]), interval, row["quality_basis"] or ""),
        (asked, text.ms(row["latency_ms"]), f"{spread}{timed}".strip(), row["latency_basis"] or ""),
        (costed, f"{modelled}{cost}", paid, row["cost_basis"] or ""),
    ]


_LATENCIES = {"path": "Latency {}", "rerank": "Reranker latency {}", "end-to-end": "Latency {}, end to end"}


COSTED: Mapping[str, str] = {"answered query": "answered queries", "correct answer": "correct answers"}
"""Units that costs are counted in other than queries, by the table's `cost_per`."""


def costed(table: pl.DataFrame) -> str:
    """Name what the costs of a stack table are counted in: ``queries``."""
    per = table["cost_per"].first() if "cost_per" in table.columns and table.height else None
    return COSTED.get(str(per), "queries")


def gaining(row: Mapping[str, Any]) -> str:
    """Return a stack with what it would gain; takes a row of `promising_rows`, or of `near_rows`."""
    then = row.get("then")
    ships = f"; then {text.shorten(then, SHORT)} ships" if then and then != row["stack"] else ""
    return f"{text.shorten(str(row['stack']), SHORT)}: {_gained(row)}{ships}"


def _gained(row: Mapping[str, Any]) -> str:
    return text.score(row["quality"]) + ("" if row["gain"] is None else f" ({text.signed(row['gain'])})")


def to_measure(row: Mapping[str, Any]) -> str:
    """Say what a stack lacks, and what to do; takes a row of `promising_rows`."""
    noted = f" ({row['why']})" if row["why"] else ""
    return f"{_gained(row)}, {row['missing']}: {row['measure']}{noted}."


ALL_AXES = "cost, latency and quality"
"""Axes of the table's frontier; that of the chart is of its two axes."""


def listed(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows of `marked`, merged, with outcome (status, or why out)."""
    status = pl.col("status").cast(pl.String).replace("frontier", f"frontier of {ALL_AXES}")
    return rows.with_columns(outcome=pl.coalesce("reason", status))


def note(rows: pl.DataFrame, across: Axis, selected: str | None) -> str:
    """Say what became of the stack that was clicked; without one, what the line of the chart joins.

    Args:
        rows: Rows of `marked`.
        across: The x axis.
        selected: run_id of a stack other than the chosen one.
    """
    clicked = rows.filter(pl.col("run_id") == selected) if selected is not None else rows.clear()
    if clicked.height:
        row = clicked.row(0, named=True)
        became = f"excluded: {row['reason']}" if row["reason"] else _BECAME[row["status"]]
        return f"{row['name']} is {became}."
    return f"The line is the frontier of {across.word} and quality alone." if rows["line"].any() else ""


_BECAME: Mapping[str, str] = {
    "chosen": "recommended",
    "runner-up": "the runner-up",
    "frontier": f"on the frontier of {ALL_AXES}",
    "within the limits": f"within the limits; another beats it in {ALL_AXES}",
}


def band(jitter: str) -> str:
    """Explain the grey band of the chart, with where it comes from; takes `jitter_words`."""
    return f"Grey band: no significant difference in latency from the chosen stack, ± {jitter}."


def ticking(ticked: int) -> str:
    """Explain how to use the table."""
    return "Tick two stacks to compare them." if ticked < 2 else f"{ticked} stacks ticked."


def firmness(table: pl.DataFrame, decision: Decision) -> str:
    """Say how firm the choice is among the stacks that are left, in two words or three."""
    if decision.chosen is None:
        return text.NOT_APPLICABLE
    if few(table, decision):
        return "too few queries"
    if table.height == 1:
        return "no other stack"
    if len(decision.ties) > 1:
        return f"tied with {text.count(len(decision.ties) - 1, 'other')}"
    if decision.runner_up is None:
        return "the only one left"
    return "not known" if table["quality_low"][decision.chosen] is None else "ahead of all others"


def _tie(table: pl.DataFrame, decision: Decision, quality: Quality) -> str:
    """Say how a tie was broken, and what the highest quality was, where another stack has it."""
    best = _best_tied(table, decision) if decision.note else None
    if best is None:
        return decision.note
    figures = f"{text.score(best['quality'])}{text.interval(best['quality_low'], best['quality_high'])}"
    head = (
        f"{decision.note} The {'highest' if quality.higher_is_better else 'lowest'} {quality.name} among them"
    )
    return f"{head}: {best['name']}, {figures}."


def _best_tied(table: pl.DataFrame, decision: Decision) -> dict[str, Any] | None:
    """Return the row of best quality among the ties; None where the chosen stack has it."""
    tied = np.array(decision.ties)
    quality = decision.quality.read(table)[tied]
    merit = decision.quality.merit(quality)
    return None if merit[0] == merit.max() else table.row(int(tied[merit.argmax()]), named=True)


def _nearest(table: pl.DataFrame, decision: Decision) -> str:
    """Say which constraint is missed by the least, as a hint what to relax."""
    missed = decision.excluded().filter(pl.col("by").is_not_null())
    if missed.is_empty():
        return "Every stack has an unknown value that the limits need."
    nearest = missed.sort("by").unique("constraint", keep="first", maintain_order=True)
    named = [f"{table['name'][row]}, {reason}" for row, reason in nearest.select("row", "reason").iter_rows()]
    return f"Nearest: {'; '.join(named)}."
