"""Navigation between pages: the page named in the URL, old addresses, and the list in the sidebar."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from copy import copy
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from core.analysis.workspace.choices import LACKS, Has
from core.paths import ROOT
from core.ui import address
from core.ui.address.links import SCRIPTS, go, link
from core.ui.address.state import GONE, LOST
from core.ui.view import current_frame, current_page, find_place
from core.views.pages import GROUPS, MOVED, PAGES, SECTION, Page, now_at


def way(page: Page, label: str, section: str = "", **settings: object) -> None:
    """Draw a link to a section of a page with settings; a plain one if nothing must be set first."""
    update, here = st.session_state.update, page is current_page()
    if not here and not settings:
        link(page.name, label, section=section)
        return
    if here and section:  # in the same script, which could not set the choice before it is drawn
        settings[SECTION] = section
    if st.button(label, icon=page.icon, type="tertiary", on_click=update, kwargs=settings) and not here:
        go(page.name, **({SECTION: section} if section else {}))


def pick_section(page: Page) -> str:
    """Draw the choice of a page's section; rarely used ones are behind "More"."""
    state, place = st.session_state, find_place()
    if state.get(SECTION, page.sections[0]) not in page.sections:  # a section of another page
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
    """Open the section picked behind "More" (a callback)."""
    st.session_state[SECTION] = st.session_state[_MORE]


_ADDRESS = re.compile(r"[\w-]{1,60}")
_ROOT = "root"  # Internal name of the first page, which Streamlit serves only at the root


_OLD = "_old_scripts"  # Session slot, like SCRIPTS: created once, as each one looks for its file


_OWN = {path.stem: path for path in (ROOT / "pages").glob("*.py")}
"""Scripts of pages with parts drawn by hand, by name; looked up once, not on every move of a slider."""


def open_page(sections: Callable[[], None]) -> tuple[Page, Any]:
    """Register the pages with Streamlit; an address of the last release redirects to its current page.

    Args:
        sections: Draws a page without a script in pages/.

    Returns:
        The page, and its script in this run, as the run before may not have ended; a copy of it runs once.
    """
    if SCRIPTS not in st.session_state:
        st.session_state[SCRIPTS], st.session_state[_OLD] = _scripts(sections)
    scripts = st.session_state[SCRIPTS]
    lost = _unknown_address()
    unknown = [st.Page(_moved, title=lost, url_path=lost, visibility="hidden")] if lost else []
    opened = st.navigation([*scripts.values(), *st.session_state[_OLD], *unknown], position="hidden")
    if lost and opened.url_path == lost:
        st.session_state[LOST] = lost
        asked = {key: st.query_params.get_all(key) for key in st.query_params}
        st.switch_page(next(iter(scripts.values())), query_params=asked)
    if now := now_at(opened.url_path, st.query_params.get(SECTION, "")):
        page, section = now
        kept = (key for key in st.query_params if key != SECTION and key not in GONE)
        asked = {key: st.query_params.get_all(key) for key in kept}
        st.switch_page(scripts[page.name], query_params=asked | ({SECTION: [section]} if section else {}))
    name = opened.url_path or next(iter(PAGES))
    return PAGES[name], copy(scripts[name])


def _unknown_address() -> str:
    """Return the name of the page in the address if there is no such page, otherwise ""."""
    context = get_script_run_ctx(suppress_warning=True)
    manager = None if context is None else context.pages_manager
    if manager is None or manager.intended_page_script_hash:
        return ""
    name = manager.intended_page_name or ""
    return name if _ADDRESS.fullmatch(name) and name not in {*PAGES, *MOVED, _ROOT} else ""


def _scripts(sections: Callable[[], None]) -> tuple[dict[str, Any], list[Any]]:
    """Return Streamlit's page object of each page, and of each address of the last release."""
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
    """Stand in for a page that has a new address; it never runs."""


def links(has: Collection[Has]) -> None:
    """Draw the pages by group; those that the workspace cannot fill are dimmed, with the reason."""
    carried = address.carried()
    for group, pages in GROUPS.items():
        st.caption(group)
        for page in pages:
            label = ""
            if page.needs and page.needs not in has:
                label = f":gray[{page.title}] :small[:gray[*{LACKS[page.needs]}*]]"
            link(page.name, label, carried=carried)
