"""The way between the pages: which one the address names, old addresses, and the list in the sidebar."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import streamlit as st

from core.ui.pages import GROUPS, MOVED, PAGES, SECTION, Page
from core.views.workspace.choices import LACKS, Has

_ROOT = "root"
"""What the first page is called inside; Streamlit serves it at the root of the address alone."""


def open_page() -> tuple[Page, Any]:
    """Tell Streamlit the pages; an address of the last release goes on to where its page is now.

    Returns:
        The page that the address names, with its script.
    """
    first = next(iter(PAGES))
    scripts = {
        page.name: st.Page(
            page.file,
            title=page.title,
            url_path=_ROOT if page.name == first else page.name,
            default=page.name == first,
        )
        for page in PAGES.values()
    }
    old = [st.Page(_moved, title=name, url_path=name, visibility="hidden") for name in MOVED]
    opened = st.navigation([*scripts.values(), *old], position="hidden")
    if opened.url_path in MOVED:
        page, section = MOVED[opened.url_path]
        asked = {key: st.query_params.get_all(key) for key in st.query_params}
        st.switch_page(scripts[page.name], query_params=asked | ({SECTION: [section]} if section else {}))
    name = opened.url_path or first
    return PAGES[name], scripts[name]


def _moved() -> None:
    """Stand for a page that has another address now; nothing runs it."""


def links(has: Collection[Has]) -> None:
    """Draw the pages by their groups; those that the workspace cannot fill are dimmed, with the reason."""
    for group, pages in GROUPS.items():
        with st.container(gap=None):
            st.caption(group)
            for page in pages:
                label = page.title
                if page.needs and page.needs not in has:
                    label = f":gray[{label}] :small[:gray[*{LACKS[page.needs]}*]]"
                st.page_link(page.file, label=label, icon=page.icon)
