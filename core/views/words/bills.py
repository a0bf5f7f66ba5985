"""Sentences on a bill, shared by several pages."""

from __future__ import annotations

import polars as pl

from core.analysis.stack_cost import MACHINES, idle
from core.views import text


def spent(bill: pl.DataFrame) -> str:
    """Say which stage takes most of a cost, and that a machine's idle time is excluded.

    Args:
        bill: From `core.analysis.stack_cost.recorded`; empty if nothing is on record.
    """
    by_stage: dict[str, float] = {}  # a bill has few rows: summing them here is faster than in Polars
    for stage, usd in bill.select("stage", "usd_per_1k").drop_nulls().iter_rows() if bill.height else ():
        by_stage[stage] = by_stage.get(stage, 0.0) + usd
    whole = sum(by_stage.values())
    most = max(by_stage, key=lambda stage: by_stage[stage], default="")
    share = f"{most} {text.percent(by_stage[most] / whole)}" if whole and len(by_stage) > 1 else most
    waits = idle(bill)
    of = " of machine time" if waits and len(by_stage) > 1 and bill["unit"].is_in(MACHINES).all() else ""
    return ", ".join(filter(None, (f"{share}{of}" * bool(whole), waits)))
