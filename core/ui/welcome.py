"""What a visitor meets who has nothing yet: the first visit, an empty store, a page that cannot be filled."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from core.jobs import State
from core.jobs.job import STATUS, Job, begin, new_folder
from core.ui import cache, door
from core.ui.pages import PAGES
from core.ui.state import SETTINGS
from core.ui.view import Empty, Lacking, PageEnd, current_page, find_place
from core.ui.workspace import go_to_workspace
from core.views.text import plain
from core.views.workspace.choices import lacking

_VISITED, _HINT, _JOB = "_visited", "_hint", "_demo_job"
_FIRST, _SINGLE = "clq-paper", "python-docs"
_LIMITS = {"sla": 600.0, "budget": 2.5}  # Limits under which the published stacks differ


def first_visit() -> None:
    """Where at most its workspace was asked for, open the published evidence with limits that tell.

    A link that was shared pins its revision, so one without limits means that there are none.
    """
    if st.session_state.setdefault(_VISITED, False):
        return
    st.session_state[_VISITED] = True
    asked = SETTINGS.keys() & st.query_params.keys()
    plain_link = asked == {"ws"} and st.query_params["ws"] == _FIRST
    if current_page() is not next(iter(PAGES.values())) or (asked and not plain_link):
        return
    if _FIRST in cache.workspaces(cache.snapshot(None)):
        st.session_state.update({"ws": _FIRST, **_LIMITS, _HINT: not asked})
        # Before the widgets are bound: else the address, and so a link, would lack them until one is moved.
        st.query_params.update({"ws": _FIRST, **{key: f"{value:g}" for key, value in _LIMITS.items()}})


def hint() -> None:
    """Say in three steps what to do, until it is dismissed."""
    if not st.session_state.get(_HINT):
        return
    with st.container(border=True, gap="xsmall", key="hint"):
        st.caption(
            "**New here?**  \n1 · Move a limit: the choice follows.  \n"
            "2 · Click a mark to see its stack.  \n3 · Share the view."
        )
        place, row = find_place(), st.container(horizontal=True, gap="xsmall")
        if place is not None and _SINGLE in cache.holds(place.snapshot):
            about = f"Opens {_SINGLE}, whose stacks were measured query by query."
            row.button("Single queries", on_click=go_to_workspace, args=(_SINGLE,), help=about)
        row.button("Got it", on_click=_dismiss)


def _dismiss() -> None:
    st.session_state[_HINT] = False


def way_out(reason: PageEnd) -> None:
    """Where a page has ended because there is nothing to show on it, say why and lead on."""
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
        for other in (PAGES["add"], *([PAGES["run"]] if lack.need == "answers" else [])):
            st.page_link(other.file, label=other.title, icon=other.icon)


def _fill_store() -> None:
    """Offer the three ways to results: the demo, which is loaded here, one's own, and a new evaluation."""
    if _JOB in st.session_state:
        _watch()
        return
    st.info("The store is empty. Three ways to results:", icon=":material/inbox:")
    why_not = door.forbidden()
    with st.container(horizontal=True, vertical_alignment="center"):
        label = "Load the demo"
        st.button(label, on_click=_begin, type="primary", disabled=bool(why_not), help=why_not or None)
        for page in (PAGES["add"], PAGES["run"]):
            st.page_link(page.file, label=page.title, icon=page.icon)
    st.caption("The demo: the figures of the CLQ paper, and 82 stacks measured on this machine in seconds.")


def _begin() -> None:
    door.require()
    store = Path(cache.store().path)
    folder = new_folder(store.absolute().parent / "imports")
    command = ["--store", str(store), "demo", "--status", str(folder / STATUS)]
    st.session_state[_JOB] = begin(folder, "The demo", command)


@st.fragment(run_every=0.5)
def _watch() -> None:
    """Progress, looked at twice a second."""
    job: Job = st.session_state[_JOB]
    status = job.status()
    if status.state is State.RUNNING:
        st.progress(status.share if status.total else 0.0, plain(f"The demo: {status.stage or 'starting'}"))
        return
    del st.session_state[_JOB]
    job.see()
    if status.state is State.FINISHED:
        st.session_state[_VISITED] = False  # what the first visit shows is there now
        st.rerun()
    st.error(plain(status.message or str(status.state)), icon=":material/error:")
