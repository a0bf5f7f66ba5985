"""Widgets and cached reads of the compare page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl
import streamlit as st

from core.stats.significance import TOLERANCE, Method, Setup
from core.ui import cache
from core.ui.pick import KEPT, carry_over, listed, still_offered
from core.ui.view import View
from core.views.compare import change_effect, changes
from core.views.compare import page as compare
from core.views.compare import pair as compare_pair
from core.views.compare.page import MOST, Against, Scored
from core.views.compare.pair import Closer
from core.views.text import plain
from core.views.workspace.query_sets import among
from core.views.workspace.scope import Quality, Scope
from core.views.workspace.scores import evidence

_GO = "_go_to_query"


def pick(view: View) -> list[str]:
    """Draw the list of stacks.

    Returns:
        Names of two to five stacks with per-query data; the usual ones fill up where fewer were chosen.
    """
    carry_over("cmp")
    names = listed(view.table, "cmp", view.decision.quality)
    if "cmp" in st.session_state:  # a choice that was kept may be of another workspace
        st.session_state["cmp"] = [name for name in st.session_state["cmp"] if name in names]
    picked = st.multiselect(
        "Stacks",
        names,
        key="cmp",
        bind="query-params",
        max_selections=MOST,
        placeholder="the chosen stack and the runner-up",
        help=f"Two to {MOST}. The first is what the others are compared with.",
    )
    st.session_state[KEPT + "cmp"] = list(picked)
    ranked = set(view.table.filter("has_rankings")["name"])
    unranked = [name for name in picked if name not in ranked]
    if unranked:
        st.warning(
            f"Without per-query data, so left out: {plain('; '.join(unranked))}. Only averages of them are "
            "known.",
            icon=":material/block:",
        )
    chosen = [name for name in picked if name in ranked]
    if len(chosen) < 2:
        others = [name for name in compare.usual(view.table, view.decision) if name not in chosen]
        chosen = (chosen + others)[:2]
        if picked:
            st.caption(plain(f"Compared with {chosen[-1]}; choose a second stack to change that."))
    return chosen


def settings(quality: Quality) -> tuple[Setup, Against]:
    """Draw how to compare."""
    left, middle, right = st.columns([2, 2, 1.4])
    against: Against = left.segmented_control(
        "Compare",
        ["the first", "every pair"],
        default="the first",
        required=True,
        key="each",
        bind="query-params",
        help="Every stack with the first one, or every pair. More comparisons, stricter p-values.",
    )
    method: Method = middle.segmented_control(
        "Interval",
        ["percentile", "BCa"],
        default="percentile",
        required=True,
        key="ci",
        bind="query-params",
        help="95 % bootstrap interval over queries. percentile: as on the other pages. BCa: corrected for "
        "bias and skew (Efron 1987), better for few queries.",
    )
    tolerance = right.number_input(
        "Tie up to",
        min_value=0.0,
        max_value=1.0,
        value=TOLERANCE,
        step=0.01,
        format="%g",
        key="tol",
        bind="query-params",
        help="A query whose two scores differ by no more is a tie. Wins and losses depend on it, the "
        "difference, its interval and its p-value do not.",
    )
    up = quality.higher_is_better
    return Setup(method=method, tolerance=tolerance, higher_is_better=up), against


Key = tuple[str, int, Scope, Quality, tuple[tuple[str, str], ...]]
"""What a cached read depends on: store, revision, workspace, measure, and stacks by run_id and name."""


def _key(view: View, names: Mapping[str, str]) -> Key:
    path = str(cache.store().path)
    return path, view.snapshot.revision, view.scope, view.quality, tuple(names.items())


@st.cache_resource(show_spinner="Scoring every query…", max_entries=64)
def _scored(key: Key) -> Scored:
    _, revision, scope, quality, names = key
    run_ids = [run_id for run_id, _ in names]
    snapshot = cache.snapshot(revision)
    only = among(snapshot, scope)
    found = evidence(snapshot, run_ids, scope.golden_set_id or "", (quality.measure,), only=only)
    return compare.scored(found, dict(names), quality)


def differences(view: View, names: Sequence[str], against: Against, setup: Setup) -> pl.DataFrame:
    """Compare stacks, by name; see `core.views.compare.page.differences`."""
    ids = dict(view.table.select("name", "run_id").iter_rows())
    return _differences(_key(view, {ids[name]: name for name in names}), against, setup)


@st.cache_resource(show_spinner=False, max_entries=64)
def _differences(key: Key, against: Against, setup: Setup) -> pl.DataFrame:
    stacks = _scored(key)
    first, second = compare.pairs_of(stacks.names, against)
    return compare.differences(stacks, first, second, setup)


def pick_pair(rows: pl.DataFrame) -> dict[str, Any]:
    """Which of the comparisons to look at closely; a list where there are several."""
    labels = pair_labels(rows)
    still_offered("pair", labels)
    picked = labels[0]
    if len(labels) > 1:
        picked = st.selectbox("Look closer at", labels, key="pair", bind="query-params")
    return rows.row(labels.index(picked), named=True)


def pair_labels(rows: pl.DataFrame) -> list[str]:
    """What the comparisons are called."""
    return [f"{second} against {first}" for first, second in rows.select("first", "second").iter_rows()]


def look_closer(view: View, pair: Mapping[str, Any], setup: Setup) -> Closer:
    """Compare two stacks query by query; see `core.views.compare.pair.look_closer`."""
    return _closer(
        view.table,
        str(cache.store().path),
        view.snapshot.revision,
        scope=view.scope,
        quality=view.quality,
        pair=_ids(view, pair),
        setup=setup,
    )


@st.cache_resource(show_spinner="Comparing query by query…", max_entries=64)
def _closer(
    _table: pl.DataFrame,
    path: str,
    revision: int,
    *,
    scope: Scope,
    quality: Quality,
    pair: tuple[str, str],
    setup: Setup,
) -> Closer:
    del path  # part of the key
    return compare_pair.look_closer(cache.snapshot(revision), scope, quality, _table, pair=pair, setup=setup)


def _ids(view: View, pair: Mapping[str, Any]) -> tuple[str, str]:
    ids = dict(view.table.select("name", "run_id").iter_rows())
    return ids[pair["first"]], ids[pair["second"]]


def with_agreement(view: View, rows: pl.DataFrame) -> pl.DataFrame:
    """The comparisons with the mean overlap and tau of their rankings."""
    place = (str(cache.store().path), view.snapshot.revision)
    means = [
        compare_pair.alike_means(_agreement(view.table, *place, k=view.quality.k, pair=_ids(view, pair)))
        for pair in rows.iter_rows(named=True)
    ]
    return rows.with_columns(
        pl.Series("overlap", [each[0] for each in means], dtype=pl.Float64),
        pl.Series("tau", [each[1] for each in means], dtype=pl.Float64),
    )


@st.cache_resource(show_spinner=False, max_entries=64)
def _agreement(
    _table: pl.DataFrame, path: str, revision: int, *, k: int, pair: tuple[str, str]
) -> pl.DataFrame | None:
    del path  # part of the key
    return compare_pair.alike(cache.snapshot(revision), _table, k, *pair)


def open_from_chart(rows: pl.DataFrame, pair: Mapping[str, Any], chart_key: str) -> Callable[[], None]:
    """What a click on a query's mark does: open it on the Queries page with both stacks."""

    def clicked() -> None:
        row = _clicked_row(chart_key)
        if row is not None:
            st.session_state[_GO] = (rows["query_id"][row], pair["second"], pair["first"])

    return clicked


def open_from_table(rows: pl.DataFrame, pair: Mapping[str, Any], table_key: str) -> Callable[[], None]:
    """What a tick in the table of queries does: the same."""

    def ticked() -> None:
        chosen = st.session_state[table_key]["selection"]["rows"]
        if chosen:
            st.session_state[_GO] = (rows["query_id"][chosen[0]], pair["second"], pair["first"])

    return ticked


def follow() -> None:
    """Go to the query that was clicked, if one was."""
    wanted = st.session_state.pop(_GO, None)
    if wanted is not None:
        query_id, stack, other = wanted
        # Named parameters: Streamlit refuses to clear those that widgets are bound to.
        st.switch_page("pages/queries.py", query_params={"stack": stack, "vs": other, "q": query_id})


def change(view: View, setup: Setup) -> tuple[str, pl.DataFrame, pl.DataFrame] | None:
    """Draw the list of changes and compare the pairs of the chosen one.

    Returns:
        The change, its effect on each pair and on average (`compare.change_effect`); None where no two
        stacks differ in exactly one thing.
    """
    found = _changes(view.table, str(cache.store().path), view.snapshot.revision, scope=view.scope)
    kinds = changes.kinds(found)
    if not kinds:
        return None
    still_offered("change", kinds)
    kind = st.selectbox(
        "Change",
        kinds,
        key="change",
        bind="query-params",
        help="Found by comparing the specifications of the stacks: everything else in them is the same.",
    )
    pairs = changes.of_kind(found, kind)
    names = dict(pairs.select("run_before", "before").iter_rows())
    names |= dict(pairs.select("run_after", "after").iter_rows())
    return kind, *_effects(pairs, _key(view, names), kind, setup)


@st.cache_resource(show_spinner="Comparing with and without…", max_entries=64)
def _effects(_pairs: pl.DataFrame, key: Key, kind: str, setup: Setup) -> tuple[pl.DataFrame, pl.DataFrame]:
    del kind  # the key of the pairs, which are not hashed themselves
    stacks = _scored(key)
    return change_effect.effects(stacks, _pairs, setup), change_effect.pooled(stacks, _pairs, setup)


@st.cache_resource(show_spinner=False, max_entries=16)
def _changes(_table: pl.DataFrame, path: str, revision: int, *, scope: Scope) -> pl.DataFrame:
    del path, revision, scope  # the key of the table, which is not hashed itself
    return changes.changes(_table.filter("has_rankings"))


def compare_pair_of(rows: pl.DataFrame, table_key: str, chart_key: str) -> tuple[Callable[[], None], ...]:
    """What a tick in the table of a change does, and a click on a mark of its chart: compare that pair."""

    def take(row: int) -> None:
        st.session_state["cmp"] = [rows["before"][row], rows["after"][row]]

    def ticked() -> None:
        chosen = st.session_state[table_key]["selection"]["rows"]
        if chosen:
            take(chosen[0])

    def clicked() -> None:
        row = _clicked_row(chart_key)
        if row is not None:
            take(row)

    return ticked, clicked


def _clicked_row(chart_key: str) -> int | None:
    """The first custom datum of the mark that was clicked."""
    points = st.session_state[chart_key]["selection"]["points"]
    data = points[0].get("customdata") if points else None
    if not data:
        return None
    # Numbers sent as a typed array come back as a mapping from position to value.
    return int(data["0"] if isinstance(data, Mapping) else data[0])
