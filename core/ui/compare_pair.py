"""How the compare page shows one pair of stacks, and a change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from core.stats.significance import Setup
from core.ui import compare as widgets
from core.ui import compare_columns as columns
from core.ui import show
from core.ui.view import View
from core.views import text
from core.views.compare import change_effect
from core.views.compare import pair as compare_pair
from core.views.compare.charts import forest, overlaps, scatter
from core.views.compare.pair import Closer
from core.views.queries.bars import BARS, bars
from core.views.text import plain
from core.views.workspace.scope import Quality

Pair = Mapping[str, Any]


def queries(found: Closer, pair: Pair, quality: Quality, setup: Setup) -> None:
    """Show score against score, the sorted differences, and the table of queries; each opens its query."""
    rows = found.queries
    st.markdown(plain(compare_pair.summary(rows, pair, quality, setup.tolerance)))
    if not pair["n"]:
        return
    left, right = st.columns(2)
    with left:
        st.markdown("**Score against score**")
        drawn = scatter(rows, (pair["first"], pair["second"]), quality, setup.tolerance)
        click = widgets.open_from_chart(rows, pair, "chart_scatter")
        show.chart(drawn, "scatter", on_select=click, selection_mode="points")
        side = "Above" if setup.higher_is_better else "Below"
        st.caption(f"{side} the diagonal the query is better. Queries with equal scores share a larger mark.")
    with right:
        st.markdown("**Difference of every query, sorted**")
        sorted_bars = bars(rows, quality, against=True)
        if sorted_bars is not None:
            click = widgets.open_from_chart(sorted_bars.drawn, pair, "chart_deltas")
            show.chart(sorted_bars.figure, "deltas", on_select=click, selection_mode="points")
            st.caption(f"At most {BARS} bars, the lowest and the highest." if rows.height > BARS else "")
    st.caption("Click a query in a chart, or tick it in the table, to open it on the Queries page.")
    tick = widgets.open_from_table(rows, pair, "table_flips")
    show.table(rows, "flips", columns.QUERIES, on_select=tick, selection_mode="single-row")


def tags(found: Closer, quality: Quality) -> None:
    """Show the comparison on the queries of each tag."""
    rows = found.tags
    if rows.is_empty():
        st.caption("No tag here sets some of the scored queries apart from the others.")
        return
    drawn = forest(rows, _with_n(rows), f"difference in {quality.name}")
    show.chart(drawn, "tags")
    st.caption(f"p-values are Holm-adjusted over these {text.count(rows.height, 'tag')}.")
    show.table(rows, "by_tag", columns.TAGS)


def _with_n(rows: pl.DataFrame) -> list[str]:
    return [f"{tag} (n = {n})" for tag, n in rows.select("tag", "n").iter_rows()]


def rankings(found: Closer, pair: Pair, quality: Quality) -> None:
    """Show whether the two rank the same passages in the same order."""
    st.markdown(plain(compare_pair.rankings_summary(found, quality.k)))
    if found.alike is not None and not found.alike.is_empty():
        click = widgets.open_from_chart(found.queries, pair, "chart_overlaps")
        show.chart(overlaps(found.queries, quality), "overlaps", on_select=click, selection_mode="points")
        st.caption(
            f"overlap@{quality.k}: shared passages / the longer Top-{quality.k}. tau-b: order of the shared "
            "ones. Both stand in the table of queries above."
        )


def sources(found: Closer) -> None:
    """Show whether retrieval or ordering makes the difference."""
    if found.sources.is_empty():
        st.caption("This measure has no ceiling (PROC) to split the difference with.")
        return
    if found.pools:
        st.caption(
            f"The candidate pools follow different conventions ({plain(' and '.join(found.pools))}): their "
            "ceilings (PROC) differ by design, not only by skill."
        )
    show.table(found.sources, "sources", columns.SOURCES)


def change(view: View, setup: Setup) -> None:
    """Show what one change does to every pair of stacks that differ in nothing else."""
    found = widgets.change(view, setup)
    if found is None:
        st.caption(
            "No two stacks with per-query data differ in exactly one part of their specification. Imported "
            "runs that are known by their name only cannot be matched."
        )
        return
    kind, rows, whole = found
    st.markdown(plain(change_effect.answer(kind, rows, whole, view.quality)))
    labels = [f"{after} against {before}" for before, after in rows.select("before", "after").iter_rows()]
    tick, click = widgets.compare_pair_of(rows, "table_change", "chart_change")
    drawn = forest(rows, labels, f"difference in {view.quality.name}")
    show.chart(drawn, "change", on_select=click, selection_mode="points")
    st.caption("One mark per pair of stacks. Click a mark or tick a row to compare that pair above.")
    show.table(rows, "change", columns.EFFECTS, on_select=tick, selection_mode="single-row")
