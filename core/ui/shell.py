"""The frame around every page: answer, limits, buttons, the link, errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import RerunException, get_script_run_ctx

from core.errors import ClqError, refusal
from core.ui import cache
from core.ui.pages import Page
from core.ui.serving import bound_handles, tame_collector
from core.ui.share import offer, share
from core.ui.state import LATEST, SETTINGS, problems, unreadable
from core.ui.view import Frame, Lacking, PageEnd, Place, arrive, find_place, find_view, remember
from core.ui.welcome import first_visit, hint, way_out
from core.ui.workspace import open_workspace
from core.views.decision.words import FORMS
from core.views.library.inventory import gone
from core.views.link import RULES, pinned
from core.views.text import count, plain

_ASKED = "_asked"

ICON = str(Path(__file__).with_name("icon.png"))
"""The page's icon; a local file, since an icon by name would be fetched from elsewhere."""
_STYLE = Path(__file__).with_name("frame.css")


@contextmanager
def shell(page: Page) -> Iterator[None]:
    """Run a page inside the frame.

    Workspace, settings and limits come first, then the page, then what needs to know what the page's widgets
    took: the link and the notice about an address that could not be followed.
    """
    bound_handles()
    st.logo(ICON, size="large")
    st.html(_STYLE)
    _read_address()
    notice = st.empty()
    top = st.container(horizontal=True, vertical_alignment="top", key="top")
    frame = Frame(
        top.container(gap="xsmall", key="answer"),
        top.container(horizontal=True, width="content", key="bar"),
        st.container(key="numbers", horizontal=True, gap="small"),
        st.container(key="strip"),
    )
    arrive(page, frame)
    started = again = False
    remember(None)  # until the workspace is known, nothing may start the app over or use an old one
    try:
        first_visit()
        place = open_workspace(frame)
        remember(place, emptied=place is None and bool(_gone().get("ws")))
        with st.sidebar:
            hint()
        _newer(place)
        started = True
        yield
    except PageEnd as reason:
        if isinstance(reason, Lacking) and not started:
            _newer(reason.place)
        way_out(reason)
    except ClqError as error:
        show_error(error)
    except OSError as error:
        if (said := refusal(error)) is None:
            raise
        show_error(said)
    except RerunException:
        again = True
        raise
    finally:  # also when a page has stopped early
        if not again:  # else it would be gone before anybody saw it
            _notice(notice)
        if not frame.headed:
            frame.head.title(page.title, anchor=False)
        _take_away(frame.bar, page)
        tame_collector(page.name)
    if not started:
        st.stop()  # without it a page that never started would count as an error of its own


def _read_address() -> None:
    """Keep what the address asks for, and take out of it what no widget could be given."""
    asked = {key: st.query_params.get_all(key) for key in st.query_params}
    st.session_state.setdefault(_ASKED, asked)
    refused = unreadable(asked)
    context = get_script_run_ctx()
    if not refused or context is None:
        return
    # st.query_params lets go of nothing that a widget is bound to, as after a step back in the browser.
    with context.session_state.query_params() as address:
        for key in refused[1:]:
            address.discard_param_no_forward_msg(key)
        address.remove_param(refused[0])
        address.set_initial_query_params_from_current()


def show_error(error: ClqError) -> None:
    """Show what was found, where, and what to do; never a traceback, never markup from the message."""
    st.error(plain(str(error)), icon=":material/error:")


def _notice(spot: DeltaGenerator) -> None:
    """Once per session: say what of the opened address could not be followed."""
    asked = st.session_state.pop(_ASKED, None)
    st.session_state[_ASKED] = None
    if asked:
        values = {key: st.session_state[key] for key in SETTINGS if key in st.session_state}
        place = find_place()
        if place is not None:  # a single golden set is used without a list of them
            values.setdefault("gs", place.scope.golden_set_id or "")
        found = problems(asked, values, _gone())
        if found:
            spot.warning(
                f"Part of this link could not be followed; defaults are shown: {plain('; '.join(found))}.",
                icon=":material/link_off:",
            )


def _gone() -> Mapping[str, Sequence[str]]:
    """What an address may name that was deleted; nothing where the store cannot be read, which is said."""
    place = find_place()
    with suppress(ClqError):
        return gone(cache.snapshot(None) if place is None else place.snapshot)
    return {}


def _newer(place: Place | None) -> None:
    """Say that the view is pinned to older data, with one click to move on."""
    newer = cache.store().revision() - place.snapshot.revision if place else 0
    if place and newer > 0:
        bar = st.container(horizontal=True, vertical_alignment="center")
        bar.info(
            f"Pinned to revision {place.snapshot.revision}; {count(newer, 'newer revision')} since.",
            icon=":material/update:",
        )
        bar.button("Show the newest data", on_click=_to_latest)


def _to_latest() -> None:
    st.session_state["rev"] = LATEST


def _take_away(bar: DeltaGenerator, page: Page) -> None:
    """The link to this view of this data, and on the pages that decide the record of the decision."""
    view = find_view()
    if view is None:
        return
    if page.records:
        held = set(st.query_params)
        asked = {key: st.query_params.get_all(key) for key in SETTINGS if key in held}
        # For a moment after a change of the page the settings of the one before are still there.
        words = st.session_state.get("rule") if "rule" in page.records else None
        weak = "form" in page.records and st.session_state.get("form") == FORMS[1]
        link = pinned(st.context.url or "", asked, view.snapshot.revision)
        offer(bar, view, link, RULES.get(str(words), "quality"), weak=weak)
    with bar:
        share(view.snapshot.revision)
