"""Section Names of Diagnostics: how much identity an embedder carries, beside what the paper published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from core.diagnostics.names.margins import Check
from core.store import Snapshot
from core.ui import cache, show
from core.ui.view import View
from core.views.diagnostics import names as page
from core.views.text import plain


def names(view: View) -> None:
    """Draw the section."""
    found, checks = _figures(view.snapshot)
    if found.is_empty():
        show.head(page.NOTHING)
        st.markdown(page.WAY_OUT)
        return
    rows = page.both(found)
    offered = found["language"].unique().sort().to_list()
    top = st.container()
    language = st.segmented_control(
        "Language", offered, default=offered[0], required=True, key="names_language",
        format_func=lambda name: plain(page.spoken(name)),
    )  # fmt: skip
    sentence = page.answer(rows, language)
    with top:
        show.head(sentence, caveats={"how it is measured": page.HOW})
        show.cards(*page.cards(rows, language))
    show.chart(page.chart(rows, language), "names", alt=sentence)
    table = page.wide(rows, language)
    spreads = [each for each in table.columns if each.startswith("± ")]
    labels = [each for each in table.columns if each not in (*spreads, "condition")]
    shown = table.with_columns(
        pl.col("condition").cast(pl.String),
        what=pl.col("condition").cast(pl.String).replace_strict(page.MEANS),
    )
    columns = {
        "what": show.text_column("name changed to", width=210),
        **{each: show.signed_column(f"{each}, %", digits=1) for each in labels},
    }
    more = {
        **{each: show.number_column(each, 1, "Standard deviation between runs.") for each in spreads},
        "condition": show.text_column("ablation"),
    }
    show.table(shown, "names", columns, more=more, whole=page.deltas(rows, language))
    st.subheader("Who carries most identity", anchor=False)
    show.table(page.ranking(rows, language), "names_ranking", RANKING, more=RANKING_MORE)
    st.subheader("Built-in checks", anchor=False)
    show.table(page.checked(checks), "names_checks", CHECKS)


@cache.cached("Reading diagnoses…")
def _figures(snapshot: Snapshot) -> tuple[pl.DataFrame, list[Check]]:
    return page.figures(snapshot)


RANKING: Mapping[str, Any] = {
    "rank": show.number_column("rank", 0, "By D_name, largest first."),
    "label": show.text_column("embedder", width=200),
    "basis": show.text_column("figures are"),
    "d_name": show.score_column("D_name", "Right name and topic minus the better of two other names."),
    "d_topic": show.score_column("D_topic", "Right name and topic minus the right name with another topic."),
    "d_both": show.score_column("D_both", "Right name and topic minus neither."),
    "name_topic_ratio": show.number_column("name / topic", 2, "D_name / D_topic."),
}
RANKING_MORE: Mapping[str, Any] = {
    "sd": show.score_column("± D_name", "Standard deviation between runs."),
    "runs": show.number_column("runs", 0),
    "n": show.number_column("n", 0, "Bundles over all runs."),
    "gibberish_name": show.signed_column("random tokens, %", digits=1),
    "edit_distance_near_miss": show.signed_column("near misses, %", digits=1),
}
CHECKS: Mapping[str, Any] = {
    "result": show.text_column("result"),
    "check": show.text_column("check", width=290),
    "label": show.text_column("embedder"),
    "language": show.text_column("language"),
    "value": show.number_column("furthest value", 3),
    "n": show.number_column("n", 0, "Bundles that it was checked on, over all runs."),
}
