"""What judging more could make of comparisons, kept while data and question are the same."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import streamlit as st

from core.ui import cache
from core.ui.view import View
from core.views.compare import holes as pairs
from core.views.workspace.scope import Quality, Scope


def with_holes(view: View, rows: pl.DataFrame, queries: frozenset[str] | None = None) -> pl.DataFrame:
    """The comparisons with `if_judged`; see `core.views.compare.holes.if_judged`."""
    ids = dict(view.table.select("name", "run_id").iter_rows())
    names = {name: ids[name] for name in [*rows["first"], *rows["second"]]}
    compared = rows.select("first", "second", "difference")
    place = (str(cache.store().path), view.snapshot.revision)
    pair_ids = tuple((ids[first], ids[second]) for first, second, _ in compared.iter_rows())
    ends = _if_judged(
        compared,
        names,
        *place,
        scope=view.scope,
        quality=view.quality,
        pair_ids=pair_ids,
        queries=None if queries is None else tuple(sorted(queries)),
    )
    return rows.with_columns(ends)


def doubt_of(view: View, table: pl.DataFrame, run_id: str, other: str | None) -> str:
    """What judging more could make of a stack's mean difference to a second one, in words; empty if nothing.

    Args:
        view: The view.
        table: `core.views.queries.page.query_table` of the two.
        run_id: The stack.
        other: The second stack, if there is one.
    """
    compared = table.filter(pl.col("delta").is_not_null())
    if other is None or compared.is_empty():
        return ""
    names = dict(view.table.select("run_id", "name").iter_rows())
    pair = {
        "first": names[other],
        "second": names[run_id],
        "difference": float(compared["delta"].to_numpy().mean()),
    }
    rows = with_holes(view, pl.DataFrame([pair]), frozenset(compared["query_id"]))
    return pairs.doubt(rows, view.quality)


@st.cache_resource(show_spinner=False, max_entries=64)
def _if_judged(
    _rows: pl.DataFrame,
    _names: Mapping[str, str],
    path: str,
    revision: int,
    *,
    scope: Scope,
    quality: Quality,
    pair_ids: tuple[tuple[str, str], ...],
    queries: tuple[str, ...] | None,
) -> pl.Series:
    del path, pair_ids  # part of the key
    only = None if queries is None else frozenset(queries)
    return pairs.if_judged(_rows, cache.snapshot(revision), scope, quality, _names, queries=only)
