"""Stack tables made by hand, and the real ones."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from core.paths import PRICES
from core.prices import PriceBook, load_books
from core.store import Snapshot
from core.views.workspace.scope import Latency, Quality, Scope
from core.views.workspace.stacks import AXES, stack_table

BOOK = load_books(PRICES)["list"]
DEMO = Scope("python-docs", "python-docs-graded")
PAPER = Scope("clq-paper")
LAB = Scope("lab", "gold")
AT_10 = Quality("RA-nWG", 10)

_COLUMNS: dict[str, tuple[pl.DataType, object]] = {
    "quality": (pl.Float64(), None),
    "quality_low": (pl.Float64(), None),
    "quality_high": (pl.Float64(), None),
    "n": (pl.Int32(), 50),
    "quality_basis": (pl.String(), "measured"),
    "proc": (pl.Float64(), None),
    "pct_proc": (pl.Float64(), None),
    "proc_pool": (pl.String(), None),
    "hole": (pl.Float64(), None),
    "hole_low": (pl.Float64(), None),
    "hole_high": (pl.Float64(), None),
    "harm": (pl.Float64(), None),
    "harm_of": (pl.String(), None),
    "unjudged_queries": (pl.Int32(), None),
    "latency_ms": (pl.Float64(), None),
    "latency_low": (pl.Float64(), None),
    "latency_high": (pl.Float64(), None),
    "latency_n": (pl.Int32(), None),
    "latency_basis": (pl.String(), None),
    "latency_note": (pl.String(), None),
    "cost": (pl.Float64(), None),
    "cost_least": (pl.Float64(), None),
    "cost_missing": (pl.String(), None),
    "cost_basis": (pl.String(), None),
    "cost_note": (pl.String(), None),
    "cost_per": (pl.String(), None),
    "correct": (pl.Float64(), None),
    "pool": (pl.String(), None),
    "spec": (pl.String(), "{}"),
    "environment": (pl.String(), "{}"),
    "params": (pl.String(), None),
    "calls": (pl.Float64(), None),
    **{name: (dtype, None) for name, dtype in AXES.items()},
}


def stacks(height: int = 1, **columns: Sequence[object]) -> pl.DataFrame:
    """A stack table with the given columns; the others hold what an unknown stack has."""
    height = len(next(iter(columns.values()))) if columns else height
    names = columns.pop("name", [f"stack {row}" for row in range(height)])
    made = {
        name: pl.Series(name, columns.get(name, [default] * height), dtype=dtype)
        for name, (dtype, default) in _COLUMNS.items()
    }
    return pl.DataFrame({"run_id": [f"r{row}" for row in range(height)], "name": list(names), **made})


def table(
    snapshot: Snapshot,
    scope: Scope,
    quality: Quality = AT_10,
    latency: Latency | None = None,
    book: PriceBook | None = None,
):
    """The stack table of a store, at the list prices."""
    return stack_table(snapshot, scope, quality, latency or Latency(), book or BOOK)
