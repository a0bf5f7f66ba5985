"""Sentences on a bill, shared by several pages."""

from __future__ import annotations

import polars as pl

from core.analysis.stack_cost import MACHINES, idle

RENTED = "Less machine time saves money only where fewer machines then run."
"""What a saving of machine time is worth."""


def rented(bill: pl.DataFrame) -> bool:
    """Return whether a bill is of machine time alone."""
    return bool(bill.height) and bool(bill["unit"].is_in(MACHINES).all())


def spent(bill: pl.DataFrame) -> str:
    """Say which stage takes most of a cost, and that a machine's idle time is excluded.

    Args:
        bill: From `core.analysis.stack_cost.recorded`; empty if nothing is on record.
    """
    return ", ".join(filter(None, (largest(bill), idle(bill))))


def largest(bill: pl.DataFrame) -> str:
    """Say which stage takes most of a cost; "" if nothing is on record."""
    by_stage: dict[str, float] = {}  # a bill has few rows: summing them here is faster than in Polars
    for stage, usd in bill.select("stage", "usd_per_1k").drop_nulls().iter_rows() if bill.height else ():
        by_stage[stage] = by_stage.get(stage, 0.0) + usd
    most = max(by_stage, key=lambda stage: by_stage[stage], default="")
    of = "machine time, " if idle(bill) and rented(bill) else ""
    mostly = "mostly " if len(by_stage) > 1 else ""
    return f"{of}{mostly}{most}" * bool(sum(by_stage.values()))
