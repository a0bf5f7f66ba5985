"""Sections of page Readers: score against passages sent, with and without gold, and stacks by readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import streamlit as st

from core.importers.formats.published.readers import RAGGED
from core.ui import show
from core.ui.cache import cached
from core.ui.pages import way
from core.ui.pick import pick_one, still_offered, still_offered_all
from core.ui.view import end
from core.views import theme
from core.views.pages import PAGES, SECTION
from core.views.readers import charts, words
from core.views.readers.data import (
    Answered,
    Need,
    Rules,
    answered,
    curve_table,
    depth_table,
    slice_table,
    with_sent,
)
from core.views.readers.told import published
from core.views.workspace.view import View

_MOST = 6  # Curves of a panel where none were picked: as many as have a colour
_BY = {"stack": ("name", "label"), "reader": ("label", "name")}
"""What has a panel of its own: its column, and that of the curves in it."""
_FIGURES = {"best score": "best", "k*": "k_star", "stability (RSS)": "rss", "scaling (RSC)": "rsc"}
_NEEDS: Mapping[str, Need] = {"at least one": "any", "all": "all"}


@cached("Reading the answers…", entries=8)
def found_in(view: View) -> Answered:
    """The scored answers of a workspace."""
    return answered(view.snapshot, view.scope, view.book)


@cached("Scoring the answers…", entries=16)
def curves(view: View, scorer: str) -> pl.DataFrame:
    """The curves of a scorer, with what was sent."""
    found = found_in(view)
    return with_sent(curve_table(found, scorer), view.snapshot, found, view.book)


@cached("Scoring both parts…", entries=16)
def _parts(view: View, scorer: str, run_id: str, need: Need) -> pl.DataFrame:
    return slice_table(view.snapshot, view.scope, found_in(view), scorer=scorer, run_id=run_id, need=need)


def pick_scorer(found: Answered) -> str:
    """Draw the choice of what the answers are scored by; where nothing is scored, the page ends here."""
    if not found.scorers:
        show.head(words.NO_SCORES)
        st.page_link(PAGES["add"].file, label="Add results", icon=PAGES["add"].icon)
        end()
    still_offered("scorer", found.scorers)
    return str(st.selectbox("Score", found.scorers, key="scorer", bind="query-params"))


def pick_rules() -> Rules:
    """Draw the choice of what k*, RSS, RSC and the shape are read by."""
    usual = Rules()
    with st.popover("Rules", icon=":material/tune:"):
        delta = _number("Neighbours of k* within ±", (1, 100), usual.delta, "delta")
        gain = _number("Smallest gain (points)", (0, 10), usual.epsilon, "eps")
        flat = _number("Plateau: share of the best", (0.5, 1), usual.plateau, "flat")
    return Rules(round(delta), gain, flat)


def _number(label: str, ends: tuple[float, float], usual: float, key: str) -> float:
    low, high = map(float, ends)
    return st.number_input(label, low, high, float(usual), key=key, bind="query-params", format="%g")


def _depths(rows: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """What the curves say; where there is none, the page ends here."""
    depths = depth_table(rows, rules)
    if depths.is_empty():
        no_curve()
        show.table(rows, "answers", POINTS, more=MORE_POINTS)
        end()
    return depths


def no_curve(why: str = words.NO_CURVE) -> None:
    """Say why there is nothing by k, and lead to the section that takes answers of any number of passages."""
    show.head(why)
    there = {SECTION: "generators"}
    st.button("Generators side by side", type="tertiary", on_click=st.session_state.update, kwargs=there)


def _picked(label: str, key: str, ranked: Sequence[str]) -> list[str]:
    names = list(dict.fromkeys(ranked))
    still_offered_all(key, names)
    asked = f"the best {_MOST}" if len(names) > _MOST else "all"
    picked = st.multiselect(label, names, key=key, bind="query-params", placeholder=asked)
    return list(picked) or names[:_MOST]


def by_depth(view: View) -> None:
    """Draw the section."""
    head = st.container()
    score, stacks, readers = st.columns([2, 3, 3])
    with score:
        scorer = pick_scorer(found_in(view))
    choices = st.container(horizontal=True, vertical_alignment="bottom")
    with choices:
        rules = pick_rules()
    rows = curves(view, scorer)
    depths = _depths(rows, rules)
    usual = "stack" if depths["label"].n_unique() > 1 else "reader"
    with stacks:
        names = _picked("Stacks", "answered", depths["name"].to_list())
    with readers:
        labels = _picked("Readers", "readers", depths["label"].to_list())
    shown = pl.col("name").is_in(names) & pl.col("label").is_in(labels)
    rows, depths = rows.filter(shown), depths.filter(shown)
    if depths.is_empty():
        show.head(words.NO_CURVE)
        return
    with choices:
        x = _pick_axis(rows)
        panel, line = _BY[pick_one("A panel per", _BY, "rdby", usual=usual)]
    with head:
        sentence = words.answer(depths, scorer)
        judges = found_in(view).scores.filter(scorer=scorer)["judge"].drop_nulls().unique().sort().to_list()
        more = {"several judges": words.judged(judges), "questions differ by k": words.selection(rows)}
        show.head(sentence, caveats=words.caveats(depths, *rules) | more)
        show.cards(*words.cards(depths.row(0, named=True), rules.delta, rules.epsilon))
    colours = theme.colours_for(depths[line].unique().sort())
    show.chart(charts.by_depth(rows, depths, colours, panel=panel, line=line, x=x), "readers", alt=sentence)
    show.table(depths, "depths", DEPTHS, more=MORE_DEPTHS)
    with st.expander("Every point"):
        show.table(rows, "points", POINTS, more=MORE_POINTS)
    if found_in(view).runs["has_rankings"].any():
        _beside(depths, judged=view.scope.golden_set_id is not None)


def _pick_axis(rows: pl.DataFrame) -> str:
    """Draw the choice of the x axis; what is not known is not offered."""
    top = rows.filter(pl.col("mode") == "top_k")
    offered = [title for title, name in words.AGAINST.items() if top[name].count() > 1]
    usual = next(iter(words.AGAINST))
    still_offered("rdx", offered or [usual])
    return words.AGAINST[pick_one("Against", offered or [usual], "rdx", usual=usual)]


def _beside(depths: pl.DataFrame, *, judged: bool) -> None:
    """Lead to what other pages make of the same answers, and to the depths that are lacking."""
    queries, measures, run = (PAGES[name] for name in ("queries", "measures", "run"))
    with st.container(horizontal=True, vertical_alignment="center"):
        if depths["wanted"].count():
            way(run, "Run the k that RSS needs", run.sections[1])
        if judged:
            way(queries, "Acc|Hit, query by query", m="Acc|Hit")
            way(measures, "Which measure foretells the answers", measures.sections[1])


def with_and_without_gold(view: View) -> None:
    """Draw the section."""
    head = st.container()
    found = found_in(view)
    columns = st.columns(4, vertical_alignment="bottom")
    with columns[0]:
        scorer = pick_scorer(found)
    depths = depth_table(curves(view, scorer), Rules())
    if depths.is_empty():
        no_curve()
        return
    names = list(dict.fromkeys(depths["name"]))
    still_offered("read", names)
    name = columns[1].selectbox("Stack", names, key="read", bind="query-params")
    labels = depths.filter(pl.col("name") == name)["label"].to_list()
    still_offered("reader", labels)
    label = columns[2].selectbox("Reader", labels, key="reader", bind="query-params")
    with columns[3]:
        need = _NEEDS[pick_one("Gold passages in Top(k)", _NEEDS, "gold", usual="at least one")]
    run_id = str(depths.filter(pl.col("name") == name)["run_id"][0])
    rows = _parts(view, scorer, run_id, need).filter(pl.col("label") == label)
    parts = rows["part"].unique(maintain_order=True).to_list()
    with head:
        sentence = words.of_parts(rows)
        show.head(
            sentence, caveats={"how to read": words.PARTS, "one part only": words.NO_PARTS * (len(parts) < 2)}
        )
    show.chart(charts.by_part(rows, parts), "parts", alt=sentence)
    show.table(rows, "parts", PARTS)


def matrix(view: View) -> None:
    """Draw the section."""
    head = st.container()
    score, choices = st.columns([1, 2], vertical_alignment="bottom")
    with score:
        scorer = pick_scorer(found_in(view))
    with choices.container(horizontal=True, vertical_alignment="bottom"):
        figure = pick_one("Figure", _FIGURES, "fig")
        rules = pick_rules()
    depths = _depths(curves(view, scorer), rules)
    with head:
        sentence = words.of_matrix(depths, scorer)
        show.head(sentence, caveats=words.caveats(depths, *rules))
    show.chart(charts.matrix(depths, _FIGURES[figure]), "matrix", alt=sentence)
    show.table(depths, "matrix", DEPTHS, more=MORE_DEPTHS)
    if view.scope.collection_id == RAGGED:
        with st.expander("The paper's tables 1, 4, 5, 7, 8 and 9, and what follows from its scores"):
            show.table(published(), "published", PUBLISHED, more=MORE_PUBLISHED)


def _points(label: str, help_text: str = "") -> Any:
    return show.number_column(label, 1, help_text)


DEPTHS: Mapping[str, Any] = {
    "label": show.text_column("reader", width=170),
    "name": show.text_column("stack", width=200),
    "best": _points("best", "Points 0 to 100, at k*."),
    "k_star": show.number_column("k*", 0, "The smallest k with the best score."),
    "gain": show.signed_column("gain", "Points over the closed book at k*, where a question has both.", 1),
    "rss": show.score_column(
        "stability (RSS)", "Worst score within k* ± the rule's distance, as a share of the best."
    ),
    "rsc": show.number_column(
        "scaling (RSC)", 2, "How far more passages help: the last k that gains × (score there − closed book)."
    ),
    "rsc_before_stop": show.number_column(
        "scaling, before it stops", 2, "RSC with the last k before the first gain that is none."
    ),
    "shape": show.text_column("shape", width=150),
    "wanted": show.text_column("run k", "Depths that would make RSS known.", 80),
}
MORE_DEPTHS: Mapping[str, Any] = {
    "low": _points("best, low", "95 % bootstrap interval over questions."),
    "high": _points("best, high"),
    "queries": show.number_column("n", 0, "Questions."),
    "closed_book": _points("closed book", "Points without passages."),
    "gain_low": _points("gain, low", "95 % bootstrap interval, paired by question."),
    "gain_high": _points("gain, high"),
    "k_last": show.number_column("last gain at k", 0, "The last k that gains as much as the rule asks."),
    "k_last_before_stop": show.number_column("before it stops", 0),
    "start_k": show.number_column("gains from k", 0, "0 = the closed book; else the smallest k."),
    "send": show.number_column("send k", 0, "The smallest k within the rule's gain of the best."),
    "rss_reason": show.text_column("no RSS because"),
    "truncated": show.number_column("cut", 0, "Answers at k* whose passages were cut to fit."),
    "prompt": show.text_column("prompt"),
    "temperature": show.number_column("temperature", 2),
}
_ENDS = {"low": _points("low", "95 % bootstrap interval over questions."), "high": _points("high")}
PUBLISHED: Mapping[str, Any] = {
    "dataset": show.text_column("questions", width=90),
    "retriever": show.text_column("retriever", width=90),
    "reader": show.text_column("reader", width=130),
    "scorer": show.text_column("score", width=100),
    "k_star": show.number_column("k*", 0, "Table 7."),
    "closed_book_gain": show.signed_column("gain", "Points over the closed book at k*; Table 5.", 1),
    "gain_mean": show.signed_column("mean gain", "Of all k; Table 4.", 1),
    "better_than_closed_book": show.text_column("better at", "Than the closed book; Table 1.", 90),
    "over_bm25": show.signed_column("over BM25", "At the best k of each; Table 8.", 1),
    "recall_at_k_star": show.number_column("recall at k*", 1, "Percent of gold paragraphs; Table 9."),
    "rss": show.score_column("stability (RSS)"),
    "rsc": show.number_column("scaling (RSC)", 2),
}
MORE_PUBLISHED: Mapping[str, Any] = {
    "over_bm25_mean": show.signed_column("over BM25, mean", "Of all k; Table 8.", 1),
    "rsc_before_stop": show.number_column("scaling, before it stops", 2),
    "shape": show.text_column("shape"),
    "source": show.text_column("source", width="large"),
}
POINTS: Mapping[str, Any] = {
    "label": show.text_column("reader", width=170),
    "name": show.text_column("stack", width=200),
    "sent": show.text_column("sent", width=130),
    "k": show.number_column("k", 0),
    "value": _points("score", "Points 0 to 100."),
    **_ENDS,
    "queries": show.number_column("n", 0, "Questions."),
    "gain": show.signed_column("gain", "Points over the closed book, where a question has both.", 1),
    "tokens": show.number_column(
        "tokens sent", 0, "Mean of the prompt, or of the passages where it is counted here."
    ),
    "usd_per_1k": show.dollar_column("$ / 1k", "What the reader cost, per 1,000 questions."),
}
MORE_POINTS: Mapping[str, Any] = {
    "gain_low": _points("gain, low", "95 % bootstrap interval, paired by question."),
    "gain_high": _points("gain, high"),
    "n": show.number_column("scores", 0, "With all passes."),
    "truncated": show.number_column("cut", 0, "Answers whose passages were cut to fit."),
    "counted": show.text_column("tokens counted by"),
}
PARTS: Mapping[str, Any] = {
    "part": show.text_column("questions", width=150),
    "sent": show.text_column("sent", width=170),
    "k": show.number_column("k", 0),
    "value": _points("score", "Points 0 to 100."),
    **_ENDS,
    "queries": show.number_column("n", 0, "Questions."),
}
