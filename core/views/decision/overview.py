"""What limits the chosen stack, and how sound the evidence for it is."""

from __future__ import annotations

import json
from dataclasses import dataclass

import polars as pl

from core.decide.headroom import split
from core.decide.rules import Decision
from core.store import Snapshot
from core.views import text
from core.views.workspace.scope import Quality, Scope
from core.views.workspace.stacks import runs_in

FEW_QUERIES = 50
"""Below this n the paper's own protocol (50 queries, §3.1) is not met; said, not forbidden."""
MANY_HOLES = 0.1
"""Share of unjudged passages in the Top-K from which a score may say more about judging than the stack."""


@dataclass(frozen=True)
class Finding:
    """One statement about the evidence."""

    good: bool  # whether it speaks for trusting the numbers
    sentence: str  # what was found, with its number


def limiting(row: dict[str, object], quality: Quality) -> str:
    """What limits a stack: retrieval or ordering headroom in words, or why that is not known."""
    actual, proc = _number(row["quality"]), _number(row["proc"])
    if actual is None or proc is None:
        return f"Not known: no ceiling (PROC) for {quality.name} on record."
    found = split(actual, max(actual, proc))
    return (
        f"{found.text} Pool convention: {row['pool'] or 'not stated'}; "
        f"%PROC {text.percent(found.pct_proc / 100)}."
    )


def soundness(row: dict[str, object], runner_up: dict[str, object] | None, quality: Quality) -> list[Finding]:
    """How far the numbers of the chosen stack can be trusted.

    Args:
        row: The chosen row of the stack table.
        runner_up: The runner-up's row, if there is one.

    Returns:
        Findings about n, interval, holes, unjudged queries and the latency figure.
    """
    found = [_queries(row), _interval(row, runner_up, quality), _latency(row)]
    hole, unjudged = _number(row["hole"]), _number(row["unjudged_queries"])
    if hole is not None:
        found.append(
            Finding(
                hole <= MANY_HOLES,
                f"{text.percent(hole)} of the Top-{quality.k} is unjudged (holes count as 0, so the score "
                "is a lower bound).",
            )
        )
    if unjudged:
        found.append(
            Finding(
                False,
                f"{text.count(int(unjudged), 'ranked query', 'ranked queries')} without judgements left out.",
            )
        )
    return found


def _queries(row: dict[str, object]) -> Finding:
    n = _number(row["n"])
    if n is None:
        return Finding(False, "The number of queries is unknown.")
    words = f"{text.count(int(n), 'query carries', 'queries carry')} the mean"
    return Finding(
        n >= FEW_QUERIES, f"{words}." if n >= FEW_QUERIES else f"{words}; the paper used {FEW_QUERIES}."
    )


def _interval(row: dict[str, object], runner_up: dict[str, object] | None, quality: Quality) -> Finding:
    low, high = _number(row["quality_low"]), _number(row["quality_high"])
    if low is None or high is None:
        return Finding(False, "No interval: these figures came without per-query data.")
    words = f"95 % interval of {quality.name}:{text.interval(low, high)}"
    other = _number(runner_up["quality"]) if runner_up else None
    if other is not None and low <= other <= high:
        return Finding(False, f"{words}; the runner-up's {text.score(other)} lies inside it.")
    return Finding(True, f"{words}.")


def _latency(row: dict[str, object]) -> Finding:
    if _number(row["latency_ms"]) is None:
        return Finding(False, f"Latency unknown: {row['latency_note']}.")
    n = f", n = {row['latency_n']}" if row["latency_n"] is not None else ""
    note = f" ({row['latency_note']})" if row["latency_note"] else ""
    return Finding(row["latency_basis"] == "measured", f"Latency is {row['latency_basis']}{n}{note}.")


def environment(snapshot: Snapshot, scope: Scope) -> str:
    """Where the latencies of a workspace were measured; latencies of several machines do not compare."""
    runs = runs_in(snapshot, scope)
    known = {
        str(found.get("cpu"))
        for found in (json.loads(value) for value in runs["environment"].unique())
        if found.get("cpu")
    }
    if not known:
        return "The machine that was timed is not on record."
    if len(known) > 1:
        return f"Timed on {len(known)} different machines: latencies do not compare."
    return f"Timed on {known.pop()}."


def chosen_rows(
    table: pl.DataFrame, decision: Decision
) -> tuple[dict[str, object] | None, dict[str, object] | None]:
    """The rows of the chosen stack and of the runner-up, where there are any."""
    rows = (decision.chosen, decision.runner_up)
    chosen, runner_up = (None if row is None else table.row(row, named=True) for row in rows)
    return chosen, runner_up


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
