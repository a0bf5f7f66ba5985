"""Stack tables made by hand, and the real ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from core.analysis.workspace.scope import Latency, Quality, Scope
from core.analysis.workspace.stacks import AXES, stack_table
from core.analysis.workspace.view import View
from core.decide.beliefs import beliefs
from core.decide.joint import JointSample
from core.decide.rules import Constraints, Rule
from core.decide.selection import assess
from core.decide.ties import Paired
from core.paths import PRICES
from core.prices import PriceBook, load_books
from core.store import Snapshot

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
    "clusters": (pl.Int32(), None),
    "cluster_kind": (pl.String(), None),
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


def every_k(snapshot: Snapshot, scope: Scope = DEMO) -> Scope:
    """The workspace with all its stacks by name, also those that differ in a K that nothing reads."""
    return replace(scope, run_ids=tuple(snapshot.runs(scope.collection_id)["run_id"]))


def asking(
    table: pl.DataFrame,
    limits: Constraints | None = None,
    rule: Rule = "quality",
    *,
    sample: JointSample | None = None,
    snapshot: Snapshot | None = None,
    scope: Scope | None = None,
    **given: Any,
) -> View:
    """A workspace of a table made by hand, with the results per query of its rows where they are known."""
    asked = {"quality": AT_10, "latency": Latency(), "book": BOOK, "seed": 1, "rule": rule} | given
    view = View(snapshot, scope or Scope("made"), constraints=limits or Constraints(), given=table, **asked)
    paired = None if sample is None else Paired(table["run_id"].to_list(), sample.quality)
    believed = None if sample is None else beliefs(sample, seed=view.seed)
    view.__dict__["paired"] = paired
    view.__dict__["sure"] = assess(table, view.decision, view.constraints, believed, paired)
    return view
