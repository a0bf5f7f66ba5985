from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl
import streamlit as st

from core.decide.axes import COST, LATENCY, QUALITY
from core.stats.intervals import Method
from core.stats.significance import TOLERANCE, Setup
from core.ui import show
from core.ui.cache import cached
from core.ui.pick import (
    KEPT,
    carry_over,
    listed,
    pick_from_chart,
    pick_listed,
    pick_one,
    pick_stack,
    selected_row,
)
from core.ui.view import Lacking, current_view, end
from core.views.compare import changes, charts, words
from core.views.compare import page as compare
from core.views.compare.sides import SIDES, Closer, look_closer, sides, unpaired, usual
from core.views.decision.words import costed
from core.views.queries.page import bars
from core.views.text import count, plain, shorten
from core.views.workspace.reported import computed, with_queries
from core.views.workspace.view import View

Row = Mapping[str, Any]
LETTERS = "ABCDE"
GO = "_go_to_query"  # Which query is opened on page Queries, until that is done
NUMBERS: Mapping[str, Any] = {
    "difference": show.signed_column("difference", "Mean over the queries that count for both."),
    "low": show.signed_column("low", "Lower end of the 95 % interval, of this comparison by itself."),
    "high": show.signed_column("high", "Upper end of the 95 % interval, of this comparison by itself."),
    "p_holm": show.number_column("p adjusted", 4, "Randomisation test, Holm-adjusted over this table."),
    "verdict": show.text_column("verdict", "Real where the adjusted p is below 0.05.", 120),
    "n": show.number_column("n", 0, "Queries that count for both."),
}
MORE: Mapping[str, Any] = {
    "wins": show.number_column("wins", 0),
    "ties": show.number_column("ties", 0),
    "losses": show.number_column("losses", 0),
    "superiority": show.score_column(
        "P(better)", "Probability of superiority: share of queries won, plus half of those exactly equal."
    ),
    "d_z": show.number_column("d_z", 2, "Effect size: mean difference / standard deviation of differences."),
    "detectable": show.score_column(
        "detectable", "Smallest true difference that n queries show with 80 % power (normal approximation)."
    ),
    "needed": show.number_column("n needed", 0, "Queries that would show the observed difference (80 %)."),
    "p": show.number_column("p", 4, "Paired randomisation test, not adjusted."),
}
STACKS = ("before", "after", "stack", "against")
TEXTS = ("axis", "note", "tag", "measure", "outcome")
COLUMNS: Mapping[str, Any] = {
    **{name: show.text_column(name) for name in TEXTS},
    **{name: show.text_column(name, width="medium") for name in STACKS},
    "second": show.text_column("stack", width="medium"),
    "first": show.text_column("against", width="medium"),
    **NUMBERS,
    **MORE,
    "if_judged": show.signed_column(
        "if judged",
        "The difference if every unjudged passage in the Top-K of the stack behind alone were of grade 5, "
        "and of the stack ahead alone of grade 1.",
    ),
    "overlap": show.number_column("overlap", 2, "Share of passages that the two Top-K have in common."),
    "tau": show.number_column("tau-b", 2, "Kendall's tau-b: do both order the shared passages alike?"),
    "value": show.number_column("stack's", 4),
    "value_against": show.number_column("against's", 4),
    "says": show.text_column("what it says", width=290),
    "value_first": show.score_column("against"),
    "value_second": show.score_column("stack"),
    "query_id": show.text_column("query"),
    "text": show.text_column("question", width="large"),
    "delta": show.signed_column("difference"),
    "score": show.score_column("stack"),
    "other": show.score_column("against"),
    "tags": show.list_column("tags"),
}


def columns(*names: str) -> Mapping[str, Any]:
    """Pick columns of a table."""
    return {name: COLUMNS[name] for name in names}


@cached("Comparing query by query…")
def one_change(view: View) -> pl.DataFrame:
    """Find the pairs of stacks that differ in one thing."""
    return changes.changes(view.table.filter("has_rankings"))


@cached("Comparing query by query…")
def effects(view: View, kind: str, setup: Setup) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Compare the pairs of a change."""
    pairs = changes.of_kind(one_change(view), kind)
    return changes.effects(view.snapshot, view.scope, view.quality, pairs, setup)


def cards(view: View, names: Sequence[str], gaps: pl.DataFrame) -> None:
    """Draw quality, latency and cost of the stacks side by side, and what lies between A and the others."""
    cost = f"Cost per 1,000 {costed(view.table)} ($)"
    titles = {QUALITY: view.quality.name, LATENCY: view.latency.name, COST: cost}
    stacks = {row["name"]: row for row in view.table.filter(pl.col("name").is_in(names)).to_dicts()}
    for place, (axis, title) in zip(st.columns(3), titles.items(), strict=True):
        with place.container(border=True, height="stretch"):
            st.markdown(f"**{plain(title)}**")
            for column, letter, name in zip(st.columns(len(names)), LETTERS, names, strict=False):
                number, small = (plain(said) for said in words.shown(axis, stacks[name]))
                if len(names) == 2:
                    column.metric(letter, number)
                else:  # a metric cuts what does not fit
                    column.markdown(f"{letter}  \n**{number}**")
                column.caption(small)
            apart = gaps.filter(axis=axis.key).to_dicts()
            for letter, row in zip(LETTERS[1:], apart, strict=False):
                number, small = words.apart(row, axis)
                st.markdown(f"A − {letter}: **{plain(number)}**")
                st.caption(plain(small))
    with st.expander("As a table"):
        shown = sorted(SIDES, key=lambda name: name in ("p_holm", "stack"))  # last: beyond 1280 pixels
        show.table(gaps, "sides", columns(*shown), cells=[words.in_units(row) for row in gaps.to_dicts()])


def opens(rows: pl.DataFrame, two: Row, key: str) -> Callable[[], None]:
    """What a click on a query's mark, or a tick in the table, does: open it on page Queries."""
    pair = {f"{KEPT}stack": two["second"], f"{KEPT}vs": two["first"]}
    return sets(key, lambda row: {GO: rows["query_id"][row], **pair})


def takes(rows: pl.DataFrame, key: str) -> Callable[[], None]:
    """What a click on a pair of a change does: compare it."""
    return sets(key, lambda row: {"stack": rows["after"][row], "vs": rows["before"][row], "also": []})


def sets(key: str, values: Callable[[int], dict[str, Any]]) -> Callable[[], None]:
    """What a selection does: set what belongs to its row."""

    def selected() -> None:
        row = selected_row(key)
        if row is not None:
            st.session_state.update(values(row))

    return selected


def by_tag(view: View, closer: Closer, two: Row) -> None:
    """Draw the comparison on the queries of each tag."""
    if closer.tags.is_empty():
        st.caption(words.NO_TAG)
        return
    labels = [f"{tag} (n = {n})" for tag, n in closer.tags.select("tag", "n").iter_rows()]
    looks = charts.looks_of(two["first"], two["second"])
    title = f"Δ {view.quality.name} (right: {shorten(two['second'], 20)} higher)"
    show.chart(charts.forest(closer.tags, labels, title, looks=looks, short=True), "tags")
    with st.expander(f"By tag, as a table (p Holm-adjusted over {count(closer.tags.height, 'tag')})"):
        show.table(closer.tags, "by_tag", {**columns("tag"), **NUMBERS}, more=MORE)


def flips(view: View, closer: Closer, two: Row, setup: Setup) -> None:
    """Draw wins and losses query by query; each opens its query."""
    rows, names = closer.queries, (two["first"], two["second"])
    st.markdown(plain(words.summary(rows, two, setup.tolerance)))
    left, right = st.columns(2)
    with left:
        drawn = charts.scatter(rows, names, view.quality, setup.tolerance)
        show.chart(drawn, "scatter", on_select=opens(rows, two, "chart_scatter"), selection_mode="points")
    with right:
        by_difference = rows.sort("delta", "query_id")
        if drawn := bars(by_difference, view.quality, names[::-1]):
            click = opens(drawn.drawn, two, "chart_deltas")
            show.chart(drawn.figure, "deltas", on_select=click, selection_mode="points")
    st.caption(plain(words.flips(rows.height, view.quality, two["second"])))
    show.table(
        rows, "flips", columns("query_id", "text", "outcome", "delta", "score", "other"),
        more=columns("overlap", "tau", "tags", "note"),
        on_select=opens(rows, two, "table_flips"), selection_mode="single-row", height=213,
    )  # fmt: skip


def sources(closer: Closer) -> None:
    """Draw whether retrieval or ordering makes the difference."""
    if closer.sources.is_empty():
        st.caption(words.NO_CEILING)
        return
    if warned := words.pools(closer):
        st.caption(plain(warned))
    names = ("measure", "says", "value_second", "value_first", "difference", "low", "high", "p", "n")
    show.table(closer.sources, "sources", columns(*names))


def change(view: View, setup: Setup) -> None:
    """Draw what one change does to every pair of stacks that differ in nothing else."""
    kinds = changes.kinds(one_change(view))
    if not kinds:
        st.caption(words.NO_CHANGE)
        return
    kind = pick_listed("Change", kinds, "change", help=words.CHANGE)
    rows, whole = effects(view, kind, setup)
    st.markdown(plain(words.change(kind, rows, whole, view.quality)))
    drawn = charts.forest(rows, words.labels(rows, "before", "after"), f"difference in {view.quality.name}")
    show.chart(drawn, "change", on_select=takes(rows, "chart_change"), selection_mode="points")
    st.caption("One mark per pair of stacks. Click a mark or tick a row to compare that pair above.")
    show.table(
        rows, "change", {**columns("before", "after"), **NUMBERS}, more=MORE,
        on_select=takes(rows, "table_change"), selection_mode="single-row",
    )  # fmt: skip


def pick_pair(rows: pl.DataFrame) -> Row:
    """Draw which of the comparisons is looked at closely, where there are several."""
    labels = words.labels(rows)
    picked = pick_listed("Look closer at", labels, "pair") if len(labels) > 1 else labels[0]
    return rows.row(labels.index(picked), named=True)


def statistics(view: View, rows: pl.DataFrame, setup: Setup) -> None:
    """Draw tests and effect sizes of all comparisons."""
    st.markdown(plain(words.how(rows, setup)))
    labels = words.labels(rows)
    click = pick_from_chart(rows.with_columns(label=labels), "chart_differences", key="pair", column="label")
    drawn = charts.forest(rows, labels, f"difference in {view.quality.name}")
    show.chart(drawn, "differences", on_select=click, selection_mode="points")
    st.caption(words.legend(view.quality))
    show.table(
        rows, "differences", {**columns("second", "first"), **NUMBERS},
        more={**MORE, **columns("if_judged", "overlap", "tau")},
    )  # fmt: skip


@cached("Comparing query by query…")
def compared(view: View, names: tuple[str, ...], against: compare.Against, setup: Setup) -> pl.DataFrame:
    """Compare stacks query by query."""
    return compare.compared(
        view.snapshot, view.scope, view.quality, view.table, names, against=against, setup=setup
    )


@cached("Comparing query by query…")
def looked_at(view: View, first: str, second: str, setup: Setup) -> Closer:
    """Compare two stacks closely."""
    ids = dict(view.table.select("name", "run_id").iter_rows())
    two = ids[first], ids[second]
    return look_closer(view.snapshot, view.scope, view.quality, view.table, pair=two, setup=setup)


def pick(view: View) -> list[str]:
    """Draw two lists of stacks, and one for more; what is not chosen is the usual."""
    if old := st.query_params.get_all("cmp"):  # ticked on another page, or a link of an earlier release
        del st.query_params["cmp"]
        ticked = {**dict(zip(("stack", "vs"), old, strict=False)), "also": old[2:]}
        st.session_state.update(ticked)
        st.query_params.update({key: value for key, value in ticked.items() if value})
    best, names = usual(view.table, view.decision), dict(view.table.select("run_id", "name").iter_rows())
    left, middle, right = st.columns(3)
    with left:
        one = names.get(pick_stack(view.table, view.decision, "A") or "", best[0])
    rest = view.table.filter(pl.col("name") != one)
    with middle:
        picked = pick_stack(rest, view.decision, "B", key="vs", default="the next best")
        other = names.get(picked or "") or next(name for name in best if name != one)
    carry_over("also")
    offered = [name for name in listed(rest, "also", view.decision.quality) if name != other]
    if "also" in st.session_state:  # a choice that was kept may be of another workspace
        st.session_state["also"] = [name for name in st.session_state["also"] if name in offered]
    more = right.multiselect(
        "More", offered, key="also", bind="query-params", max_selections=compare.MOST - 2,
        placeholder="add a third",
    )  # fmt: skip
    st.session_state[KEPT + "also"] = list(more)
    if gone := [name for name in old if name not in view.table["name"]]:
        st.warning(f"No longer here: {plain('; '.join(gone))}.", icon=":material/link_off:")
    return [one, other, *more]


def settings(view: View) -> tuple[Setup, compare.Against]:
    """Draw how to compare."""
    left, middle, right = st.columns([2, 2, 1.4])
    against: compare.Against = pick_one(
        "Compare", ["the first", "every pair"], "each", place=left,
        help="A with every other one, or every pair. More comparisons, stricter p-values.",
    )  # fmt: skip
    method: Method = pick_one(
        "Interval", ["percentile", "BCa"], "ci", place=middle,
        help="95 % bootstrap interval over queries. percentile: as on the other pages. BCa: corrected for "
        "bias and skew (Efron 1987), better for few queries.",
    )  # fmt: skip
    tolerance = right.number_input(
        "Tie up to", min_value=0.0, max_value=1.0, value=TOLERANCE, step=0.01, format="%g", key="tol",
        bind="query-params",
        help="A query whose two scores differ by no more is a tie. Wins and losses depend on it, the "
        "difference, its interval and its p-value do not.",
    )  # fmt: skip
    return Setup(method=method, tolerance=tolerance, higher_is_better=view.quality.higher_is_better), against


view = current_view()
if wanted := st.session_state.pop(GO, None):
    # The stacks are kept: Streamlit refuses parameters that widgets of this page are bound to.
    st.switch_page("pages/queries.py", query_params={"q": wanted})
if view.table.height < 2:
    show.head(words.NO_PAIR, words.BRING)
    st.page_link("pages/add.py", label="Add results", icon=":material/upload:")
    end()
names = pick(view)
numbers, closely, folded = st.container(), st.container(), st.container()
chosen = pl.concat([view.table.filter(name=name) for name in names])
band = dict(zip(view.decision.run_ids, view.decision.band, strict=True))
jitter = float(max(band[run_id] for run_id in chosen["run_id"]))
known = with_queries(view.snapshot, chosen, view.scope, view.quality)
paired = chosen.filter(pl.col("run_id").is_in(known))
reports = [] if computed(paired, view.scope, view.quality) else known
obstacle, rows, same = unpaired(chosen, view.scope, view.quality, reports), None, False
if obstacle and (view.table["has_rankings"].any() or view.paired):
    closely.info(plain(f"{obstacle} {words.BRING}"), icon=":material/functions:")
if not obstacle:
    tests = folded.expander("Tests, effect sizes, all pairs", icon=":material/science:")
    with tests:
        setup, against = settings(view)
    rows = compared(view, tuple(paired["name"]), against, setup)
    with tests:
        statistics(view, rows, setup)
    with closely:
        two = pick_pair(rows)
        closer = looked_at(view, two["first"], two["second"], setup)
        same = closer.same
        if two["n"]:
            st.subheader("By tag", anchor=False)
            by_tag(view, closer, two)
            st.subheader("Query by query", anchor=False)
            flips(view, closer, two, setup)
    if not reports:
        with folded.expander("Same passages, same order?", icon=":material/reorder:"):
            st.markdown(plain(words.rankings(closer, view.quality.k)))
        with folded.expander("Does retrieval or ordering differ?", icon=":material/call_split:"):
            sources(closer)
        with folded.expander("One change, every pair of stacks", icon=":material/change_history:"):
            change(view, setup)
gaps = sides(view.snapshot, view.table, names, rows, latency=view.latency, jitter=jitter)
with numbers:
    cards(view, names, gaps)
letters = dict(zip(names, LETTERS, strict=False))
said = words.answer(
    gaps.with_columns(pl.col("stack", "against").replace(letters)),
    view.quality,
    same=same and len(names) == 2,
)
named = " · ".join(f"{letter}: {name}" for name, letter in letters.items())
show.head(said, named, "" if rows is None else words.doubt(rows, view.quality))
if not view.table["has_rankings"].any() and not known:
    raise Lacking(view, "rankings")
