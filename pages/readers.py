from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from core.ui import show
from core.ui.cache import cached
from core.ui.pages import pick_section
from core.ui.pick import pick_one, pick_stacks, still_offered, still_offered_all
from core.ui.sections.readers_depth import by_depth, found_in, matrix, no_curve, with_and_without_gold
from core.ui.view import current_view
from core.views import theme
from core.views.pages import PAGES
from core.views.readers import generators as data
from core.views.readers import joint, rebel, words
from core.views.text import plain
from core.views.workspace.view import View

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
    # The first few stacks whose answers are not the same
    unlike = rows.unique(("k", "correct", "score", "retrieval"), keep="first", maintain_order=True)
    names = pick_stacks(
        view.table.filter(pl.col("name").is_in(rows["name"].to_list())),
        view.decision, "answered", usual=unlike["name"].head(3).to_list(), most=6,
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


@cached(entries=16)
def _criteria(view: View) -> dict[str, tuple[str, ...]]:
    return data.criteria(view.snapshot, view.scope)


@cached("Scoring the generators…", entries=16)
def _cells(view: View, chosen: tuple[str, ...]) -> pl.DataFrame:
    return data.cells(view.snapshot, view.scope, chosen)


@cached("Comparing the generators…", entries=32)
def _compared(view: View, chosen: tuple[str, ...], baseline: str) -> pl.DataFrame:
    rows = _cells(view, chosen)
    gaps = data.differences(view.snapshot, view.scope, rows, baseline)
    return data.generator_table(rows, gaps)


def generators(view: View) -> None:
    """Draw the section."""
    head = st.container()
    known = _criteria(view)
    if not known:
        nothing()
        return
    left, right = st.columns([3, 2])
    usual = data.usual(known)
    still_offered_all("crit", known)
    picked = left.multiselect(
        "Criteria", list(known), key="crit", bind="query-params", placeholder=f"all {len(usual)}"
    )
    chosen = tuple(picked or usual)
    rows = _cells(view, chosen)
    labels = data.baselines(view.snapshot, view.scope, rows)
    still_offered("genbase", labels)
    baseline = right.selectbox("Baseline", labels, key="genbase", bind="query-params")
    table = _compared(view, chosen, baseline)
    with head:
        show.head(data.answer(table, chosen, baseline), caveats={"how to read": words.GENERATORS})
    shown: dict[str, Any] = {name: column for name, column in WHO.items() if table[name].count()}
    shown["total"] = show.number_column("total", 1, "Sum of the criteria, each the mean of its judges.")
    shown["difference"] = st.column_config.NumberColumn("difference", format="%+.1f", help="To the baseline.")
    shown |= {
        data.mean_of(name): show.number_column(
            name.replace("_", " "), 1, "Mean of its judges, over the cases that all of them scored."
        )
        for name in chosen
    }
    shown["n"] = show.number_column("n", 0, "Cases of the criterion that has fewest.")
    more: dict[str, Any] = {"label": show.text_column("generator", width=260)}
    more |= {
        f"difference_{end}": st.column_config.NumberColumn(f"difference, {end}", format="%+.1f")
        for end in ("low", "high")
    }
    more["difference_n"] = show.number_column("difference, n", 0, "Cases that it is over.")
    more |= {
        f"{name}, {judge}": show.text_column(f"{name.replace('_', ' ')}, {judge}", "95 % interval.", 150)
        for name in chosen
        for judge in known[name]
    }
    table = table.with_columns(pl.col("mode").replace(words.SENT))
    itself = pl.when(pl.col("label") != baseline).then(pl.col("difference"))  # no "+0.0" to itself
    show.table(table.with_columns(difference=itself), "generators", shown, more=more, whole=table)
    with st.expander("Every judge"):
        show.table(rows, "generator_cells", CELLS)


WHO = {
    "reader": show.text_column("reader", width=130),
    "prompt": show.text_column("prompt", width=90),
    "temperature": show.number_column("temperature", 2),
    "k": show.number_column("k", 0),
    "mode": show.text_column("sent", width=130),
    "name": show.text_column("stack", width=180),
}
CELLS = {
    "label": show.text_column("generator", width=260),
    "criterion": show.text_column("criterion", width=170),
    "judge": show.text_column("judge"),
    "value": show.number_column("score", 1, "Points 0 to 100."),
    "low": show.number_column("low", 1, "95 % interval."),
    "high": show.number_column("high", 1),
    "queries": show.number_column("n", 0, "Cases."),
}


@cached("Reading what judges scored…", entries=16)
def _judged(view: View) -> pl.DataFrame:
    return rebel.rebel_table(view.snapshot, view.scope)


def rerankers(view: View) -> None:
    """Draw the section."""
    head = st.container()
    table = _judged(view)
    if table.is_empty():
        show.head(words.NO_REBEL)
        st.markdown(words.TO_REBEL)
        st.page_link(PAGES["run"].file, label=PAGES["run"].title, icon=PAGES["run"].icon)
        return
    ks = [str(k) for k in table["k"].unique().sort()]
    still_offered("rbk", ks)
    k = pick_one("Passages sent", ks, "rbk", usual=ks[-1])
    rows = table.filter(pl.col("k") == int(k))
    with head:
        sentence = rebel.answer(rows)
        show.head(sentence, caveats={"how to read": words.REBEL})
    show.chart(rebel.rebel_chart(rows), "rerankers", alt=sentence)
    told = table.with_columns(passes=pl.col("passes").list.len())
    show.table(told.filter(pl.col("k") == int(k)), "rerankers", REBEL_COLUMNS, more=REBEL_MORE, whole=told)


REBEL_COLUMNS = {
    "method": show.text_column("method", width=110),
    "name": show.text_column("stack", width=260),
    "quality": show.number_column("quality", 2, "Similarity × precision, 0 to 5."),
    "similarity": show.number_column("similarity", 2, "Of the answer, by a judge, 0 to 5."),
    "precision": show.score_column("precision", "Share of the passages sent that help, by a judge."),
    "speed": show.number_column(
        "characters / s", 0, "Of the answer, over retrieval, reranking and generation."
    ),
    "queries": show.number_column("n", 0, "Questions."),
}
REBEL_MORE = {
    "similarity_low": show.number_column("similarity, low", 2, "95 % bootstrap interval over questions."),
    "similarity_high": show.number_column("similarity, high", 2),
    "precision_low": show.score_column("precision, low"),
    "precision_high": show.score_column("precision, high"),
    "passes": show.number_column("passes", 0),
    "reader": show.text_column("reader"),
    "prompt": show.text_column("prompt"),
    "temperature": show.number_column("temperature", 2),
}


page = PAGES["readers"]
sections = (by_depth, with_and_without_gold, matrix, joint_k, generators, rerankers)
view = current_view()
dict(zip(page.sections, sections, strict=True))[pick_section(page)](view)
