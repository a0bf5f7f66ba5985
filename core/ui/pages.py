"""The way between the pages: which one the address names, old addresses, and the list in the sidebar."""

from __future__ import annotations

from collections.abc import Callable, Collection
from copy import copy
from typing import Any

import streamlit as st

from core.analysis.workspace.choices import LACKS, Has
from core.paths import ROOT
from core.ui import address
from core.ui.links import SCRIPTS, go, link
from core.ui.state import GONE
from core.ui.view import current_frame, current_page, find_place
from core.views.pages import GROUPS, MOVED, PAGES, SECTION, Page, now_at


def way(page: Page, label: str, section: str = "", **settings: object) -> None:
    """Draw a way to a section of a page, with settings; a link, where nothing has to be set before."""
    update, here = st.session_state.update, page is current_page()
    if not here and not settings:
        link(page.name, label, section=section)
        return
    if here and section:  # no other script begins, which could set the choice before it is drawn
        settings[SECTION] = section
    if st.button(label, icon=page.icon, type="tertiary", on_click=update, kwargs=settings) and not here:
        go(page.name, **({SECTION: section} if section else {}))


def pick_section(page: Page) -> str:
    """Draw the choice between the sections of a page; what few need stands behind "More"."""
    state, place = st.session_state, find_place()
    if state.get(SECTION, page.sections[0]) not in page.sections:  # one of another page
        del state[SECTION]
    collection = "" if place is None else place.scope.collection_id
    behind = page.behind(None if place is None else place.snapshot, collection)
    opened = st.query_params.get(SECTION)
    bar = st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key="sections")
    chosen: str = bar.segmented_control(
        "Section",
        [name for name in page.sections if name not in behind or name == opened],
        default=page.sections[0],
        required=True,
        key=SECTION,
        bind="query-params",
        label_visibility="collapsed",
    )
    if more := [name for name in behind if name != chosen]:
        bar.menu_button("More", more, type="tertiary", key=_MORE, on_click=_open_further)
    current_frame().question = page.question(chosen)
    return chosen


_MORE = "more_sections"


def _open_further() -> None:
    """Open the section that was picked behind "More" (a callback)."""
    st.session_state[SECTION] = st.session_state[_MORE]


_ROOT = "root"  # What the first page is called inside; Streamlit serves it at the root of the address alone


_OLD = "_old_scripts"  # Slot of the session, as SCRIPTS: made once, for each looks for its file


_OWN = {path.stem: path for path in (ROOT / "pages").glob("*.py")}
"""Scripts of pages that draw something by hand, by name; looked up once, not with every move of a slider."""


def open_page(sections: Callable[[], None]) -> tuple[Page, Any]:
    """Tell Streamlit the pages; an address of the last release goes on to where its page is now.

    Args:
        sections: What draws a page that has no script of its own in pages/.

    Returns:
        The page, and what draws it once: of this run alone, for the run before it may not have ended yet.
    """
    if SCRIPTS not in st.session_state:
        st.session_state[SCRIPTS], st.session_state[_OLD] = _scripts(sections)
    scripts = st.session_state[SCRIPTS]
    opened = st.navigation([*scripts.values(), *st.session_state[_OLD]], position="hidden")
    if now := now_at(opened.url_path, st.query_params.get(SECTION, "")):
        page, section = now
        kept = (key for key in st.query_params if key != SECTION and key not in GONE)
        asked = {key: st.query_params.get_all(key) for key in kept}
        st.switch_page(scripts[page.name], query_params=asked | ({SECTION: [section]} if section else {}))
    name = opened.url_path or next(iter(PAGES))
    return PAGES[name], copy(scripts[name])


def _scripts(sections: Callable[[], None]) -> tuple[dict[str, Any], list[Any]]:
    """Return what Streamlit shows of each page, and of each address of the last release."""
    first = next(iter(PAGES))
    scripts = {
        page.name: st.Page(
            _OWN.get(page.name, sections),
            title=page.title,
            url_path=_ROOT if page.name == first else page.name,
            default=page.name == first,
        )
        for page in PAGES.values()
    }
    return scripts, [st.Page(_moved, title=name, url_path=name, visibility="hidden") for name in MOVED]


def _moved() -> None:
    """Stand for a page that has another address now; nothing runs it."""


def links(has: Collection[Has]) -> None:
    """Draw the pages by their groups; those that the workspace cannot fill are dimmed, with the reason."""
    carried = address.carried()
    for group, pages in GROUPS.items():
        st.caption(group)
        for page in pages:
            label = ""
            if page.needs and page.needs not in has:
                label = f":gray[{page.title}] :small[:gray[*{LACKS[page.needs]}*]]"
            link(page.name, label, carried=carried)
