"""The frame around every page: answer, limits, buttons, the link, errors.

It also draws the pages without data: the first visit, an empty store, a page that cannot be filled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from copy import copy
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.navigation.page import StreamlitPage
from streamlit.runtime.scriptrunner import RerunException

from core.analysis.workspace.choices import lacking
from core.analysis.workspace.view import Place, View
from core.errors import ClqError, refusal
from core.jobs import State
from core.jobs.job import STATUS, Launch, begin, new_folder
from core.ui import access, address, cache
from core.ui.address.links import link
from core.ui.address.state import (
    CARRIED,
    HANDED_ON,
    LATEST,
    LOST,
    SETTINGS,
    TAKE,
    UNMOVED,
    not_followed,
    problems,
    renewed,
    unreadable,
)
from core.ui.behind import Behind, steps
from core.ui.limits import TELLING
from core.ui.moves import PART, moved
from core.ui.serving import GARBAGE, TURNS, bound_handles, taking_turns
from core.ui.share import offer, share
from core.ui.view import (
    Empty,
    Frame,
    Lacking,
    PageEnd,
    arrive,
    current_page,
    find_place,
    find_view,
    just_arrived,
    remember,
)
from core.ui.workspace import (
    Asked,
    changed_since,
    go_to_workspace,
    limited,
    open_workspace,
    place_of,
    show_newest,
)
from core.views.decision.words import FORMS
from core.views.library.data import gone
from core.views.link import RULES, pinned
from core.views.pages import ADD, RUN, Page
from core.views.text import count, plain

_ASKED, _SAID = "_asked", "_asked_in_vain"
_VISITED, _HINT, _JOB = "_visited", "_hint", "_demo_job"

BEHIND = Behind(TURNS.rest, steps)
"""The precomputation of this process."""
ICON = str(Path(__file__).with_name("icon.png"))
"""The page's icon; a local file, since an icon by name would be fetched from elsewhere."""
_STYLE = Path(__file__).with_name("frame.css")


def shell(page: Page, script: StreamlitPage) -> None:
    """Run a page inside the frame.

    Workspace and settings come first; then, in a part that a move of a limit draws again, the limits, the
    page, and what depends on its widgets: the link and the notice about a URL that could not be followed.
    """
    bound_handles()
    st.logo(ICON, size="large")
    st.html(_STYLE)
    notice = st.empty()
    top = st.container(horizontal=True, vertical_alignment="top", key="top")
    answer = top.container(gap="xsmall", key="answer").empty()
    frame = Frame(answer, top.container(horizontal=True, width="content", key="bar"), notice)
    arrive(page, frame)
    address.begin(arrived=just_arrived())
    _read_address()
    remember(None)  # until the workspace is known, nothing may restart the app or use an old one
    with _framed(page, frame):
        _passed_over()
        _first_visit()
        asked = open_workspace(frame)
        remember(place_of(asked))
        with st.sidebar:
            _hint()
        _newer(place_of(asked))
        address.part()
        _inside(page, script, frame, asked)


@st.fragment(key=PART)
def _inside(page: Page, script: StreamlitPage, frame: Frame, asked: Asked | Place | None) -> None:
    """Draw the limits and the page under them; a move of a limit runs this alone."""
    with taking_turns() if moved() else nullcontext(), st.container(key="inside"):
        if moved():
            arrive(page, frame)
            address.begin(arrived=False)
        frame.begin()
        frame.notice.empty()  # room for later
        with _framed(page, frame):
            if moved() and changed_since(asked):
                st.rerun()
            place = limited(asked, frame)
            remember(place, emptied=place is None and bool(_gone().get("ws")))
            copy(script).run()  # which allows one run each


@contextmanager
def _framed(page: Page, frame: Frame) -> Iterator[None]:
    """Show how a page ends, and what depends on its widgets; nothing if the part inside did so."""
    again = whole = lacks = False
    try:
        yield
        whole = not page.settings or find_view() is not None
    except PageEnd as reason:
        lacks = isinstance(reason, Empty | Lacking)
        if isinstance(reason, Lacking) and find_place() is None:
            _newer(reason.place)
        _way_out(reason)
    except ClqError as error:
        show_error(error)
    except OSError as error:
        if (said := refusal(error)) is None:
            raise
        show_error(said)
    except RerunException:
        again = True
        raise
    finally:  # also if a page has stopped early
        if not frame.ended:
            frame.ended = True
            if not frame.headed:
                frame.head.title(page.title, anchor=False)
            _take_away(frame.bar, page)
            if not again:  # otherwise the notice would disappear before anybody saw it
                _notice(frame.notice, lacks=lacks)
                address.write(whole=whole)
            _drawn(page, find_view() if whole else None)


def _drawn(page: Page, view: View | None) -> None:
    """Let garbage be collected, and data for other pages be precomputed from a view."""
    GARBAGE.drawn(page.name)
    if view is not None:
        BEHIND.shown(view, repr(cache.table_key(view)))


def _read_address() -> None:
    """Record the URL's settings, update old ones, and drop those that no widget can take."""
    said = {key: st.query_params.get_all(key) for key in st.query_params}
    asked = renewed(said)
    waiting = st.session_state.setdefault(_ASKED, asked)
    if just_arrived():  # left by another page, if not changed since
        st.session_state[_ASKED] = {key: texts for key, texts in waiting.items() if asked.get(key) == texts}
    refused = unreadable(asked)
    new = {key: texts for key, texts in asked.items() if texts != said.get(key)}
    address.put(new | dict.fromkeys([*(said.keys() - asked.keys()), *refused]))


def show_error(error: ClqError) -> None:
    """Show the finding, its place and the remedy; never a traceback, never markup from the message."""
    st.error(plain(str(error)), icon=":material/error:")


def _notice(spot: DeltaGenerator, *, lacks: bool) -> None:
    """Show once the settings of the opened URL that could not be followed; the undecided ones wait.

    Args:
        lacks: Whether the page has nothing to show, and so has not asked its questions.
    """
    asked, shown = dict(st.session_state[_ASKED]), st.session_state.pop(_SAID, "")
    if name := st.session_state.pop(LOST, ""):
        _warn(spot, f"page “{name}”, which does not exist")
    for key in st.session_state.pop(HANDED_ON, ()):
        asked.pop(key, None)
    if st.session_state.pop(UNMOVED, False) and shown:
        _warn(spot, shown)
    if not asked:
        return
    of_others = (key for key in asked if not key.startswith("_"))  # which a plug-in's section may ask for
    held = frozenset(st.session_state)  # which refuses to be asked for some keys, such as none at all
    values = {key: st.session_state[key] for key in (*SETTINGS, *of_others) if key in held}
    place, view = find_place(), find_view()
    if place is not None:  # unlisted: a single golden set, data of a page without settings
        values.setdefault("gs", place.scope.golden_set_id or "")
        if view is not None and view.take is None:
            values[TAKE] = ""
        if asked.get("rev") not in (None, [LATEST]):
            values.setdefault("rev", place.snapshot.revision)
    later = {key for key in (SETTINGS if lacks else CARRIED) if view is None or not SETTINGS[key].rare}
    lost = problems(asked, values, _gone(), later)
    if lost:
        _warn(spot, not_followed(asked, lost))
    waits = later - values.keys() - lost.keys()
    st.session_state[_ASKED] = {key: texts for key, texts in asked.items() if key in waits}


def _warn(spot: DeltaGenerator, lost: str) -> None:
    spot.warning(f"Not followed: {plain(lost)}.", icon=":material/link_off:")
    st.session_state[_SAID] = lost


def _gone() -> Mapping[str, Sequence[str]]:
    """Return deleted things that a URL may name; empty if the store cannot be read."""
    place = find_place()
    with suppress(ClqError):
        return gone(cache.snapshot(None) if place is None else place.snapshot)
    return {}


def _passed_over() -> None:
    """Warn that the store's pointer names an older catalogue than the newest one beside it."""
    store = cache.store()
    newer = store.passed_over()
    if newer is not None:
        words = f"You see revision {store.revision()}, but {newer} is stored. Run `python -m core doctor`."
        st.warning(words, icon=":material/history:")


def _newer(place: Place | None) -> None:
    """Say that the view is pinned to older data, with a button to show the newest."""
    if place is None or cache.store().revision() <= place.snapshot.revision:
        return
    now, pinned_to = cache.snapshot(None), place.snapshot.revision
    # Changes to other workspaces affect no number here; pages about the data show them all.
    of = place.scope.collection_id if current_page().settings else None
    newer = now.revision - pinned_to if of is None else now.changes_of(of, pinned_to).height
    where = "" if of is None else " of this workspace"
    if newer:
        bar = st.container(horizontal=True, vertical_alignment="center")
        bar.info(
            f"Pinned to revision {pinned_to}; {count(newer, 'newer revision')}{where} since.",
            icon=":material/update:",
        )
        bar.button("Show the newest data", on_click=show_newest)


def _take_away(bar: DeltaGenerator, page: Page) -> None:
    """Draw the link to this view of this data, and on decision pages the record of the decision."""
    view = find_view()
    if view is None:
        return
    if page.records:
        held = set(st.query_params)
        asked = {key: st.query_params.get_all(key) for key in SETTINGS if key in held}
        asked["ws"] = [view.scope.collection_id]  # which the URL omits for the first one
        # For a moment after a page change the previous page's settings are still there.
        words = st.session_state.get("rule") if "rule" in page.records else None
        weak = "form" in page.records and st.session_state.get("form") == FORMS[1]
        link = pinned(st.context.url or "", asked, view.snapshot.revision)
        offer(bar, view, link, RULES.get(str(words), "quality"), weak=weak)
    with bar:
        share(view.snapshot.revision, view.scope.collection_id)


def _first_visit() -> None:
    """Open a demo workspace with informative limits on a page that shows limits, if the URL has no settings.

    A URL that names a workspace includes all of its limits: without any, none apply.
    """
    asked, page = SETTINGS.keys() & st.query_params.keys(), current_page()
    if st.session_state.setdefault(_VISITED, False) and (asked or not address.stepped()):
        return
    st.session_state[_VISITED] = True
    if asked or not page.limits:
        return
    there = cache.holds(cache.snapshot(None))
    fills = [name for name in TELLING if name in there and page.needs in (None, *there[name])]
    if first := next(iter(fills), None):
        st.session_state[_HINT] = True
        address.put({"ws": first, **TELLING[first]})


def _hint() -> None:
    """Explain the next actions in three steps, until dismissed."""
    if not st.session_state.get(_HINT):
        return
    with st.container(border=True, gap="xsmall", key="hint"):
        st.caption(
            "**New here?**  \n1 · The limit shown is an example: drag it, the choice follows.  \n"
            "2 · Click a mark to see its stack.  \n3 · Share the view."
        )
        st.button("Got it", on_click=st.session_state.update, kwargs={_HINT: False})


def _way_out(reason: PageEnd) -> None:
    """Say why a page has nothing to show, and offer what to do."""
    if isinstance(reason, Empty):
        _fill_store()
    elif isinstance(reason, Lacking):
        _cannot_fill(reason)


def _cannot_fill(lack: Lacking) -> None:
    name, page = lack.place.scope.collection_id, current_page()
    st.info(plain(lacking(name, lack.need)), icon=":material/inbox:")
    fills = [other for other, has in cache.holds(lack.place.snapshot).items() if lack.need in has]
    with st.container(horizontal=True, vertical_alignment="center"):
        if fills:
            label = f"{page.title} in {plain(fills[0])}"
            st.button(label, on_click=go_to_workspace, args=(fills[0],), icon=page.icon, key="fills")
        for other in (ADD, *([RUN] if lack.need == "answers" else [])):
            link(other.name)


def _fill_store() -> None:
    """Offer the three sources of results: the demo, which is loaded here, own files, and a new evaluation."""
    if _JOB in st.session_state:
        _watch()
        return
    st.info("The store is empty. Three ways to results:", icon=":material/inbox:")
    why_not = access.forbidden()
    with st.container(horizontal=True, vertical_alignment="center"):
        label = "Load the demo"
        st.button(label, on_click=_begin, type="primary", disabled=bool(why_not), help=why_not or None)
        for page in (ADD, RUN):
            link(page.name)
    st.caption(
        "The demo: stacks of 0.04 ms to 0.7 s over Python documentation, and the figures of the CLQ paper."
    )


def _begin() -> None:
    access.require()
    store = Path(cache.store().path)
    folder = new_folder(store.absolute().parent / "imports")
    command = ["--store", str(store), "demo", "--status", str(folder / STATUS)]
    st.session_state[_JOB] = begin(folder, "The demo", command)


@st.fragment(run_every=0.5)
def _watch() -> None:
    """Draw progress, refreshed twice a second."""
    job: Launch = st.session_state[_JOB]
    status = job.status()
    if status.state is State.RUNNING:
        st.progress(status.share if status.total else 0.0, plain(f"The demo: {status.stage or 'starting'}"))
        return
    del st.session_state[_JOB]
    job.see()
    if status.state is State.FINISHED:
        st.session_state[_VISITED] = False  # the content for the first visit is there now
        st.rerun()
    st.error(plain(status.message or str(status.state)), icon=":material/error:")
