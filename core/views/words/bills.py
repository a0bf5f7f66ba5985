"""Sentences on a bill, shared by several pages."""

from __future__ import annotations

import math

import polars as pl

from core.analysis.cache import cached
from core.analysis.stack_cost import MACHINES, idle, machines_needed, of_one_machine, recorded
from core.analysis.workspace.view import View
from core.records import Basis
from core.tables import remembered
from core.views.words.advice import first_step

RENTED = "Less machine time saves money only where fewer machines then run."
"""What a saving of machine time is worth."""
ONE_MACHINE = "Up to {:,.0f} queries a month (half load) one machine serves either: no money is saved."
"""The same where the alternative's time is known, but not the queries of a month."""
PLANNED = 0.5
"""Share of a month for which a machine is planned to be busy: a busier one makes queries wait."""
SAME_BILL = "no money on one machine"
"""The same beside what an alternative saves."""


@cached(entries=64)
def bill(view: View, run_id: str) -> pl.DataFrame:
    """Return the price of a run's recorded usage, by stage."""
    return recorded(view.snapshot, run_id, view.book, view.scope, view.quality.k)


def rented_words(view: View) -> str:
    """Say what less machine time saves, where costs are of nothing else; otherwise "".

    It is machines of the first alternative where the queries of a month are given.
    """
    own, its = _both(view)
    if own is None or its is None:
        return "" if own is None else RENTED
    queries = view.terms.queries_per_month
    if not queries:
        most = one_machine(view)
        return RENTED if most is None else ONE_MACHINE.format(most)
    saved = machines_needed(own, queries) - machines_needed(its, queries)
    said = f"needs {-saved:,} more" if saved < 0 else f"saves {saved:,}"
    rather = view.once(first_step).rather
    which = f"going {rather.called[1]}" if rather else "the first alternative"
    machines = "machine" if abs(saved) == 1 else "machines"
    return f"At {queries:,.0f} queries a month, {which} {said} {machines} at full load."


def one_machine(view: View) -> float | None:
    """Return how many queries a month one machine serves, at `PLANNED`, of the choice and its alternative.

    None if that is unknown, no machine is used, or something else is billed.
    """
    own, its = _both(view)
    if own is None or its is None:
        return None
    most = PLANNED * min(of_one_machine(own), of_one_machine(its))
    return None if math.isinf(most) else _at_most(most)


def _both(view: View) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
    """Return the bills of the choice and of its first alternative; None where it is not of machines alone."""
    chosen, other = view.decision.chosen, next(iter(view.sure.alternatives), None)
    rows = (chosen, None if other is None else other.row)
    bills = (None if row is None else bill(view, view.table["run_id"][row]) for row in rows)
    own, its = (None if held is None or not rented(held) else held for held in bills)
    return own, its


def same_bill(view: View, row: int) -> bool:
    """Return whether a stack needs the chosen one's machines and nothing else, so that it saves no money.

    Where the queries of a month are not given, one machine is taken to serve either.
    """
    chosen, measured = view.decision.chosen, Basis.MEASURED.value
    if chosen is None or any(view.table["cost_basis"][at] != measured for at in (chosen, row)):
        return False
    both = [bill(view, view.table["run_id"][at]) for at in (chosen, row)]
    if not all(map(rented, both)):
        return False
    own, its = (machines_needed(each, view.terms.queries_per_month or 0.0) for each in both)
    return own == its


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
