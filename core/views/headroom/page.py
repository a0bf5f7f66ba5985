"""Headroom: is retrieval or ordering the limit? Actual, ordering and retrieval headroom of every stack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
import polars as pl

from core.decide.headroom import MARGIN
from core.views import text, theme
from core.views.headroom import words
from core.views.workspace.scope import Quality

MIXED = "all conventions"
NO_POOL = "not stated"
BARS = 20
"""Bars drawn at most besides the chosen stack's; the table has every stack."""


@dataclass(frozen=True)
class HeadroomView:
    """The page's content."""

    answer: str  # whether retrieval or ordering limits the chosen stack, or the best one where none is chosen
    explained: Mapping[str, Any]  # that stack's row of the table
    figure: go.Figure  # one stacked bar per stack
    # name, pool, quality with its interval, ordering, retrieval, proc, pct_proc (all 0..1), n, reading; the
    # best first, and the chosen stack where its pool is another one
    table: pl.DataFrame


def conventions(table: pl.DataFrame, chosen: int | None = None) -> list[str]:
    """Pool conventions with a ceiling: the chosen stack's or else the best one's first, `MIXED` last."""
    known = _known(table).sort("quality", descending=True)
    own = known.filter(pl.col("name") == table["name"][chosen]) if chosen is not None else known
    first = (own if own.height else known)["pool"].head(1).to_list()
    pools = sorted(known["pool"].unique(), key=lambda pool: (pool not in first, _natural(pool)))
    return [*pools, MIXED] if len(pools) > 1 else pools


def _natural(pool: str) -> tuple[str, int]:
    """Return a key that sorts dense@50 before dense@100."""
    head, _, depth = pool.rpartition("@")
    return head, int(depth) if depth.isdigit() else 0


def headroom(
    table: pl.DataFrame, quality: Quality, convention: str, chosen: int | None = None
) -> HeadroomView | None:
    """Split the quality of every stack of one pool convention, and of the chosen stack.

    Args:
        convention: One of `conventions`; `MIXED` takes all.

    Returns:
        The view; None when no stack has a ceiling at this cutoff.
    """
    name = None if chosen is None else table["name"][chosen]
    wanted = (pl.col("pool") == convention) | pl.lit(convention == MIXED) | pl.col("name").eq_missing(name)
    rows = _parts(_known(table).filter(wanted))
    if rows.is_empty():
        return None
    explained = next(
        (row for row in rows.iter_rows(named=True) if row["name"] == name), rows.row(0, named=True)
    )
    return HeadroomView(words.answer(explained), explained, _figure(rows, quality, name), rows)


def _known(table: pl.DataFrame) -> pl.DataFrame:
    there = pl.col("proc").is_not_null() & pl.col("quality").is_not_null()
    return table.filter(there).with_columns(pl.col("pool").fill_null(NO_POOL))


def _parts(known: pl.DataFrame) -> pl.DataFrame:
    actual, proc = pl.col("quality"), pl.col("proc")
    ordering = (proc - actual).clip(lower_bound=0)
    retrieval = 1 - pl.max_horizontal(actual, proc)
    reading = (
        pl.when((ordering - retrieval).abs() < MARGIN)
        .then(pl.lit("balanced"))
        .when(retrieval > ordering)
        .then(pl.lit("improve retrieval"))
        .otherwise(pl.lit("improve ordering"))
    )
    split = {"ordering": ordering, "retrieval": retrieval, "reading": reading}
    best = known.with_columns(**split).sort("quality", "name", descending=[True, False])
    return best.select("name", "pool", "^quality(_low|_high|_basis)?$", *split, "proc", "pct_proc", "n")


def _figure(rows: pl.DataFrame, quality: Quality, chosen: str | None) -> go.Figure:
    shown = rows.filter((pl.int_range(pl.len()) < BARS) | pl.col("name").eq_missing(chosen))
    several = shown["pool"].n_unique() > 1
    names = [
        f"{name} ({pool})" if several else name for name, pool in shown.select("name", "pool").iter_rows()
    ]
    marked = next((label for label, name in zip(names, shown["name"], strict=True) if name == chosen), None)
    looks = (
        ("actual", "quality", theme.OKABE_ITO[0], ""),
        ("ordering headroom", "ordering", theme.OKABE_ITO[1], "/"),
        ("retrieval headroom", "retrieval", theme.NEUTRAL, "."),
    )
    parts = [
        theme.Part(title, shown[column].to_list(), colour, pattern,
                   [f"{name}: {title} {value:.3f}, %PROC {text.percent(share)}"
                    for name, value, share in shown.select("name", column, "pct_proc").iter_rows()])
        for title, column, colour, pattern in looks
    ]  # fmt: skip
    fig = theme.stacked(names, parts, x=f"{quality.name}, of a possible 1", chosen=marked)
    return fig.update_xaxes(range=[0, 1])
