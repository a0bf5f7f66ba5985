"""The workspace that every page works on, as set in the sidebar."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NoReturn

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.analysis.workspace.choices import ALL, Has
from core.analysis.workspace.view import Place, View
from core.ui.address.links import link
from core.views.pages import PAGES, Page

_SLOT, _EMPTIED = "_view", "_emptied"
_PAGE, _ARRIVED, _FRAME = "_page", "_arrived", "_frame"


@dataclass
class Frame:
    """The containers present on every page, above its own content."""

    head: DeltaGenerator  # the answer; a new one replaces the old one
    bar: DeltaGenerator  # buttons beside the answer
    notice: DeltaGenerator  # what of the URL could not be followed, above all
    numbers: DeltaGenerator = field(init=False)  # the numbers of the answer, if a page has cards, below it
    strip: DeltaGenerator = field(init=False)  # the limits, below those
    headed: bool = False  # whether the page has drawn its answer
    ended: bool = False  # whether what depends on the page's widgets was drawn
    question: str = ""  # the question of the open section; shown above the answer
    has: Collection[Has] = ALL  # the data that the workspace has for pages

    def begin(self) -> None:
        """Draw the containers of the part that a move of a limit draws again, at the current place."""
        self.numbers = st.container(key="numbers", horizontal=True, gap="small")
        self.strip = st.container(key="strip")
        self.headed = self.ended = False
        self.question = ""


def remember(place: Place | None, *, emptied: bool = False) -> None:
    """Keep the workspace of this script run for the page."""
    st.session_state[_SLOT] = place
    st.session_state[_EMPTIED] = emptied


def arrive(page: Page, frame: Frame) -> None:
    """Record the page of this script run, and its containers."""
    st.session_state[_FRAME] = frame
    st.session_state[_ARRIVED] = st.session_state.get(_PAGE) != page.name
    st.session_state[_PAGE] = page.name


class PageEnd(Exception):  # noqa: N818 - nothing went wrong
    """The page has shown all its content."""


class Empty(PageEnd):
    """The store is empty."""


class Lacking(PageEnd):
    """The workspace cannot fill the page."""

    def __init__(self, place: Place, need: Has) -> None:
        self.place, self.need = place, need


def end() -> NoReturn:
    """End the page here; the frame around it is still drawn, which `st.stop` would prevent."""
    raise PageEnd


def current_page() -> Page:
    """Return the page of this script run."""
    return PAGES[st.session_state[_PAGE]]


def just_arrived() -> bool:
    """Return whether this script run shows another page than the run before."""
    return bool(st.session_state.get(_ARRIVED))


def current_frame() -> Frame:
    """Return the containers of this script run that are on every page."""
    frame: Frame = st.session_state[_FRAME]
    return frame


def find_place() -> Place | None:
    """Return the workspace, or None while the store is empty."""
    place: Place | None = st.session_state[_SLOT]
    return place


def here(choice: str) -> tuple[str, str]:
    """Tie a choice to the workspace of this script run, as it is meaningless in another."""
    place = find_place()
    return ("" if place is None else place.scope.collection_id, choice)


def chosen_here(slot: str) -> str:
    """Return a session slot's choice for this workspace (see `here`), or "" if there is none."""
    workspace, choice = st.session_state.get(slot, ("", ""))
    return choice if (workspace, choice) == here(choice) else ""


def find_view() -> View | None:
    """Return the workspace with its question; None while the store is empty, and on pages about data."""
    place = find_place()
    return place if isinstance(place, View) else None


def current_view(*, runs: bool = True) -> View:
    """Return the workspace; if it cannot fill the page, the page shows what to do instead and stops.

    Args:
        runs: Whether the page needs runs; otherwise only an empty store stops it.
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
