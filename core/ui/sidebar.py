"""The sidebar: what defines the decision, the same on every page, all of it in the address."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.decide.rules import decide
from core.metrics import REGISTRY
from core.prices import PriceBook
from core.store import Snapshot
from core.ui import cache, comparing, prices
from core.ui.generation import generation
from core.ui.limits import constraints, forget_ranges
from core.ui.navigation import links
from core.ui.parameters import KEYS, parameters
from core.ui.pick import still_offered
from core.ui.state import LATEST
from core.ui.view import View
from core.views.workspace.choices import Choices
from core.views.workspace.scope import Latency, LatencyScope, Percentile, Quality, Scope

_DEPENDENT = (
    "gs",
    "runs",
    "m",
    "k",
    *KEYS,
    *comparing.KEYS,
    "lat",
    "stack",
    "vs",
    "q",
    "curves",
    "tag",
    "base",
    "seg",
    "cmp",
    "pair",
    "change",
    "sets",
    "judges",
    "fam",
    "among",
    "ks",
    "sig",
    "thr",
    "thr2",
    "lats",
)
_NEXT = "_next_workspace"
_REVISIONS_SHOWN = 50
_RUNS_LISTED = 300


def sidebar() -> View | None:
    """Draw the sidebar.

    Returns:
        The workspace that it sets; None while the store is empty.
    """
    _move()
    top, rooms, main, foot = (st.sidebar.container() for _ in range(4))
    with rooms:
        links()
    with foot:
        snapshot = _snapshot()
    path = str(cache.store().path)
    workspaces = cache.workspaces(path, snapshot.revision)
    if not workspaces:
        return None
    scope, offered = _scope(snapshot, workspaces, top, main)
    with main:
        quality = _quality(offered)
        latency = _latency(offered, snapshot.revision, scope)
        differing, limits = st.container(), st.container()
    with foot:
        book = _book()
    with differing:
        found = comparing.compared(snapshot, scope, quality, latency, book)
    scope, latency, table = found.scope, found.latency, found.table
    with limits:
        asked = constraints(table, quality)
    paired = cache.paired(table, path, snapshot.revision, scope=scope, quality=quality)
    return View(
        snapshot=snapshot,
        scope=scope,
        quality=quality,
        latency=latency,
        constraints=asked,
        book=book,
        table=table,
        decision=decide(table, asked, paired=paired),
        paired=paired,
        compared=found.compared,
    )


def _snapshot() -> Snapshot:
    latest = cache.store().revision()
    earlier = [str(number) for number in range(latest, max(0, latest - _REVISIONS_SHOWN), -1)]
    asked = str(st.query_params.get("rev", LATEST))
    if asked.isdigit() and 0 < int(asked) <= latest and asked not in earlier:
        earlier.append(asked)
    chosen = st.selectbox(
        "Data as of revision",
        [LATEST, *earlier],
        key="rev",
        bind="query-params",
        help="Every import, run and delete makes a revision. A shared link pins one.",
    )
    return cache.snapshot(None if chosen == LATEST else int(chosen))


def go_to_workspace(collection_id: str) -> None:
    """Show another workspace, at the newest data, from the next script run on."""
    st.session_state[_NEXT] = collection_id


def _move() -> None:
    """Before any widget is drawn: follow `go_to_workspace`."""
    wanted = st.session_state.pop(_NEXT, None)
    if wanted is not None:
        _forget_dependent()
        st.session_state["ws"] = wanted
        st.session_state["rev"] = LATEST


def _forget_dependent() -> None:
    """A new workspace has other runs and other ranges: settings of the old one do not carry over."""
    for key in _DEPENDENT:
        st.session_state.pop(key, None)
    forget_ranges()


def _scope(
    snapshot: Snapshot, found: Mapping[str, tuple[str, ...]], top: DeltaGenerator, main: DeltaGenerator
) -> tuple[Scope, Choices]:
    names = list(found)
    if st.session_state.get("ws", names[0]) not in found:  # it was deleted
        _forget_dependent()
    still_offered("ws", names)
    collection = top.selectbox(
        "Workspace",
        names,
        key="ws",
        bind="query-params",
        on_change=_forget_dependent,
        help="One collection: results on different corpora never share a chart.",
    )
    golden = found[collection]
    golden_set = golden[0] if golden else None
    if len(golden) > 1:
        still_offered("gs", golden)
        golden_set = main.selectbox("Golden set", golden, key="gs", bind="query-params")
    whole = Scope(collection, golden_set)
    offered = cache.offered(str(cache.store().path), snapshot.revision, whole)
    chosen: list[str] = []
    if 1 < len(offered.runs) <= _RUNS_LISTED:
        if "runs" in st.session_state:  # another session may have deleted some
            st.session_state["runs"] = [name for name in st.session_state["runs"] if name in offered.runs]
        chosen = main.multiselect(
            "Runs",
            list(offered.runs),
            key="runs",
            bind="query-params",
            placeholder=f"all {len(offered.runs)}",
        )
    return Scope(collection, golden_set, tuple(offered.runs[name] for name in chosen)), offered


def _quality(offered: Choices) -> Quality:
    left, right = st.columns([3, 2])
    name = left.selectbox(
        "Quality",
        offered.measures,
        key="m",
        bind="query-params",
        help="  \n".join(
            f"**{name}** {REGISTRY[name].text}" for name in offered.measures if name in REGISTRY
        ),
    )
    cutoffs = offered.cutoffs(name)
    default = cutoffs.index(offered.usual_cutoff(name))
    k = right.selectbox("at K", cutoffs, index=default, key="k", bind="query-params", help="The cutoff.")
    return Quality(parameters(name) if offered.computed else name, k)


def _latency(offered: Choices, revision: int, within: Scope) -> Latency:
    percentile: Percentile = st.segmented_control(
        "Latency",
        ["p50", "p95", "p99"],
        default="p50",
        required=True,
        key="on",
        bind="query-params",
        help="p50: half of the queries are faster. p95: 95 % are; withheld below 60 queries. "
        "p99: withheld below 299.",
    )
    scope: LatencyScope = st.segmented_control(
        "Latency of",
        ["path", "rerank", "end-to-end"] if offered.reranked else ["path", "end-to-end"],
        default="path",
        required=True,
        key="lat",
        bind="query-params",
        help="path: embed + retrieve + rerank. rerank: the reranker call alone. end-to-end: the path and the "
        "generator, modelled where it was not timed.",
    )
    modelled = generation(revision, within) if scope == "end-to-end" else None
    return Latency(percentile, scope, generation=modelled)


def _book() -> PriceBook:
    books = cache.books()
    name = st.selectbox("Prices", list(books), key="book", bind="query-params", help="Price book; see Cost.")
    return prices.in_force(books[name])
