"""Section Noise of Diagnostics: what perturbed queries cost, and what rewriting them wins back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from core.ui import cache, show
from core.ui.pick import still_offered
from core.ui.view import View
from core.views.diagnostics import noise_page as page
from core.views.diagnostics.names import spoken
from core.views.diagnostics.noise import Gathered, drops, effect_table, gather, per_query


def noise(view: View) -> None:
    """Draw the section."""
    gathered, table = _gathered(view)
    if not gathered:
        show.head(page.NO_RUNS)
        st.markdown(page.WAY_OUT)
        return
    sentence = page.answer(table, view.quality)
    show.head(sentence, caveats={"how it is compared": page.HOW})
    show.cards(*page.cards(table, view.quality))
    drawn = page.chart(table, view.quality)
    if drawn is not None:
        show.chart(drawn, "noise", alt=sentence)
    shown = table.with_columns(pl.Series("perturb", page.names(table["perturb"].to_list())))
    show.table(shown, "noise", COLUMNS, more=MORE)
    _queries(view, gathered, table)
    _vectors(view, gathered)


@cache.cached("Comparing perturbed queries…")
def _gathered(view: View) -> tuple[Gathered, pl.DataFrame]:
    gathered = gather(view.snapshot, view.scope, view.quality)
    return gathered, page.better_first(effect_table(view.snapshot, gathered, view.quality), view.quality)


def _queries(view: View, gathered: Gathered, table: pl.DataFrame) -> None:
    """Which perturbation hurts which query of a stack."""
    compared = table.filter(pl.col("change").is_not_null())
    offered = {
        row["stack"] if row["rewrite"] == "none" else f"{row['stack']} · {row['rewrite']}": row
        for row in compared.iter_rows(named=True)
    }
    if not offered:
        return
    st.subheader("Query by query", anchor=False)
    still_offered("noisy", list(offered))
    name = st.selectbox("Stack", list(offered), key="noisy", bind="query-params")
    family, rewrite = offered[name]["family"], offered[name]["rewrite"]
    rows = per_query(gathered, family, rewrite, higher_is_better=view.quality.higher_is_better)
    asked = view.snapshot.queries(view.scope.collection_id).select("query_id", "text")
    levels = [each for each in rows.columns if each not in ("query_id", "clean", "hurt_by", "lost")]
    columns = {
        "text": show.text_column("query", width=330),
        "hurt_by": show.text_column("hurt most by", "Empty = no perturbation makes it worse."),
        "lost": show.signed_column("change"),
        "clean": show.score_column(page.ASKED_CLEAN),
        **{level: show.score_column(level) for level in levels},
    }
    show.table(rows.join(asked, on="query_id", how="left", maintain_order="left"), "noise_queries", columns)


def _vectors(view: View, gathered: Gathered) -> None:
    """How far vectors move, of embedders that run here, beside the paper's."""
    rows = _drops(view, gathered.query_ids, gathered)
    if rows.is_empty():
        return
    st.subheader("How far the query's vector moves", anchor=False)
    st.caption("Cosine to the clean query by level of small talk; the paper's is to a restatement of it.")
    named = pl.col("language").str.to_lowercase().map_elements(spoken, return_dtype=pl.String)
    shown = rows.with_columns(pl.col("share") * 100, language=named)
    show.table(shown, "noise_vectors", VECTORS, whole=rows)


@cache.cached("Embedding perturbed queries…")
def _drops(view: View, asked: tuple[str, ...], _gathered: Gathered) -> pl.DataFrame:
    del asked  # part of the key
    return drops(view.snapshot, _gathered)


COLUMNS: Mapping[str, Any] = {
    "stack": show.text_column("stack", width=220),
    "perturb": show.text_column("queries"),
    "rewrite": show.text_column("rewrite"),
    "quality": show.score_column("quality", "Mean over n queries."),
    "change": show.signed_column("change", "Against the queries as they are."),
    "change_low": show.signed_column("low", "Lower end of the 95 % paired interval of the change."),
    "change_high": show.signed_column("high", "Upper end of the 95 % paired interval of the change."),
    "won": show.signed_column("won back", "Against no rewrite of the same queries."),
}
MORE: Mapping[str, Any] = {
    "won_low": show.signed_column("won low", "Lower end of its 95 % paired interval."),
    "won_high": show.signed_column("won high", "Upper end of its 95 % paired interval."),
    "overlap": show.percent_column("Top-K that stays", "Overlap with the ranking of the query as it is."),
    "tau": show.number_column("tau", 2, "Of the passages in both rankings."),
    "rewrite_ms": show.number_column("rewrite ms", 2, "p50 over queries."),
    "n": show.number_column("n", 0, "Queries that every run here was asked."),
}
VECTORS: Mapping[str, Any] = {
    "model": show.text_column("embedder", width=240),
    "language": show.text_column("language"),
    "perturb": show.text_column("queries"),
    "cosine": show.score_column("cosine"),
    "share": show.signed_column("change, %", "Against level 0.", digits=1),
    "n": show.number_column("n", 0),
    "source": show.text_column("source"),
}
