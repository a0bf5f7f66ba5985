"""A decision as data: what was chosen, from what, by which rule, how surely, and what could overturn it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from core.decide.axes import LATENCY, Axis
from core.decide.near import Turn, near_misses, turns
from core.decide.paired import Paired
from core.decide.pareto import frontier, frontier_2d, frontier_rows
from core.decide.rules import Constraints, Decision, Rule
from core.stats.latency import P95_MIN_QUERIES
from core.views import text
from core.views.decision.near import near_rows, promising_rows, promising_words, unasked_words
from core.views.workspace.latencies import jitter_words
from core.views.workspace.scope import Latency, Quality
from core.views.workspace.scores import overturned
from core.views.workspace.stacks import cap_words, harm_measure

FEW_QUERIES = 30
"""Below this a difference between stacks of the usual size cannot be shown; said as a warning."""
SURE = 0.9
"""Share of the resamples in which the chosen stack must meet the limits for nothing to be said."""
AVERAGES = "averages only"
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
    "cost_per",
    "correct",
)
CHANCES = ("p_frontier", "p_sla", "p_feasible", "p_best")


@dataclass(frozen=True)
class Asked:
    """What was asked."""

    constraints: Constraints  # SLA, budget, floor and jitter band
    rule: Rule  # what is best
    quality: Quality  # the measure that stands for quality
    latency: Latency  # the latency that the SLA is about
    weak: bool = False  # whether the frontier takes the paper's form; see `core.decide.pareto.nondominated`
    # The golden set whose grades stand for the truth in the chances; None = no judge noise in them
    noise: str | None = None


def stack_row(row: dict[str, object]) -> dict[str, object]:
    """A stack with its numbers as plain data: null where unknown, with the note that says why."""
    return {"run_id": row["run_id"], "stack": row["name"]} | {
        name: row[name] for name in (*NUMBERS, *CHANCES) if name in row
    }


def caveats(table: pl.DataFrame, decision: Decision, asked: Asked) -> dict[str, str]:
    """What of the evidence a reader must know before shipping the choice; the table may have the chances.

    Returns:
        A sentence by what it is about, in two or three words.
    """
    told = {"judging more could overturn it": overturned(table, decision, asked.quality)}
    if decision.chosen is not None:
        row = table.row(decision.chosen, named=True)
        n, timed = row["n"], row["latency_n"]
        told |= {
            AVERAGES: _averages(row),
            "n unknown" if n is None else f"{n} queries": _few(n),
            "latency near the SLA": _loose(row, asked),
            f"{timed} queries timed": _unlike(row),
            "may break the limits": _unsure(row),
        }
    told |= {"harm cap": cap_words(table, asked.constraints), **_left_out(decision)}
    return {label: words for label, words in told.items() if words}


def warnings(table: pl.DataFrame, decision: Decision, asked: Asked) -> list[str]:
    """The sentences of `caveats`, and of what is promising."""
    promising = promising_words(promising_rows(table, decision), decision)
    told = caveats(table, decision, asked)
    return [
        *(words for label, words in told.items() if label != AVERAGES),
        *([promising] if promising else []),
    ]


def _averages(row: dict[str, object]) -> str:
    if row["quality_low"] is not None or row["quality"] is None:
        return ""
    return "These figures came without results per query, so how far chance moves them is not known."


def _left_out(decision: Decision) -> dict[str, str]:
    """What an unknown value keeps from being shipped, and what nobody has."""
    unscored = int((decision.violated == 0).sum())  # an unknown quality is the first reason
    words = f"{text.count(unscored, 'stack')} left out: unknown quality." if unscored else ""
    unasked = {f"no {axis.word} known": words for axis, words in unasked_words(decision).items()}
    return {f"{unscored} not scored": words, **unasked}


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
        chances: Of `core.views.confidence.hold.shares` on the same rows, where they are wanted.
        paired: Quality per query, where it is known.

    Returns:
        asked, chosen, runner_up (each a stack or null), note, near_misses (see `near.near_rows`),
        frontier (stacks), excluded (run_id, stack, constraint, by, unit, reason), promising (see
        `core.views.decision.near`), would_turn (what would have to be true) and warnings.
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


STATUSES = ("chosen", "runner-up", "frontier", "within the limits", "excluded")


def marked(
    table: pl.DataFrame, decision: Decision, across: Axis = LATENCY, *, weak: bool = False
) -> pl.DataFrame:
    """The stack table with what became of every stack."""
    merit = decision.quality.merit(decision.quality.read(table))
    line = np.zeros(table.height, dtype=np.bool_)
    line[frontier_2d(np.where(decision.feasible, across.read(table), np.nan), merit)] = True
    on = frontier(table, decision, weak=weak)
    place = np.where(decision.feasible, np.where(on, 2, 3), 4)
    for at, rank in ((decision.runner_up, 1), (decision.chosen, 0)):
        if at is not None:
            place[at] = rank
    excluded = decision.excluded()
    reason = np.full(table.height, excluded.height)  # behind the last: none
    reason[excluded["row"].to_numpy()] = np.arange(excluded.height)
    return table.with_row_index("row").hstack(
        [
            pl.Series("feasible", decision.feasible),
            pl.Series("line", line),
            pl.Series("frontier", on),
            pl.Series("status", place.astype(np.uint8)).cat.to(pl.Enum(STATUSES)),
            excluded["reason"].extend_constant(None, 1).gather(reason),
        ]
    )


def ordered(rows: pl.DataFrame, decision: Decision) -> pl.DataFrame:
    """Rows of `marked` by status, the best quality first."""
    return rows.sort(
        ["status", "quality"],
        descending=[False, decision.quality.higher_is_better],
        nulls_last=True,
        maintain_order=True,
    )


def status_rows(table: pl.DataFrame, decision: Decision, *, weak: bool = False) -> pl.DataFrame:
    """The stack table as a list of what became of every stack, the chosen one first.

    Args:
        weak: Whether the frontier takes the paper's form.

    Returns:
        status (one of `STATUSES`), run_id, stack, quality, latency_ms, cost with least and missing, reason
        (why excluded), and the chances where the table has them.
    """
    shown = [name for name in CHANCES if name in table.columns]
    numbers = ("quality", "latency_ms", "cost", "cost_least", "cost_missing")
    return ordered(marked(table, decision, weak=weak), decision).select(
        pl.col("status").cast(pl.String), "run_id", pl.col("name").alias("stack"), *numbers, *shown, "reason"
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
