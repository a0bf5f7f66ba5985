"""Routing: whether choosing K query by query beats one K for all queries, and at what price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.ui import cache, show
from core.ui.pick import listed, pick_listed, pick_one
from core.ui.state import linked
from core.ui.view import end
from core.views.text import plain
from core.views.what_if import simulator, words
from core.views.what_if.families import (
    Family,
    Option,
    Signal,
    available,
    families,
    idle,
    rewriting,
    stacks_as_options,
    usual_stacks,
    with_replays,
)
from core.views.what_if.routing import Asked, Routable, Way, gather
from core.views.what_if.simulator import AXES, chart, drawable
from core.views.workspace.view import View

OF_MY_CHOICE = "stacks of my choice"
_MOST = 3


def routing(view: View) -> None:
    """Draw the section."""
    head = st.container()
    if not view.table["has_rankings"].any():
        _nothing(head, f"No stack here has rankings to route {view.quality.name} by.", simulator.NEEDS)
    family, options = _pick_options(view)
    rewrites = family is not None and family.rewrites
    if family is not None and family.refused:
        st.caption(f":material/block: Smaller K are not replayed: {plain(family.refused)}.")
    if len(options) < 2:
        _nothing(head, f"Choose two or three depths to route {view.quality.name} between.", simulator.NEEDS)
    left, middle, right = st.columns([3, 2, 2])
    with left:
        signal = _pick_signal(view, options)
    with middle:
        most = _ask_most()
    if signal is None:
        _nothing(head, f"No signal to route {view.quality.name} by.", simulator.NO_SIGNAL)
    shares = family is not None and not rewrites
    way = Way(signal.known, shares, family is None or not family.refused, rewrites)
    found = _gathered(view, tuple(options), way)
    obstacle = simulator.nothing(found)
    if found is None or obstacle:
        _nothing(head, str(obstacle), simulator.NO_SIGNAL)
    made = _simulated(found, signal, view, most)
    with head:
        show.head(made.sentence)
        if not found.depths.same:
            show.cards(*words.cards(made.rows, view.quality))
        show.caveats(made.details)
    with right:
        axis = _pick_axis(made.rows, view)
    if axis is not None:
        drawn = chart(made.rows, made.path, view.table, view.quality, axis)
        show.chart(drawn, "routing", alt=made.sentence)
    show.table(made.rows, "routing", COLUMNS, more=MORE)


def _nothing(place: DeltaGenerator, answer: str, details: str) -> NoReturn:
    """Say why there is nothing to simulate, and end the page."""
    with place:
        show.head(answer, details)
    end()


def _pick_options(view: View) -> tuple[Family | None, list[Option]]:
    """Draw the choice of the stack and its depths, or of any stacks."""
    found = {family.name: family for family in (*families(view.table), *_rewriting(view))}
    names = [name for name, each in found.items() if len(each.options) > 1 or each.reranker]
    left, right = st.columns(2)
    offered = [*names, OF_MY_CHOICE]
    flat = all(idle(found[name], view.quality.k) for name in names if not found[name].rewrites)
    name = pick_listed(
        "Stack",
        offered,
        "fam",
        usual=OF_MY_CHOICE if flat else None,
        place=left,
        help="Stacks that differ only in their candidate depth K, or only in a rewrite. Smaller K of a "
        "pointwise reranker are replayed from its deepest run; a listwise one has to be run at every K.",
    )
    if name == OF_MY_CHOICE:
        picked = right.multiselect(
            "Stacks, two or three",
            listed(view.table, "among", view.decision.quality),
            **linked("among"),
            max_selections=_MOST,
            placeholder="the fastest and the best",
        )
        return None, stacks_as_options(view.table, picked or usual_stacks(view.table))
    family = _with_replays(view, found[name])
    with right:
        return family, _pick_depths(family)


def _pick_depths(family: Family) -> list[Option]:
    labels = {option.label + (" (replayed)" if option.deep else ""): option for option in family.options}
    usual = [label for label, option in labels.items() if option in _usual(family)]
    if "ks" in st.session_state:  # a choice that was kept may be of another stack
        kept = [label for label in st.session_state["ks"] if label in labels]
        st.session_state["ks"] = kept or usual
    picked = st.multiselect(
        "Rewrites, two or three" if family.rewrites else "Depths, two or three",
        list(labels),
        default=None if "ks" in st.session_state else usual,
        **linked("ks"),
        max_selections=_MOST,
    )
    return [option for label, option in labels.items() if label in picked]


def _usual(family: Family) -> list[Option]:
    """The paper's K = 50 and 100 where they are there, else the shallowest and the deepest."""
    paper = [option for option in family.options if option.depth in (50, 100) and not family.rewrites]
    return paper if len(paper) == 2 else [family.options[0], family.options[-1]]


@cache.cached("Looking which depths can be replayed…", entries=64)
def _with_replays(view: View, family: Family) -> Family:
    return with_replays(view.snapshot, view.table, family)


def _pick_signal(view: View, options: list[Option]) -> Signal | None:
    """Draw the choice of the signal; None where there is none."""
    found = {signal.label: signal for signal in _available(view, options[0])}
    if not found:
        return None
    label = pick_listed(
        "Signal",
        found,
        "sig",
        help="What the router looks at, of the shallowest depth. Small margins and gaps and high entropy ask "
        "for a deeper K (CLQ paper §6).",
    )
    return found[label]


@cache.cached("Reading the signals…", entries=64)
def _available(view: View, option: Option) -> list[Signal]:
    return available(view.snapshot, option, view.scope.collection_id)


@cache.cached("Scoring every query…", entries=64)
def _gathered(view: View, options: tuple[Option, ...], way: Way) -> Routable | None:
    asked = Asked(view.scope, view.quality, view.latency, view.book)
    if way.rewrites:  # runs of perturbed queries are not on offer, so that the view's table lacks them
        scope = replace(view.scope, run_ids=tuple(option.run_id for option in options))
        table = cache.stacks(view.snapshot, scope, view.quality, view.latency, view.book)
    else:
        table = view.table
    return gather(view.snapshot, table, asked, options, way=way)


@cache.cached("Looking which stacks rewrite…", entries=16)
def _rewriting(view: View) -> list[Family]:
    return rewriting(view.snapshot, view.scope)


def _ask_most() -> float:
    """Draw how many queries may go deeper; a share."""
    percent: int = st.slider(
        "At most deeper (%)",
        0,
        100,
        50,
        5,
        **linked("most"),
        help="The rule sends no more of the queries that it learns from beyond the shallowest depth.",
    )
    return percent / 100


def _simulated(found: Routable, signal: Signal, view: View, most: float) -> simulator.Simulation:
    """Simulate, with the threshold of the slider where one is set."""
    routed = partial(
        simulator.simulate, found, signal, view.quality, most=most, jitter_ms=view.decision.jitter_ms
    )
    first = routed()
    if signal.tags:
        return first
    own = _own_threshold(found, signal, first.thresholds)
    return first if own is None else routed(own=own)


def _own_threshold(found: Routable, signal: Signal, learnt: tuple[float, ...]) -> tuple[float, ...] | None:
    """Draw the choice of one's own threshold; None = the learnt one is used."""
    by = pick_one(
        "Threshold", ["cross-validated", "my own"], "thrby",
        help="cross-validated: learnt from other queries than those it is judged on. my own: shown besides, "
        "and optimistic, as you choose it while you see the queries that it is judged on.",
    )  # fmt: skip
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
        **linked(key),
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


def _pick_axis(rows: pl.DataFrame, view: View) -> str | None:
    """Draw the choice of the x axis; None where neither latency nor cost is known."""
    axes = drawable(rows)
    if not axes:
        return None
    usual = view.latency.percentile if view.latency.percentile in axes else axes[0]
    titles = {AXES[axis]: axis for axis in axes}
    return titles[pick_listed("Across", titles, "rx", usual=AXES[usual])]


COLUMNS: Mapping[str, Any] = {
    "way": show.text_column("queries are answered at", width=250),
    "deeper": show.percent_column("sent deeper", "Share of the queries beyond the shallowest depth."),
    "quality": show.score_column("quality", "Mean over n queries."),
    "low": show.score_column("low", "Lower end of the 95 % bootstrap interval over queries."),
    "high": show.score_column("high", "Upper end of the 95 % bootstrap interval over queries."),
    "p50": show.number_column("p50 ms", 2, "Of the latencies of the chosen depths."),
    "p95": show.number_column("p95 ms", 2, "Withheld below 60 queries."),
    "cost": show.dollar_column("$ / 1k", "Blended, per 1,000 queries; empty = unknown."),
}
MORE: Mapping[str, Any] = {
    "n": show.number_column("n", 0, "Queries."),
    "mean_ms": show.number_column("mean ms", 2),
    "latency_basis": show.text_column("latency is"),
    "cost_basis": show.text_column("cost is"),
    "gain": show.score_column("over chance", "Against the same share of queries sent deeper at random."),
    "gain_low": show.score_column("low ", "Lower end of the 95 % paired bootstrap interval."),
    "gain_high": show.score_column("high ", "Upper end of the 95 % paired bootstrap interval."),
    "over": show.score_column("over one depth", "Against the best single depth for all queries."),
    "over_low": show.score_column("low  ", "Lower end of the 95 % paired bootstrap interval."),
    "over_high": show.score_column("high  ", "Upper end of the 95 % paired bootstrap interval."),
    "note": show.text_column("note"),
}
