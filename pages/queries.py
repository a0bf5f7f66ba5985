from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl
import streamlit as st

from core.stats.significance import Setup
from core.ui import cache, show
from core.ui.cache import cached
from core.ui.pick import pick_from_chart, pick_listed, pick_one, pick_stack
from core.ui.view import Lacking, current_view, end
from core.views.compare.sides import by_tag
from core.views.queries import one_query as single
from core.views.queries import page as queries
from core.views.queries import words
from core.views.queries.one_query import ROWS, OneQuery, one_query, shown_text
from core.views.text import plain
from core.views.workspace.reported import query_scores
from core.views.workspace.scope import Quality
from core.views.workspace.view import View
from core.written import upright

_TABLE = "table_queries"
_DEPTHS = ("first 3", "Top-K", "all")
_BADGES: Mapping[int | None, Any] = {5: "green", 4: "green", 3: "blue", 2: "gray", 1: "gray", None: "orange"}
# Of the grades; the badge says the grade too.
_MARKS: Mapping[str, Any] = {"l": "red", "n": "violet", "▲": "green", "▼": "orange"}
# Of what became of a passage, by the first letter of the word.


@cached()
def doubt(view: View, names: tuple[tuple[str, str], ...], _table: pl.DataFrame) -> str:
    """Say what judging more could turn round."""
    return words.doubt(view.snapshot, view.scope, view.quality, _table, dict(names))


@cached("Reading the rankings…", entries=128)
def rankings(view: View, names: tuple[tuple[str, str], ...], query_id: str) -> OneQuery:
    """Read one query."""
    return one_query(view.snapshot, view.scope, view.quality, query_id, dict(names))


@cached()
def answer(view: View, names: tuple[str, ...], shown: int, total: int, _rows: pl.DataFrame) -> words.Answer:
    """Say what some queries show; `shown` stands for the rows."""
    del shown
    return words.answer(_rows, total, view.quality, *names)


def narrow(table: pl.DataFrame, quality: Quality, *, against: bool) -> pl.DataFrame:
    """Draw tag, search and order, and apply them."""
    left, middle, right = st.columns([2, 2, 1])
    tags = left.multiselect(
        "Tags", queries.tags_of(table), key="tag", bind="query-params", placeholder="all",
        help="Tags of one name add up (package=numpy or package=polars); those of two names must both fit.",
    )  # fmt: skip
    said = middle.text_input(
        "Find", key="find", bind="query-params", placeholder="words of the question, an id or a tag"
    )
    sorts = list(queries.SORTS_AGAINST if against else queries.SORTS)
    sort = pick_listed("Order", sorts, "sort", place=right)
    found = queries.narrowed(table, tags, said or "")
    return queries.ordered(found, sort, higher_is_better=quality.higher_is_better)


def pick_query(rows: pl.DataFrame) -> str:
    """Draw a list of the queries in the table, as many as it shows, and whichever is chosen already."""
    ids = rows["query_id"].head(show.ROWS_SHOWN).to_list()
    asked = {st.session_state.get("q"), *st.query_params.get_all("q")} - set(ids)
    ids += rows.filter(pl.col("query_id").is_in([name for name in asked if name]))["query_id"].to_list()
    return str(pick_listed("Query", ids, "q", help="Or click a bar, or tick a row of the table."))


def listed(rows: pl.DataFrame, view: View, selected: str, *, against: bool) -> None:
    """Draw the table of queries, with the selected one ticked; ticking a row selects its query."""
    row = rows["query_id"].head(show.ROWS_SHOWN).index_of(selected)
    ticked = {"selection": {"rows": [] if row is None else [row]}}
    if st.session_state.get(_TABLE, {}).get("selection", {}).get("rows") != ticked["selection"]["rows"]:
        st.session_state[_TABLE] = ticked
    second = {
        "delta": show.signed_column("difference", "Score minus the score of the second stack."),
        "other": show.score_column("second", f"{view.quality.name} of the second stack."),
    }
    passages = {
        "best": show.score_column("best reachable", "PROC: the best ordering of the candidate pool."),
        "holes": show.number_column("unjudged", 0, f"Unjudged passages among the first {view.quality.k}."),
    }
    known = not rows["judged"].is_null().all()  # of a stack that was scored elsewhere no passages are
    columns = {
        "query_id": show.text_column("query"),
        "text": show.text_column("question", width="large"),
        "score": show.score_column("score", f"{view.quality.name} of the stack; – = no score, see note."),
        **(second if against else {}),
        **(passages if known else {}),
    }
    judged = {"judged": show.number_column("judged", 0, "Passages judged for this query.")}
    more = {
        **(judged if known else {}),
        "tags": st.column_config.ListColumn("tags"),
        "note": show.text_column("note"),
    }
    click = pick_from_chart(rows, _TABLE, key="q", column="query_id")
    show.table(
        rows, "queries", columns, more=more, on_select=click, selection_mode="single-row", height=318
    )  # fmt: skip


def sliced(rows: pl.DataFrame, view: View, *, against: bool) -> None:
    """Draw the stack on the queries of each tag; alone it is compared with nothing, so with 0."""
    alone = rows.with_columns(other=pl.lit(0.0), delta="score")
    slices = by_tag(rows if against else alone, Setup()).sort("value_second", "tag")
    second = {
        "value_first": show.score_column("second", "Mean of the second stack."),
        "difference": show.signed_column("difference", "Mean of the stack minus that of the second."),
    }
    end, of = (show.signed_column, "difference") if against else (show.score_column, "mean")
    columns = {
        "tag": show.text_column("tag"),
        "n": show.number_column("n", 0, "Queries with a score."),
        "value_second": show.score_column("mean", f"Mean {view.quality.name} of the stack on them."),
        **(second if against else {}),
        "low": end("low", f"Lower end of the 95 % interval of the {of}."),
        "high": end("high", f"Upper end of the 95 % interval of the {of}."),
    }
    show.table(slices, "slices", columns, height=318)


@cached("Scoring every query…", entries=8)
def reporting(view: View) -> list[str]:
    """Find the stacks that report single queries and have no rankings."""
    bare = view.table.filter(~pl.col("has_rankings"))["run_id"].to_list()
    scores = query_scores(view.snapshot, bare, view.quality) if bare else None
    return list(scores.run_ids) if scores else []


def question(row: Mapping[str, Any], judged: Sequence[int] = ()) -> None:
    """Draw the question, and what is known of it."""
    st.markdown(f"#### {plain(row['text'] or words.NO_QUESTION)}")
    st.caption(plain(words.about(row, judged)))


@st.fragment
def passages(found: OneQuery, row: Mapping[str, Any], quality: Quality) -> None:
    """Draw one query: the question, and two rankings side by side as readable passages."""
    judged = [each.passages.height for each in found.judged]
    question(row, judged)
    shown = st.segmented_control(
        "Passages", _DEPTHS, default=_DEPTHS[0], required=True, key="_depth", label_visibility="collapsed"
    )
    depth = {"first 3": 3, "Top-K": quality.k}.get(shown, ROWS)
    alone = len(found.sides) == 1
    sides = [(side.name, side.ranking, words.ranked(side, quality)) for side in found.sides]
    if alone and any(judged):
        (side,) = found.sides
        sides.append(("Best order of its pool", side.oracle, words.best(side, quality)))
    for place, (name, rows, said) in zip(st.columns(len(sides)), sides, strict=True):
        with place:
            st.markdown(f"**{plain(name)}**")
            st.caption(plain(said))
            cards(rows.head(depth), against=not alone, judged=any(judged))
    with st.expander("The same as tables", icon=":material/table:"):
        tables(found)
    if not any(judged):
        return
    with st.expander("Judged passages and their weights", icon=":material/balance:"):
        weights(found, quality)
    if not alone:
        with st.expander("What the best order of each pool would be", icon=":material/auto_awesome:"):
            beside(found, "oracle", depth)
    missed = " and ".join(str(side.missed.height) for side in found.sides)
    with st.expander(f"Relevant passages that the pool misses: {missed}", icon=":material/search_off:"):
        st.caption(words.MISSED)
        beside(found, "missed", depth)


def beside(found: OneQuery, table: str, depth: int) -> None:
    """Draw the cards of a table of every side."""
    for place, side in zip(st.columns(len(found.sides)), found.sides, strict=True):
        with place:
            st.markdown(f"**{plain(side.name)}**")
            cards(getattr(side, table).head(depth), against=False)


def cards(
    rows: pl.DataFrame,
    *,
    against: bool,
    judged: bool = True,
    mark: Callable[[Mapping[str, Any]], str] | None = None,
) -> None:
    """Draw passages one below the other: in full, or folded with what became of each."""
    for row in rows.iter_rows(named=True):
        with st.container(border=True, gap="small"):
            line = st.container(horizontal=True, gap="small", vertical_alignment="center")
            if rank := row.get("rank") or row.get("place"):
                line.markdown(f"**#{rank}**", width="content")
            if judged:
                grade = "unjudged" if row["grade"] is None else f"grade {row['grade']}"
                line.badge(grade, color=_BADGES[row["grade"]])
            if mark and (said := mark(row)):
                line.badge(said, color=_MARKS.get(said[0], "gray"))
            line.markdown(f"**{plain(row['passage'])}**", width="stretch")
            st.caption(plain(words.card(row, against=against)))
            text = upright(row["text"] or words.NO_TEXT)
            if mark:
                with st.expander("Read", type="compact"):
                    st.text(text)
                continue
            shown, rest = shown_text(text)
            st.text(shown)
            if rest:
                with st.expander(f"Read on ({len(rest):,} more characters)", type="compact"):
                    st.text(rest)


@cached("Reading what was typed…", entries=128)
def typed_of(view: View, run_id: str, query_id: str) -> pl.DataFrame:
    """Read the perturbed siblings of a run for a query."""
    return single.typed(view.snapshot, view.scope, view.quality, run_id, query_id)


@st.fragment
def as_typed(view: View, rows: pl.DataFrame, run_id: str, query_id: str) -> None:
    """Draw what perturbations of the query do, and one ranking beside that of the query as it is."""
    st.markdown("#### As people type it")
    st.caption(plain(single.answer(rows, view.quality)))
    offered = rows["perturb"].to_list()
    name = pick_one("Perturbed by", offered, "typed", label_visibility="collapsed")
    show.table(rows, "typed", TYPED, more=TYPED_MORE)
    row = rows.row(by_predicate=pl.col("perturb") == name, named=True)
    if row["typed"]:
        st.caption(plain(row["typed"]))
    found = rankings(view, ((run_id, "As it is"), (row["run_id"], name.capitalize())), query_id)
    judged = any(each.passages.height for each in found.judged)
    for place, side, clean in zip(st.columns(2), found.sides, (True, False), strict=True):
        with place:
            st.markdown(f"**{plain(side.name)}**")
            st.caption(plain(words.ranked(side, view.quality)))
            of = partial(single.mark, k=view.quality.k, clean=clean)
            cards(side.ranking.head(view.quality.k), against=False, judged=judged, mark=of)


TYPED: Mapping[str, Any] = {
    "perturb": show.text_column("queries"),
    "score": show.score_column("score"),
    "change": show.signed_column("change", "Against the query as it is."),
    "overlap": show.percent_column("Top-K that stays"),
    "typed": show.text_column("typed", width="large"),
}
TYPED_MORE: Mapping[str, Any] = {"run_id": show.text_column("run")}
_SHOWN: Mapping[str, Any] = {
    "rank": show.number_column("#", 0, "Rank."),
    "place": show.number_column("#", 0, "Place in the best order."),
    "grade": show.number_column("grade", 0, "1 to 5; – = unjudged."),
    "weight": show.score_column("weight", "What it adds to G_obs."),
    "now": show.number_column("rank now", 0, "Rank in the ranking; – = left out of it."),
    "change": show.text_column(
        "vs", "▲ ▼: places won or lost against the other stack; new: not in its ranking."
    ),
    "passage": show.text_column("passage", "Title, or id where there is none.", width="medium"),
    "text": show.text_column("text", width="large"),
    "points": show.number_column("score", 4, "The ranking's own score."),
}


def tables(found: OneQuery) -> None:
    """Draw every list of every side as a table, with its download."""
    for number, side in enumerate(found.sides, start=1):
        for name in ("ranking", "oracle", "missed"):
            rows = getattr(side, name)
            if rows.height:
                st.caption(plain(f"{side.name}: {words.LISTS[name]}"))
                columns = {column: about for column, about in _SHOWN.items() if column in rows.columns}
                show.table(rows, f"{name}_{number}", columns)


def weights(found: OneQuery, quality: Quality) -> None:
    """Draw how the judged passages weigh, and what the rankings collect of that."""
    columns = {
        "grade": show.number_column("grade", 0),
        "passages": show.number_column("passages", 0, "Judged passages of this grade in the golden set."),
        "weight": show.score_column("weight", found.weigher.info.formula),
    }
    for number, judged in enumerate(found.judged, start=1):  # several: the stacks cut the documents otherwise
        show.table(judged.grades, f"grades_{number}", columns)
    for side in found.sides:
        st.markdown(plain(words.gains(side, quality.k)))
    st.caption(plain(f"{found.weigher} = G_obs / G_ideal. {words.RARE}"))


view = current_view()
there = reporting(view)  # their passages are not known
ranked = view.table.filter(pl.col("has_rankings") | pl.col("run_id").is_in(there))
if ranked.is_empty():
    raise Lacking(view, "rankings")
left, right = st.columns(2)
with left:
    run_id = pick_stack(view.table, view.decision, "Stack")
names = dict(view.table.select("run_id", "name").iter_rows())
if run_id is None and view.table["quality"].is_null().all():
    run_id = next(iter(ranked["run_id"]), None)  # no rule can choose: any can be browsed
if run_id is None or run_id not in ranked["run_id"]:
    show.head(*words.nothing(names.get(run_id or ""), ranked["name"][0]))
    end()
with right:
    others = ranked.filter(pl.col("run_id") != run_id, pl.col("run_id").is_in(there) == (run_id in there))
    other = pick_stack(others, view.decision, "Against", key="vs", default="no second stack")
shown = {run: names[run] for run in (run_id, other) if run is not None}
runs = tuple(shown.items())
table = cache.queries(view, run_id, other)
rows = narrow(table, view.quality, against=other is not None)
said = answer(view, tuple(shown.values()), int(rows["query_id"].hash().sum()), table.height, rows)
show.head(said.sentence, said.details, doubt(view, runs, table))
if rows.is_empty():
    end()
show.cards(*said.cards)
chart, lists = st.container(), st.container()
query_id = pick_query(rows)
first, second = lists.tabs(["Queries", "By tag"], on_change="rerun", key="_lists")
with first:
    listed(rows, view, query_id, against=other is not None)
with second:
    if second.open:
        sliced(rows, view, against=other is not None)
if drawn := queries.bars(rows, view.quality, tuple(shown.values()), selected=query_id):
    with chart:
        click = pick_from_chart(drawn.drawn, "chart_queries", key="q", column="query_id")
        show.chart(drawn.figure, "queries", on_select=click, selection_mode="points", alt=said.sentence)
        if drawn.drawn.height < rows.height:
            st.caption(words.bars(queries.BARS))
row = rows.row(by_predicate=pl.col("query_id") == query_id, named=True)
if run_id in there:
    question(row)
    st.caption(words.NO_PASSAGES)
    end()
passages(rankings(view, runs, query_id), row, view.quality)
perturbed = typed_of(view, run_id, query_id)
if perturbed.height:
    as_typed(view, perturbed, run_id, query_id)
