"""Section of What if on announced ends: which models of the running stack end, and what outlives them."""

from __future__ import annotations

import json

import polars as pl

from core.analysis.moves.switching import moves
from core.analysis.workspace.telling import seldom
from core.analysis.workspace.view import View
from core.providers.ends import End, ends, ends_of
from core.views import columns as cols
from core.views.ask import Ask
from core.views.blocks import Answer, Blocks, Table, section
from core.views.text import count
from core.views.what_if.moving import MOVES, asked_terms, in_words, unmarked

NO_PARTS = "A custom or imported stack does not say which models it uses."
PARTS = cols.Rows(
    "deadlines",
    cols.text("model"),
    cols.text("retires", "ends", "The day from which it no longer answers, as its vendor says."),
    cols.text("successor", "replaced by", "What the vendor recommends."),
    cols.text("source", "announced at"),
    cols.text("read", "read on"),
)


@section("deadlines", "Which models of the running stack end, and what outlives them?", seldom)
def deadlines(view: View, ask: Ask) -> Blocks:
    """Yield the announced ends of the running stack's models, and the stacks that outlive the first."""
    now = view.running_row
    if now is None:
        yield from unmarked()
        return
    spec = json.loads(view.table["spec"][now])
    found = ends_of(spec)
    if not found:
        known = spec.get("mode") in ("dense", "sparse", "hybrid")
        read = max(end.read for end in ends().values())
        yield Answer(
            f"No model of {view.running_name} has an announced end.", f"As of {read}." if known else NO_PARTS
        )
        return
    view, first = asked_terms(view, ask), found[0]
    rows = moves(view).filter(pl.col("retires").is_null() | (pl.col("retires") > first.retires.isoformat()))
    yield Answer(f"{first.model} ends on {first.retires:%-d %B %Y}.", _outliving(rows))
    yield Table(PARTS.frame([_row(end) for end in found]), PARTS)
    if rows.height:
        yield Table(MOVES.frame(in_words(rows).to_dicts()), MOVES.named("outliving"))


def _outliving(rows: pl.DataFrame) -> str:
    """Say how many stacks outlive the first announced end, and which of them is the best."""
    if rows.is_empty():
        return "No other stack of the workspace would outlive it."
    known = rows.drop_nulls("difference")
    if known.is_empty():
        return f"{count(rows.height, 'stack')} of the workspace would outlive it."
    best = known.row(0, named=True)
    return f"{count(rows.height, 'stack')} would outlive it, the best of them {best['name']}."


def _row(end: End) -> dict[str, object]:
    return {
        "model": end.model,
        "retires": end.retires.isoformat(),
        "successor": end.successor,
        "source": end.source,
        "read": end.read.isoformat(),
    }
