"""Duration of a stack's slow searches beside its typical ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from core.analysis.cache import cached
from core.analysis.workspace.figures.latencies import latencies
from core.analysis.workspace.stacks import stack_table
from core.analysis.workspace.view import View
from core.views import text


@cached(entries=64)
def slow(view: View, run_id: str) -> dict[str, Any] | None:
    """Return the p95 of a run in milliseconds beside its p50: ms, low, high, n and note (why it is unknown).

    It is None if the requested latency isn't the p50.
    """
    if view.latency.percentile != "p50":
        return None
    row = latencies(
        view.snapshot, view.table.filter(run_id=run_id), replace(view.latency, percentile="p95")
    ).row(0, named=True)
    return {key.removeprefix("latency_"): row[key] for key in row if key not in ("run_id", "latency_basis")}


@cached(entries=16)
def _table_by_p95(view: View) -> pl.DataFrame:
    """Return the stack table with the p95 as its latency."""
    latency = replace(view.latency, percentile="p95")
    return stack_table(view.snapshot, view.scope, view.quality, latency, view.book)


def by_p95(view: View) -> str:
    """Say which stack would ship if the SLA were on the p95, and how much worse it is."""
    latency = replace(view.latency, percentile="p95")
    other = view.replace(latency=latency, given=_table_by_p95(view), take=None)
    own, its = view.decision.chosen, other.decision.chosen
    if its is None:
        return "On the p95, no stack meets it."
    row, best = other.table.row(its, named=True), None if own is None else view.table["quality"][own]
    apart = "" if best is None or row["quality"] is None else f" ({text.signed(row['quality'] - best)})"
    return f"On the p95, {row['name']} would ship{apart}."


def slow_words(late: Mapping[str, Any] | None) -> str:
    """Format a p95: ``p95 17.7 ms [16.1 ms, 24.0 ms]``, ``p95 297 ms (no interval)``, "" if unknown."""
    if late is None or late["ms"] is None:
        return ""
    ends = [late[end] for end in ("low", "high") if late[end] is not None]
    spread = f" [{', '.join(text.ms(end) for end in ends)}]" if ends else " (no interval)"
    return f"p95 {text.ms(late['ms'])}{spread}"


def late_chip(late: Mapping[str, Any] | None, sla_ms: float | None) -> dict[str, str]:
    """Return `may_break` keyed by its chip: p95 beyond the SLA or near it; empty if it is within."""
    said = may_break(late, sla_ms)
    return {f"p95 {'beyond' if 'is beyond' in said else 'near'} the SLA": said} if said else {}


def may_break(late: Mapping[str, Any] | None, sla_ms: float | None) -> str:
    """Say that slow searches may exceed an SLA on the p50, or return "" if they don't."""
    if late is None or sla_ms is None or late["ms"] is None:
        return ""
    most = max(late["ms"], *(late[end] for end in ("low", "high") if late[end] is not None), 0.0)
    if most <= sla_ms:
        return ""
    beyond = "is beyond" if late["ms"] > sla_ms else "may be beyond"
    return f"The {slow_words(late)} {beyond} the SLA of {text.ms(sla_ms)}, which is on p50."
