"""Widgets and cached reads of the routing page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl
import streamlit as st

from core.prices import PriceBook
from core.ui import cache, show
from core.ui.pick import listed, still_offered
from core.ui.view import View
from core.views.text import plain
from core.views.what_if.routing import policies as routing
from core.views.what_if.routing.chart import AXES, drawable
from core.views.what_if.routing.data import Routable, Way, gather
from core.views.what_if.routing.families import (
    Family,
    Option,
    chosen,
    families,
    idle,
    stacks_as_options,
    usual_stacks,
    with_replays,
)
from core.views.what_if.routing.signals import Signal, available
from core.views.what_if.routing.times import Asked

OF_MY_CHOICE = "stacks of my choice"
_MOST = 3
_BOOKS: dict[str | type[Any], Callable[[Any], Any]] = {PriceBook: lambda book: (book.name, book.digest)}


def pick_options(view: View) -> tuple[Family | None, list[Option]]:
    """Draw the choice of the stack and its depths, or of any stacks.

    Returns:
        The family, None for stacks of one's own choice; and two or three options, the shallowest first, or
        fewer where there are no more.
    """
    found = {family.name: family for family in families(view.table)}
    names = [name for name, each in found.items() if len(each.options) > 1 or each.reranker]
    left, right = st.columns(2)
    offered = [*names, OF_MY_CHOICE]
    still_offered("fam", offered)
    flat = all(idle(found[name], view.quality.k) for name in names)
    name = left.selectbox(
        "Stack",
        offered,
        index=len(names) if flat else 0,
        key="fam",
        bind="query-params",
        help="Stacks that differ only in their candidate depth K. Smaller K of a pointwise reranker are "
        "replayed from its deepest run; a listwise one has to be run at every K.",
    )
    if name == OF_MY_CHOICE:
        picked = right.multiselect(
            "Stacks, two or three",
            listed(view.table, "among", view.decision.quality),
            key="among",
            bind="query-params",
            max_selections=_MOST,
            placeholder="the fastest and the best",
        )
        return None, stacks_as_options(view.table, picked or usual_stacks(view.table))
    path, revision = str(cache.store().path), view.snapshot.revision
    family = _with_replays(path, revision, view.table, found[name])
    with right:
        return family, _pick_depths(family)


def _pick_depths(family: Family) -> list[Option]:
    labels = {option.label + (" (replayed)" if option.deep else ""): option for option in family.options}
    usual = [label for label, option in labels.items() if option in _usual(family)]
    if "ks" in st.session_state:  # a choice that was kept may be of another stack
        kept = [label for label in st.session_state["ks"] if label in labels]
        st.session_state["ks"] = kept or usual
    picked = st.multiselect(
        "Depths, two or three",
        list(labels),
        default=None if "ks" in st.session_state else usual,
        key="ks",
        bind="query-params",
        max_selections=_MOST,
    )
    return [option for label, option in labels.items() if label in picked]


def _usual(family: Family) -> list[Option]:
    """The paper's K = 50 and 100 where they are there, else the shallowest and the deepest."""
    paper = chosen(family, (50, 100))
    return paper if len(paper) == 2 else [family.options[0], family.options[-1]]


@st.cache_resource(show_spinner="Looking which depths can be replayed…", max_entries=64)
def _with_replays(path: str, revision: int, _table: pl.DataFrame, family: Family) -> Family:
    del path  # part of the key
    return with_replays(cache.snapshot(revision), _table, family)


def pick_signal(view: View, options: list[Option]) -> Signal | None:
    """Draw the choice of the signal; None where there is none."""
    found = {
        signal.label: signal
        for signal in _available(
            str(cache.store().path), view.snapshot.revision, options[0], view.scope.collection_id
        )
    }
    if not found:
        return None
    still_offered("sig", list(found))
    label = st.selectbox(
        "Signal",
        list(found),
        key="sig",
        bind="query-params",
        help="What the router looks at, of the shallowest depth. Small margins and gaps and high entropy ask "
        "for a deeper K (CLQ paper §6).",
    )
    return found[label]


@st.cache_resource(show_spinner="Reading the signals…", max_entries=64)
def _available(path: str, revision: int, option: Option, collection_id: str) -> list[Signal]:
    del path  # part of the key
    return available(cache.snapshot(revision), option, collection_id)


def gathered(view: View, family: Family | None, options: list[Option], signal: Signal) -> Routable | None:
    """What a routing is judged by; see `core.views.what_if.routing.data.gather`."""
    way = Way(signal.known, family is not None, family is None or not family.refused)
    asked = Asked(view.scope, view.quality, view.latency, view.book)
    path = str(cache.store().path)
    return _gathered(path, view.snapshot.revision, asked, tuple(options), way, view.table)


@st.cache_resource(show_spinner="Scoring every query…", max_entries=64, hash_funcs=cache.BY_DIGEST)
def _gathered(
    path: str, revision: int, asked: Asked, options: tuple[Option, ...], way: Way, _table: pl.DataFrame
) -> Routable | None:
    del path  # part of the key
    return gather(cache.snapshot(revision), _table, asked, options, way=way)


def limits() -> float:
    """Draw how many queries may go deeper; a share."""
    percent: int = st.slider(
        "At most deeper (%)",
        0,
        100,
        50,
        5,
        key="most",
        bind="query-params",
        help="The rule sends no more of the queries that it learns from beyond the shallowest depth.",
    )
    return percent / 100


def simulated(found: Routable, signal: Signal, view: View, most: float) -> routing.Simulation:
    """Simulate, with the threshold of the slider where one is set."""
    first = routing.simulate(found, signal, view.quality, most=most)
    if signal.tags:
        return first
    own = _own_threshold(found, signal, first.thresholds)
    return first if own is None else routing.simulate(found, signal, view.quality, most=most, own=own)


def _own_threshold(found: Routable, signal: Signal, learnt: tuple[float, ...]) -> tuple[float, ...] | None:
    """Draw the choice of one's own threshold; None = the learnt one is used."""
    by = st.segmented_control(
        "Threshold",
        ["cross-validated", "my own"],
        default="cross-validated",
        required=True,
        key="thrby",
        bind="query-params",
        help="cross-validated: learnt from other queries than those it is judged on. my own: shown besides, "
        "and optimistic, as you choose it while you see the queries that it is judged on.",
    )
    known = sorted(signal.values[each] for each in found.query_ids if each in signal.values)
    if by != "my own" or not known:
        return None
    low, high = float(f"{known[0]:.4g}"), float(f"{known[-1]:.4g}")
    inside = sorted(min(max(each, low), high) for each in learnt)
    several = len(inside) > 1
    key = "thr2" if several else "thr"
    _forget_outside(key, low, high)
    value = st.slider(
        f"{'Thresholds' if several else 'Threshold'} of the {signal.label}",
        low,
        high,
        (inside[0], inside[-1]) if several else inside[0],
        step=(high - low) / 200 or 1.0,
        format="%.4g",
        key=key,
        bind="query-params",
    )
    return tuple(value) if isinstance(value, tuple) else (float(value),)


def _forget_outside(key: str, low: float, high: float) -> None:
    """A threshold of another signal, or of another stack, does not carry over."""
    kept = st.session_state.get(key)
    if kept is None:
        return
    values = kept if isinstance(kept, (tuple, list)) else [kept]
    if not all(low <= float(each) <= high for each in values):
        del st.session_state[key]


def pick_axis(rows: pl.DataFrame, view: View) -> str | None:
    """Draw the choice of the x axis; None where neither latency nor cost is known."""
    axes = drawable(rows)
    if not axes:
        return None
    titles = [AXES[axis] for axis in axes]
    if "rx" not in st.session_state and view.latency.percentile in axes:
        usual = axes.index(view.latency.percentile)
    else:
        usual = 0
    still_offered("rx", titles)
    title = st.selectbox("Across", titles, index=usual, key="rx", bind="query-params")
    return axes[titles.index(title)]


COLUMNS: Mapping[str, Any] = {
    "way": show.text_column("queries are answered at", width=230),
    "deeper": show.percent_column("sent deeper", "Share of the queries beyond the shallowest depth."),
    "quality": show.score_column("quality", "Mean over n queries."),
    "low": show.score_column("low", "Lower end of the 95 % bootstrap interval over queries."),
    "high": show.score_column("high", "Upper end of the 95 % bootstrap interval over queries."),
    "n": show.number_column("n", 0, "Queries."),
    "p50": show.number_column("p50 ms", 2, "Of the latencies of the chosen depths."),
    "p95": show.number_column("p95 ms", 2, "Withheld below 60 queries."),
    "mean_ms": show.number_column("mean ms", 2),
    "latency_basis": show.text_column("latency is"),
    "cost": show.dollar_column("$ / 1k", "Blended, per 1,000 queries; empty = unknown."),
    "cost_basis": show.text_column("cost is"),
    "gain": show.score_column("over chance", "Against the same share of queries sent deeper at random."),
    "gain_low": show.score_column("low ", "Lower end of the 95 % paired bootstrap interval."),
    "gain_high": show.score_column("high ", "Upper end of the 95 % paired bootstrap interval."),
    "over": show.score_column("over one depth", "Against the best single depth for all queries."),
    "over_low": show.score_column("low  ", "Lower end of the 95 % paired bootstrap interval."),
    "over_high": show.score_column("high  ", "Upper end of the 95 % paired bootstrap interval."),
    "note": show.text_column("note"),
}
"""The columns of the table behind the chart."""


def refused(family: Family | None) -> None:
    """Say why smaller depths are not replayed."""
    if family is not None and family.refused:
        st.caption(f":material/block: Smaller K are not replayed: {plain(family.refused)}.")
