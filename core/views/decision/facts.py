"""A decision as data: what was chosen, from what, by which rule, how surely, and what could overturn it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from core.decide.frontier import frontier, frontier_rows
from core.decide.near import near_misses
from core.decide.paired import Paired
from core.decide.rules import Constraints, Decision, Rule
from core.decide.turning import Turn, turns
from core.stats.latency import P95_MIN_QUERIES
from core.views import text
from core.views.decision.near import near_rows
from core.views.decision.promising import promising_rows, promising_words, unasked_words
from core.views.workspace.harm import cap_words, harm_measure
from core.views.workspace.holes import overturned
from core.views.workspace.jitter import jitter_words
from core.views.workspace.scope import Latency, Quality

FEW_QUERIES = 30
"""Below this a difference between stacks of the usual size cannot be shown; said as a warning."""
SURE = 0.9
"""Share of the resamples in which the chosen stack must meet the limits for nothing to be said."""
NUMBERS = (
    "quality",
    "quality_low",
    "quality_high",
    "n",
    "quality_basis",
    "harm",
    "latency_ms",
    "latency_low",
    "latency_high",
    "latency_n",
    "latency_basis",
    "latency_note",
    "cost",
    "cost_least",
    "cost_missing",
    "cost_basis",
    "cost_note",
)
CHANCES = ("p_frontier", "p_sla", "p_feasible", "p_best")


@dataclass(frozen=True)
class Asked:
    """What was asked.

    Attributes:
        constraints: SLA, budget, floor and jitter band.
        rule: What is best.
        quality: The measure that stands for quality.
        latency: The latency that the SLA is about.
        weak: Whether the frontier takes the paper's form; see `core.decide.pareto.nondominated`.
    """

    constraints: Constraints
    rule: Rule
    quality: Quality
    latency: Latency
    weak: bool = False


def stack_row(row: dict[str, object]) -> dict[str, object]:
    """A stack with its numbers as plain data: null where unknown, with the note that says why."""
    return {"run_id": row["run_id"], "stack": row["name"]} | {
        name: row[name] for name in (*NUMBERS, *CHANCES) if name in row
    }


def warnings(table: pl.DataFrame, decision: Decision, asked: Asked) -> list[str]:
    """What of the evidence a reader must know before shipping the choice; the table may have the chances."""
    found = [overturned(table, decision, asked.quality), cap_words(table, asked.constraints)]
    found += _left_out(table, decision)
    if decision.chosen is not None:
        row = table.row(decision.chosen, named=True)
        found += [_few(row["n"]), _loose(row, asked), _unlike(row), _unsure(row)]
    return [words for words in found if words]


def _left_out(table: pl.DataFrame, decision: Decision) -> list[str]:
    """What an unknown value keeps from being shipped, and what nobody has."""
    unscored = decision.excluded().filter(pl.col("constraint") == decision.quality.unknown).height
    words = f"{text.count(unscored, 'stack')} left out: unknown quality." if unscored else ""
    return [words, promising_words(promising_rows(table, decision), decision), *unasked_words(decision)]


def _few(n: int | None) -> str:
    if n is None:
        return "How many queries the chosen stack was scored on is not known."
    return f"Few queries: the chosen stack was scored on {n}." if n < FEW_QUERIES else ""


def _loose(row: dict[str, object], asked: Asked) -> str:
    """Says when the SLA lies within the interval of the latency that is to meet it."""
    high, sla = row["latency_high"], asked.constraints.sla_ms
    if sla is None or not isinstance(high, float) or high <= sla:
        return ""
    return f"The SLA of {text.ms(sla)} lies within the interval of its latency (up to {text.ms(high)})."


def _unlike(row: dict[str, object]) -> str:
    """Says when quality and latency rest on very different numbers of queries."""
    n, timed = row["n"], row["latency_n"]
    if isinstance(n, int) and isinstance(timed, int) and timed < min(n, P95_MIN_QUERIES):
        return f"Its latency rests on {timed} queries only, its quality on {n}."
    return ""


def _unsure(row: dict[str, object]) -> str:
    """Says when the chosen stack often breaks a limit as the queries vary."""
    share = row.get("p_feasible")
    if not isinstance(share, float) or share >= SURE:
        return ""
    return f"In {text.percent(share)} of the resamples of the queries only does it meet the limits."


def record(
    table: pl.DataFrame,
    decision: Decision,
    asked: Asked,
    *,
    chances: pl.DataFrame | None = None,
    paired: Paired | None = None,
) -> dict[str, object]:
    """Everything about a decision as plain data.

    Args:
        table: The stack table that was decided on.
        decision: What was selected from it.
        asked: Constraints, rule, measure and latency.
        chances: Of `core.views.confidence.hold.certainty` on the same rows, where they are wanted.
        paired: Quality per query, where it is known.

    Returns:
        asked, chosen, runner_up (each a stack or null), note, near_misses (see `near.near_rows`),
        frontier (stacks), excluded (run_id, stack, constraint, by, unit, reason), promising (see
        `core.views.decision.promising`), would_turn (what would have to be true) and warnings.
    """
    rows = table if chances is None else table.join(chances, on="run_id", how="left", maintain_order="left")

    def stack(at: int | None) -> dict[str, object] | None:
        return None if at is None else stack_row(rows.row(at, named=True))

    names = table.select("run_id", pl.col("name").alias("stack"))
    excluded = decision.excluded().join(names, on="run_id", how="left", maintain_order="left")
    return {
        "asked": {**_asked(table, asked), "jitter": jitter_words(table, decision, asked.constraints)},
        "chosen": stack(decision.chosen),
        "runner_up": stack(decision.runner_up),
        "note": decision.note,
        "near_misses": near_rows(table, near_misses(table, decision, asked.constraints, asked.rule)),
        "frontier": [stack(at) for at in frontier_rows(table, decision, weak=asked.weak)],
        "excluded": excluded.select("run_id", "stack", "constraint", "by", "unit", "reason").to_dicts(),
        "promising": promising_rows(table, decision).to_dicts(),
        "would_turn": [
            _turn(table, turn)
            for turn in turns(table, asked.constraints, asked.rule, decision=decision, paired=paired)
        ],
        "warnings": warnings(rows, decision, asked),
    }


def _asked(table: pl.DataFrame, asked: Asked) -> dict[str, object]:
    limits = asked.constraints
    return {
        "measure": asked.quality.name,
        "latency": asked.latency.name,
        "better": "higher" if limits.higher_is_better else "lower",
        "rule": asked.rule,
        "sla_ms": limits.sla_ms,
        "budget_usd_per_1k": limits.budget,
        "min_quality": limits.floor,
        "max_harm": limits.max_harm,
        "harm": harm_measure(table),
        "jitter_ms": limits.jitter_ms,
        "frontier": "weak" if asked.weak else "usual",
    }


def status_rows(table: pl.DataFrame, decision: Decision, *, weak: bool = False) -> pl.DataFrame:
    """The stack table as a list of what became of every stack, the chosen one first.

    Args:
        table: The stack table.
        decision: What was selected from it.
        weak: Whether the frontier takes the paper's form.

    Returns:
        status ("chosen", "runner-up", "frontier", "within the limits" or "excluded"), run_id, stack, quality,
        latency_ms, cost with least and missing, reason (why excluded), and the chances where the table has
        them.
    """
    place = np.where(decision.feasible, 3, 4)
    place[frontier(table, decision, weak=weak)] = 2
    for at, rank in ((decision.runner_up, 1), (decision.chosen, 0)):
        if at is not None:
            place[at] = rank
    names = ("chosen", "runner-up", "frontier", "within the limits", "excluded")
    reasons = decision.excluded().select("run_id", "reason")
    shown = [name for name in CHANCES if name in table.columns]
    return (
        table.with_columns(pl.Series("place", place, dtype=pl.Int64))
        .join(reasons, on="run_id", how="left", maintain_order="left")
        .sort(
            ["place", "quality"],
            descending=[False, decision.quality.higher_is_better],
            nulls_last=True,
            maintain_order=True,
        )
        .select(
            pl.col("place").replace_strict(dict(enumerate(names)), return_dtype=pl.String).alias("status"),
            "run_id",
            pl.col("name").alias("stack"),
            "quality",
            "latency_ms",
            "cost",
            "cost_least",
            "cost_missing",
            *shown,
            "reason",
        )
    )


def _turn(table: pl.DataFrame, turn: Turn) -> dict[str, object]:
    return {
        "stack": table["name"][turn.of],
        "of": turn.axis.key,
        "now": turn.now,
        "then": _digits(turn.then),
        "by": _digits(turn.change),
        "unit": turn.axis.unit,
        "winner": None if turn.winner is None else table["name"][turn.winner],
        "reason": turn.reason or None,
    }


def _digits(value: float | None) -> float | None:
    """Six significant digits: where a choice turns is searched, not solved for."""
    return None if value is None else float(f"{value:.6g}")
