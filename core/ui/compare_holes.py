"""What judging more could make of comparisons, kept while data and question are the same."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import streamlit as st

from core.ui import cache
from core.ui.view import View
from core.views.evidence import pairs
from core.views.scope import Quality, Scope


def with_holes(view: View, rows: pl.DataFrame) -> pl.DataFrame:
    """The comparisons with `if_judged`; see `core.views.evidence.pairs.if_judged`."""
    ids = dict(view.table.select("name", "run_id").iter_rows())
    names = {name: ids[name] for name in [*rows["first"], *rows["second"]]}
    compared = rows.select("first", "second", "difference")
    place = (str(cache.store().path), view.snapshot.revision)
    pair_ids = tuple((ids[first], ids[second]) for first, second, _ in compared.iter_rows())
    ends = _if_judged(compared, names, *place, scope=view.scope, quality=view.quality, pair_ids=pair_ids)
    return rows.with_columns(ends)


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
) -> pl.Series:
    del path, pair_ids  # part of the key
    return pairs.if_judged(_rows, cache.snapshot(revision), scope, quality, _names)
