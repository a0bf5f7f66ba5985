"""The choices a page depends on: the workspace above the navigation, settings behind a button, limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.analysis.workspace.choices import Choices, titled
from core.analysis.workspace.question import Question
from core.analysis.workspace.resolve import Compared, compare, decided, taken
from core.analysis.workspace.scope import LatencyScope, Percentile, Quality, Scope
from core.analysis.workspace.view import Place
from core.errors import UnknownNameError
from core.metrics import REGISTRY
from core.prices import PriceBook
from core.store import Snapshot
from core.ui import address, cache, prices
from core.ui.address.state import (
    LATEST,
    NEXT,
    SETTINGS,
    TAKE,
    back_to_defaults,
    bound,
    changed,
    forget_defaults,
    linked,
)
from core.ui.find import search
from core.ui.limits import adopt, alike, constraints, standing, turn
from core.ui.pages import links
from core.ui.pick import ASKED, KEPT, pick_asked, still_offered
from core.ui.settings import (
    READS,
    Asking,
    answering,
    cluster_by,
    generation,
    judge_noise,
    parameters,
    running_stack,
)
from core.ui.view import Frame, Lacking, current_page
from core.views.text import plain

_COUNTED, _SHOWN = "_settings_counted", "_workspace_shown"
_RARE = tuple(key for key, setting in SETTINGS.items() if setting.rare)  # The settings behind the button
_COUNTS = tuple(key for key in _RARE if key != "rev")  # A link pins its revision, whatever else it sets
_REVISIONS_SHOWN = 50
_RUNS_LISTED = 300
_LISTED = 12  # Maximum workspaces that the menu's help describes


@dataclass(frozen=True)
class Asked:
    """A workspace under the settings of a page, before its limits."""

    question: Question
    compared: Compared
    table: pl.DataFrame  # the stacks, with what a move to each needs
    seen: tuple[int, Mapping[str, PriceBook]]  # the newest revision and the price books of the time

    @property
    def place(self) -> Place:
        """The workspace without its question."""
        return Place(self.compared.snapshot, self.compared.narrowed.scope)


def open_workspace(frame: Frame) -> Asked | Place | None:
    """Draw the choices around the page: the workspace and, if the page has them, its settings.

    Returns:
        The workspace alone on pages without settings.
    """
    _move()
    page = current_page()
    if not page.limits:
        adopt()
    top, sought = st.sidebar.container(), st.sidebar.container(key="sought")
    rooms = st.sidebar.container(key="rooms", gap=None)
    asked: Asked | Place | None = None
    try:
        asked = _with_settings(frame, top) if page.settings else _without_settings(frame, top)
    finally:  # links include the settings
        address.follow()
        with rooms:
            links(frame.has)
        with sought:
            search(place_of(asked), asked.table if isinstance(asked, Asked) else None, frame.has)
    return asked


def place_of(asked: Asked | Place | None) -> Place | None:
    """Return the workspace of a page's choices."""
    return asked.place if isinstance(asked, Asked) else asked


def changed_since(asked: Asked | Place | None) -> bool:
    """Return whether the store or the price books have changed since the settings were drawn."""
    if not isinstance(asked, Asked):
        return False
    revision, books = _newest()
    return revision != asked.seen[0] or books is not asked.seen[1]


def _newest() -> tuple[int, Mapping[str, PriceBook]]:
    return cache.store().revision(), cache.books()


def limited(asked: Asked | Place | None, frame: Frame) -> Place | None:
    """Draw the limits of a page that has them; return the workspace under these, and under those in force."""
    if not isinstance(asked, Asked):
        return asked
    compared, table = asked.compared, asked.table
    quality, latency = compared.quality, compared.narrowed.latency
    if current_page().limits:
        with frame.strip:
            limits = constraints(table, quality, latency)
    else:
        limits = standing(table, quality, latency)
    return cache.shared(decided(replace(asked.question, take=_taken(table), **limits), compared))


def _without_settings(frame: Frame, top: DeltaGenerator) -> Place | None:
    snapshot = _pinned()
    workspaces = cache.workspaces(snapshot)
    with top:
        name = _pick(workspaces)
    if name is None:
        return None
    frame.has = cache.holds(snapshot)[name]
    return Place(snapshot, Scope(name, next(iter(workspaces[name]), None)))


def _with_settings(frame: Frame, top: DeltaGenerator) -> Asked | Place | None:
    counted = changed(_COUNTS)
    with frame.bar.popover(
        f"Settings · {counted}" if counted else "Settings", icon=":material/tune:", key="settings"
    ):
        asked = _asked(top, frame)
        st.button(
            "Back to defaults",
            on_click=back_to_defaults,
            args=(_RARE,),
            icon=":material/undo:",
            key="defaults",
        )
    if changed(_COUNTS) != counted and not st.session_state.get(_COUNTED):
        st.session_state[_COUNTED] = True  # a link may name defaults, which are known only now
        st.rerun()
    st.session_state[_COUNTED] = False
    return asked


def _asked(top: DeltaGenerator, frame: Frame) -> Asked | Place | None:
    """Draw the settings and the workspace's name in their containers.

    Returns:
        The workspace alone if it cannot fill the page, but a section of the page needs no workspace.
    """
    forget_defaults()
    measure, rest, differing, foot = (st.container() for _ in range(4))
    with foot:
        snapshot = _snapshot()
    workspaces = cache.workspaces(snapshot)
    with top:
        collection = _pick(workspaces)
    if collection is None:
        return None
    frame.has = has = cache.holds(snapshot)[collection]
    page, place = current_page(), Place(snapshot, Scope(collection))
    if page.needs is not None and page.needs not in has:
        if page.free:
            return place
        raise Lacking(place, page.needs)
    with rest:
        scope, offered = _scope(snapshot, collection, workspaces[collection])
    if (sets := len(workspaces[collection])) > 1:
        about = "Settings chooses another."
        top.caption(plain(f"Golden set {scope.golden_set_id}, one of {sets}"), help=about)
    with measure:
        chosen = {"measure": _quality(offered).name, **answering(offered)}
    with rest:
        chosen |= _latency(offered, snapshot.revision, scope)
    with foot:
        books = cache.books()
        book = books[pick_asked("prices", books, usual=next(iter(books)))]
        chosen |= {"prices": book.name, "price": prices.changes(book), "revision": snapshot.revision}
    with differing:
        question = Question(
            collection=collection,
            golden_set=scope.golden_set_id,
            runs=list(scope.run_ids),
            cluster_by=cluster_by(snapshot, scope),
            **chosen,
        )
        asked = compare(question, snapshot, book, scope=scope, chosen=Asking(), reads=READS)
        scope, table = asked.narrowed.scope, asked.narrowed.table
        drawn = judge_noise(snapshot, scope, asked.quality)
        band = alike(table, asked.quality)
        question = replace(question, judge_noise=drawn, **band, **running_stack(snapshot, scope, table))
    return Asked(question, asked, decided(question, asked).table, _newest())


def _taken(table: pl.DataFrame) -> str | None:
    """Return the run that a person took, or None if the URL names none of this workspace."""
    asked = str(st.session_state.get(TAKE) or "")
    try:
        return taken(table, asked) if asked else None
    except UnknownNameError:
        return None


def _pinned() -> Snapshot:
    """Return the data as of the URL's revision."""
    asked = st.query_params.get("rev", LATEST)
    known = asked.isdigit() and 0 < int(asked) <= cache.store().revision()
    return cache.snapshot(int(asked) if known else None)


def _snapshot() -> Snapshot:
    latest = cache.store().revision()
    earlier = [str(number) for number in range(latest, max(0, latest - _REVISIONS_SHOWN), -1)]
    asked = str(st.query_params.get("rev", LATEST))
    if asked.isdigit() and 0 < int(asked) <= latest and asked not in earlier:
        earlier.append(asked)
    chosen = pick_asked("revision", [LATEST, *earlier])
    return cache.snapshot(None if chosen == LATEST else int(chosen))


def go_to_workspace(collection_id: str) -> None:
    """Show another workspace, at the newest data, from the next script run on."""
    st.session_state[NEXT] = collection_id


def _move() -> None:
    """Apply `go_to_workspace`, before any widget is drawn."""
    wanted = st.session_state.pop(NEXT, None)
    if wanted is not None:
        st.session_state["ws"] = wanted
        _forget_dependent()
        show_newest()


def show_newest() -> None:
    """Show the newest data, whatever revision the URL pins (a callback)."""
    st.session_state["rev"] = LATEST
    address.put({"rev": None})


def _forget_dependent() -> None:
    """Forget settings of the old workspace, as a new one has other runs and other ranges."""
    for key, setting in SETTINGS.items():
        if setting.dependent:
            st.session_state.pop(key, None)
            st.session_state.pop(KEPT + key, None)  # otherwise a page would choose it again on arrival
            address.put({key: None})
    turn(st.session_state.get(_SHOWN), st.session_state.get("ws"))


def _pick(workspaces: Mapping[str, tuple[str, ...]]) -> str | None:
    """Draw the choice of the workspace; None while there is none."""
    names = list(workspaces)
    if not names:
        return None
    if st.session_state.get("ws", names[0]) not in workspaces:  # it was deleted
        _forget_dependent()
    choice = ASKED["collection"].choice
    about = "One collection: results on different corpora never share a chart."
    listed = [
        f"- {plain(key)}: {plain(said)}"
        for key, said in titled(cache.snapshot(None), names[:_LISTED])
        if said
    ]
    # Without a default every URL names its workspace, as the first may be another one tomorrow.
    still_offered(choice.key, names)
    if choice.key not in st.query_params:
        st.session_state.setdefault(choice.key, names[0])
    name = st.selectbox(
        choice.label,
        names,
        index=None,
        on_change=_forget_dependent,
        help="\n".join([about, "", *listed]).strip(),
        **linked(choice.key),
    )
    name = names[0] if name is None else name
    st.session_state[_SHOWN] = name
    return name


def _scope(snapshot: Snapshot, collection: str, golden: tuple[str, ...]) -> tuple[Scope, Choices]:
    golden_set = golden[0] if golden else None
    if len(golden) > 1:
        golden_set = pick_asked("golden_set", golden)
    whole = Scope(collection, golden_set)
    offered = cache.offered(snapshot, whole)
    chosen: list[str] = []
    if 1 < len(offered.runs) <= _RUNS_LISTED:
        if "runs" in st.session_state:  # another session may have deleted some
            st.session_state["runs"] = [name for name in st.session_state["runs"] if name in offered.runs]
        choice, every = ASKED["runs"].choice, list(offered.runs)
        words = f"all {len(every)}"
        chosen = st.multiselect(choice.label, every, placeholder=words, **bound(choice.key, []))
    return Scope(collection, golden_set, tuple(offered.runs[name] for name in chosen)), offered


def _quality(offered: Choices) -> Quality:
    left, right = st.columns([3, 2])
    choice = ASKED["measure"].choice
    asked = (str(st.session_state.get(choice.key, "")), st.query_params.get(choice.key, ""))
    name = left.selectbox(
        choice.label,
        [*offered.measures, *(name for name in offered.unsaid if name in asked)],
        **bound(choice.key, offered.measures[0]),
        help="  \n".join(
            f"**{name}** {REGISTRY[name].text}" for name in offered.measures if name in REGISTRY
        ),
    )
    cutoffs = offered.cutoffs(name)
    usual = offered.usual_cutoff(name)
    k = right.selectbox("at K", cutoffs, index=cutoffs.index(usual), help="The cutoff.", **bound("k", usual))
    return Quality(parameters(name) if offered.computed else name, k)


def _latency(offered: Choices, revision: int, within: Scope) -> dict[str, Any]:
    """Draw the latency settings, and return them by their names in a question."""
    percentile: Percentile = pick_asked("on", get_args(Percentile), few=True, usual=offered.percentile)
    scopes: list[LatencyScope] = [of for of in get_args(LatencyScope) if offered.reranked or of != "rerank"]
    scope = pick_asked("latency", scopes, few=True)
    modelled = generation(revision, within) if scope == "end-to-end" else None
    return {"on": percentile, "latency": scope, "generation": modelled}
