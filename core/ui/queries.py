"""Widgets of the queries page: choosing a query, and its rankings side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl
import streamlit as st

from core.bidi import isolated, upright
from core.ui import show
from core.ui.pick import still_offered
from core.views import text
from core.views.queries.one_query import OneQuery, Side, shown_text
from core.views.queries.page import SORTS, SORTS_AGAINST, narrowed, ordered, tags_of
from core.views.queries.scores import FOUND_NOTHING, NOT_RANKED
from core.views.text import plain
from core.views.workspace.scope import Quality


def narrow(table: pl.DataFrame, quality: Quality, *, against: bool) -> pl.DataFrame:
    """Draw tag, search and order, and apply them to the query table.

    Args:
        table: The query table.
        quality: The measure of its scores.
        against: Whether there is a second stack, so that losses and gains can be sorted by.
    """
    left, middle, right = st.columns([2, 2, 1])
    tags = left.multiselect(
        "Tags",
        tags_of(table),
        key="tag",
        bind="query-params",
        placeholder="all",
        help="Tags of one name add up (package=numpy or package=polars); those of two names must both fit.",
    )
    words = middle.text_input(
        "Find",
        key="find",
        bind="query-params",
        placeholder="words of the question, an id or a tag",
    )
    sorts = list(SORTS_AGAINST if against else SORTS)
    still_offered("sort", sorts)
    sort = right.selectbox("Order", sorts, key="sort", bind="query-params")
    found = narrowed(table, tags, words or "")
    return ordered(found, sort, higher_is_better=quality.higher_is_better)


def query_list(rows: pl.DataFrame, quality: Quality, other: str | None, selected: str) -> None:
    """The table of queries, with the selected one ticked; ticking a row selects its query."""
    _tick(rows["query_id"].head(show.ROWS_SHOWN), selected)
    against: Mapping[str, Any] = {} if other is None else {
        "delta": st.column_config.NumberColumn(
            "delta", format="%+.3f", help="Score minus the score of the second stack."
        ),
        "other": show.score_column("second", f"{quality.name} of the second stack."),
    }  # fmt: skip
    columns = {
        "query_id": show.text_column("query"),
        "text": show.text_column("question", width="large"),
        "score": show.score_column("score", f"{quality.name} of the stack; – = no score, see note."),
        **against,
        "best": show.score_column("best reachable", "PROC: the best ordering of the candidate pool."),
        "holes": show.number_column("holes", 0, f"Unjudged passages among the first {quality.k}."),
        "judged": show.number_column("judged", 0, "Passages judged for this query."),
        "tags": st.column_config.ListColumn("tags"),
        "note": show.text_column("note"),
    }
    show.table(
        rows,
        "queries",
        columns,
        on_select=_pick_row(rows["query_id"]),
        selection_mode="single-row",
    )


_QUERIES = "table_queries"
_TABLES = ("table_ranking_", "table_oracle_", "table_missed_")
_SHOWN = "_query_shown"


def _pick_row(ids: pl.Series) -> Callable[[], None]:
    def picked() -> None:
        chosen = st.session_state[_QUERIES]["selection"]["rows"]
        if chosen:
            st.session_state["q"] = ids[chosen[0]]

    return picked


def _tick(ids: pl.Series, selected: str) -> None:
    """Tick the selected query where a filter, an order or a click on the chart has moved it."""
    row = ids.index_of(selected)
    _select(_QUERIES, [] if row is None else [row])


def _select(table_key: str, rows: list[int]) -> None:
    """Tick rows of a table that is about to be drawn."""
    if table_key not in st.session_state or st.session_state[table_key]["selection"]["rows"] != rows:
        st.session_state[table_key] = {"selection": {"rows": rows}}


def pick_query(rows: pl.DataFrame) -> str:
    """A list of the queries in the table, as many as it shows, and whichever is chosen already."""
    ids = rows["query_id"].head(show.ROWS_SHOWN).to_list()
    asked = {st.session_state.get("q"), *st.query_params.get_all("q")} - set(ids)
    ids += rows.filter(pl.col("query_id").is_in([name for name in asked if name]))["query_id"].to_list()
    still_offered("q", ids)
    picked: str = st.selectbox(
        "Query", ids, key="q", bind="query-params", help="Or click a bar, or select a row of the table."
    )
    return picked


@st.fragment
def one_query(found: OneQuery, row: Mapping[str, Any], quality: Quality) -> None:
    """Show one query.

    Args:
        found: The query with its sides.
        row: Its row of the query table.
        quality: Measure and cutoff.
    """
    _close_passages((row["query_id"], *(side.name for side in found.sides)))
    question = row["text"] or "The text of this question is not stored."
    st.markdown(f"#### {plain(question)}")
    tags = f" · {', '.join(row['tags'])}" if row["tags"] else ""
    note = f" · {row['note']}" if row["note"] else ""
    judged = " and ".join(text.count(each.passages.height, "judged passage") for each in found.judged)
    st.caption(plain(f"{row['query_id']} · {judged}{tags}{note}"))
    _beside(found.sides, lambda side, key: _ranking(found, side, key, quality))
    anything = any(each.passages.height for each in found.judged)
    weights = f"Weights count down to K = {quality.k}. " if anything else ""
    against = " ▲ ▼: places won or lost against the other stack; new: not in its ranking."
    st.caption(f"{weights}Tick a row to read its whole passage.{against if found.sides[1:] else ''}")
    if not anything:
        return
    with st.expander("Judged passages and their weights", icon=":material/balance:"):
        _weights(found, quality)
    with st.expander("What the oracle would have picked", icon=":material/auto_awesome:"):
        st.caption(
            "The candidate pool of the stack in its best order: "
            f"of the first {quality.k}, those that earn anything."
        )
        _beside(found.sides, _oracle)
    missed = " and ".join(str(side.missed.height) for side in found.sides)
    with st.expander(f"Relevant passages that the pool misses: {missed}", icon=":material/search_off:"):
        st.caption("Grade 4 or 5, yet not among the candidates: only retrieval can bring them in.")
        _beside(found.sides, _missed)


def _close_passages(shown: tuple[str, ...]) -> None:
    """Untick the passages of the query that was shown before: the same rows hold others now."""
    if st.session_state.get(_SHOWN) != shown:
        st.session_state[_SHOWN] = shown
        for key in [key for key in st.session_state if str(key).startswith(_TABLES)]:
            _select(str(key), [])


def _beside(sides: Sequence[Side], draw: Callable[[Side, str], None]) -> None:
    """Draw every side in its column; the text given along tells the sides apart in keys."""
    for number, (place, side) in enumerate(zip(st.columns(len(sides)), sides, strict=True), start=1):
        with place:
            if len(sides) > 1:
                st.markdown(f"**{plain(side.name)}**")
            draw(side, str(number))


def _ranking(found: OneQuery, side: Side, key: str, quality: Quality) -> None:
    possible = "" if side.best is None else f" of a possible {text.score(side.best)}"
    st.caption(plain(f"{quality.name} {text.score(side.score)}{possible}"))
    if not side.ranked:
        st.info(FOUND_NOTHING if side.asked else NOT_RANKED, icon=":material/block:")
        return
    against = {"change": show.text_column("vs", "Against the other stack.")} if found.sides[1:] else {}
    columns = {
        "rank": show.number_column("#", 0, "Rank."),
        "grade": show.text_column("grade", "1 to 5; unjudged = a hole."),
        "weight": show.score_column("weight", f"What it adds to G_obs of {found.weigher}."),
        **against,
        **_PASSAGE,
        "points": show.number_column("score", 4, "The ranking's own score."),
    }
    _passages(side.ranking, f"ranking_{key}", columns)


def _weights(found: OneQuery, quality: Quality) -> None:
    columns = {
        "grade": show.number_column("grade", 0),
        "passages": show.number_column("passages", 0, "Judged passages of this grade in the golden set."),
        "weight": show.score_column("weight", found.weigher.info.formula),
    }
    left, right = st.columns([2, 3])
    for number, judged in enumerate(found.judged, start=1):  # several: the stacks cut the documents otherwise
        left.dataframe(judged.grades, column_config=columns, hide_index=True, key=f"table_grades_{number}")
        right.markdown(
            f"G_ideal, the {quality.k} largest weights of all judged passages: **{judged.ideal:.3f}**"
        )
    with right:
        for side in found.sides:
            name = f"{plain(side.name)}: " if found.sides[1:] else ""
            st.markdown(
                f"{name}G_obs of the ranking **{side.gain:.3f}**{_share(side.gain, side)}; "
                f"of the best order of its pool **{side.reachable:.3f}**{_share(side.reachable, side)}."
            )
        st.caption(
            f"{plain(str(found.weigher))} = G_obs / G_ideal. "
            "The rarer the good grades of a query, the more they weigh (CLQ paper §2.4)."
        )


def _share(gain: float, side: Side) -> str:
    return f" ({text.score(gain / side.judged.ideal)})" if side.judged.ideal else ""


def _oracle(side: Side, key: str) -> None:
    if side.oracle.is_empty():
        st.caption("Nothing in the pool earns anything.")
        return
    st.caption(f"G {side.reachable:.3f} of G_ideal {side.judged.ideal:.3f}")
    columns = {
        "place": show.number_column("#", 0, "Place in the best order."),
        "grade": show.number_column("grade", 0),
        "weight": show.score_column("weight"),
        "now": show.number_column("rank now", 0, "Rank in the ranking; – = left out of it."),
        **_PASSAGE,
    }
    _passages(side.oracle, f"oracle_{key}", columns)


def _missed(side: Side, key: str) -> None:
    if side.missed.is_empty():
        st.caption("None.")
        return
    columns = {
        "grade": show.number_column("grade", 0),
        "weight": show.score_column("weight"),
        **_PASSAGE,
    }
    _passages(side.missed, f"missed_{key}", columns)


_PASSAGE: Mapping[str, Any] = {
    "passage": show.text_column("passage", "Title, or id where there is none.", width="medium"),
    "preview": show.text_column("text", width="large"),
}


def _passages(rows: pl.DataFrame, name: str, columns: Mapping[str, Any]) -> None:
    """A table of passages, and the whole text of the one whose row is ticked."""
    chosen = show.table(
        rows,
        name,
        columns,
        on_select="rerun",
        selection_mode="single-row",
    )["selection"]["rows"]
    if not chosen or chosen[0] >= rows.height:
        return
    row = rows.row(chosen[0], named=True)
    st.text(isolated(f"{row['passage']} ({row['passage_id']})"))
    if row["text"] is None:
        st.caption("The text of this passage is not stored.")
        return
    shown, cut = shown_text(row["text"])
    st.code(upright(shown), language=None, wrap_lines=True)
    if cut:
        st.caption(cut)
