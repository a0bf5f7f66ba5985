"""Sentences on a bill, shared by several pages."""

from __future__ import annotations

import math

import polars as pl

from core.analysis.cache import cached
from core.analysis.stack_cost import MACHINES, idle, machines_needed, of_one_machine, recorded
from core.analysis.workspace.view import View
from core.tables import remembered
from core.views.words.advice import second_row

RENTED = "Less machine time saves money only where fewer machines then run."
"""What a saving of machine time is worth."""
ONE_MACHINE = "Below {:,.0f} queries a month one busy machine serves either: nothing is saved."
"""The same where the alternative's time is known, but not the queries of a month."""


@cached(entries=64)
def bill(view: View, run_id: str) -> pl.DataFrame:
    """Return the price of a run's recorded usage, by stage."""
    return recorded(view.snapshot, run_id, view.book, view.scope, view.quality.k)


def rented_words(view: View) -> str:
    """Say what less machine time saves, where costs are of nothing else; otherwise "".

    It is machines of the first alternative where the queries of a month are given.
    """
    chosen, other = view.decision.chosen, next(iter(view.sure.alternatives), None)
    if chosen is None or not rented(own := bill(view, view.table["run_id"][chosen])):
        return ""
    queries = view.terms.queries_per_month
    its = None if other is None else bill(view, view.table["run_id"][other.row])
    if its is None or not rented(its):
        return RENTED
    if not queries:
        most = min(of_one_machine(own), of_one_machine(its))
        return RENTED if math.isinf(most) else ONE_MACHINE.format(_at_most(most))
    saved = machines_needed(own, queries) - machines_needed(its, queries)
    said = f"needs {-saved:,} more" if saved < 0 else f"saves {saved:,}"
    which = "the second" if second_row(view) is not None else "the first alternative"
    return (
        f"At {queries:,.0f} queries a month, {which} {said}{' machine' if abs(saved) == 1 else ' machines'}."
    )


def _at_most(queries: float) -> float:
    """Round down to two digits."""
    digit = 10.0 ** (math.floor(math.log10(queries)) - 1)
    return math.floor(queries / digit) * digit


def rented(bill: pl.DataFrame) -> bool:
    """Return whether a bill is of machine time alone."""
    return bool(bill.height) and bool(bill["unit"].is_in(MACHINES).all())


@remembered
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
