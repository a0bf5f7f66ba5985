"""The workspace that every page works on, as the sidebar sets it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NoReturn

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.analysis.workspace.choices import ALL, Has
from core.analysis.workspace.view import Place, View
from core.ui.links import link
from core.views.pages import PAGES, Page

_SLOT, _EMPTIED = "_view", "_emptied"
_PAGE, _ARRIVED, _FRAME = "_page", "_arrived", "_frame"


@dataclass
class Frame:
    """The places that stand on every page, above what is its own."""

    head: DeltaGenerator  # the answer; what is drawn there takes the place of what was
    bar: DeltaGenerator  # buttons beside the answer
    numbers: DeltaGenerator  # the numbers of the answer, where a page has cards, below it
    strip: DeltaGenerator  # the limits, below those
    headed: bool = False  # whether the page has said its answer
    question: str = ""  # what the open section answers; stands above the answer
    has: Collection[Has] = ALL  # what the workspace can fill pages with


def remember(place: Place | None, *, emptied: bool = False) -> None:
    """Keep the workspace of this script run for the page."""
    st.session_state[_SLOT] = place
    st.session_state[_EMPTIED] = emptied


def arrive(page: Page, frame: Frame) -> None:
    """Note which page this script run shows, and where."""
    st.session_state[_FRAME] = frame
    st.session_state[_ARRIVED] = st.session_state.get(_PAGE) != page.name
    st.session_state[_PAGE] = page.name


class PageEnd(Exception):  # noqa: N818 - nothing went wrong
    """The page has shown all that it has to show."""


class Empty(PageEnd):
    """The store holds nothing."""


class Lacking(PageEnd):
    """The workspace cannot fill the page."""

    def __init__(self, place: Place, need: Has) -> None:
        self.place, self.need = place, need


def end() -> NoReturn:
    """End the page here; what stands around it is still drawn, which `st.stop` would prevent."""
    raise PageEnd


def current_page() -> Page:
    """Return the page that this script run shows."""
    return PAGES[st.session_state[_PAGE]]


def just_arrived() -> bool:
    """Tell whether the page of this script run is another than that of the run before."""
    return bool(st.session_state.get(_ARRIVED))


def current_frame() -> Frame:
    """Return the places of this script run that stand on every page."""
    frame: Frame = st.session_state[_FRAME]
    return frame


def find_place() -> Place | None:
    """Return the workspace, or None while the store is empty."""
    place: Place | None = st.session_state[_SLOT]
    return place


def here(choice: str) -> tuple[str, str]:
    """Tie a choice to the workspace of this script run, for it means nothing in another."""
    place = find_place()
    return ("" if place is None else place.scope.collection_id, choice)


def chosen_here(slot: str) -> str:
    """Return the choice that a slot of the session has of this workspace (see `here`); empty for none."""
    workspace, choice = st.session_state.get(slot, ("", ""))
    return choice if (workspace, choice) == here(choice) else ""


def find_view() -> View | None:
    """Give the workspace with what is asked of it; None while the store is empty, and on pages about data."""
    place = find_place()
    return place if isinstance(place, View) else None


def current_view(*, runs: bool = True) -> View:
    """Return the workspace; where it cannot fill the page, the page shows what to do instead and stops.

    Args:
        runs: Whether the page needs runs; else an empty store alone stops it.
    """
    view, place, need = find_view(), find_place(), current_page().needs
    if view is None and place is not None and need is not None:
        raise Lacking(place, need)
    if view is None and st.session_state[_EMPTIED]:
        st.info(
            "Every collection was deleted. Page Library restores them; earlier revisions still show them.",
            icon=":material/delete:",
        )
        link("library", "Restore what was deleted", ":material/restore_from_trash:")
        end()
    if view is None:
        raise Empty
    if runs and view.table.is_empty() and view.compared.apart.is_empty():
        raise Lacking(view, "results")
    return view
