"""Section of page Readers: dollars per correct answer by passages sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from core.ui import show
from core.ui.cache import cached
from core.ui.pages import PAGES
from core.ui.pick import pick_stacks
from core.ui.sections.readers_depth import found_in, no_curve
from core.ui.view import View
from core.views import theme
from core.views.readers import joint, words
from core.views.text import plain

_TARGET = 0.5


@cached("Pricing the answers…", entries=16)
def _table(view: View) -> pl.DataFrame:
    return joint.joint_table(view.snapshot, view.scope, view.quality, view.book)


def joint_k(view: View) -> None:
    """Draw the section."""
    head = st.container()
    table, least = _table(view), view.scope.answering.least
    if table.is_empty():
        if found_in(view).scorers:
            no_curve(words.NO_JOINT)
        else:
            nothing()
        return
    target = st.number_input(
        "k for a mean score of",
        0.0,
        1.0,
        _TARGET,
        0.05,
        key="aim",
        bind="query-params",
        format="%g",
        width=220,
    )
    rows = joint.best_rows(table, target)
    with head:
        sentence = joint.answer(rows, least)
        show.head(sentence, caveats={"what counts": joint.counted(rows, least)})
        show.cards(*joint.cards(rows.row(0, named=True), target))
    names = pick_stacks(
        view.table.filter(pl.col("name").is_in(rows["name"].to_list())),
        view.decision, "answered", usual=_unlike(rows), most=6,
    )  # fmt: skip
    drawn = table.filter(pl.col("name").is_in(names))
    figure = joint.joint_chart(drawn, theme.colours_for(names), view.quality)
    show.chart(figure, "joint", alt=plain(sentence))
    show.table(
        rows, "cheapest_k", {**COLUMNS, "k_target": show.number_column("k for the target", 0)}, more=MORE
    )
    with st.expander("Every k"):
        show.table(table, "joint", COLUMNS, more=MORE)


def nothing() -> None:
    """Say that no answer is scored, and lead to what fills the section."""
    show.head(words.NO_SCORES)
    st.markdown(words.TO_SCORE)
    for name in ("run", "add"):
        st.page_link(PAGES[name].file, label=PAGES[name].title, icon=PAGES[name].icon)


def _unlike(rows: pl.DataFrame) -> list[str]:
    """The first few stacks whose answers are not the same."""
    same = ("k", "correct", "score", "retrieval")
    return rows.unique(same, keep="first", maintain_order=True)["name"].head(3).to_list()


COLUMNS: Mapping[str, Any] = {
    "name": show.text_column("stack", width=250),
    "k": show.number_column("k", 0),
    "usd_per_1k_correct": show.dollar_column(
        "$ / 1k correct", "Cost of a query with its answer ÷ share correct."
    ),
    "correct": show.percent_column("correct", "Share of the answers whose score reaches the threshold."),
    "score": show.score_column("mean score"),
    "usd_per_1k": show.dollar_column("$ / 1k answered", "Retrieval and the reader, per 1,000 queries."),
    "retrieval": show.score_column("retrieval", "The measure of the limits, at k."),
    "n": show.number_column("n", 0, "Answers."),
}
MORE: Mapping[str, Any] = {
    "usd_low": show.dollar_column("$ low", "From the upper end of the share's 95 % interval."),
    "usd_high": show.dollar_column("$ high"),
    "correct_low": show.percent_column("correct, low", "95 % bootstrap interval."),
    "correct_high": show.percent_column("correct, high"),
    "reader": show.text_column("reader"),
    "scorer": show.text_column("scorer"),
    "missing": show.text_column("cost lacks"),
}
