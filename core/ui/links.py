"""Ways to other pages, by what Streamlit was given for each: most have no script of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

import streamlit as st

from core.ui import address
from core.views.pages import PAGES

SCRIPTS = "_scripts"  # Slot of the session: what Streamlit shows, by the name of the page


def go(name: str, /, **asked: str | Iterable[str]) -> NoReturn:
    """Show another page, with these settings and those that every page reads."""
    st.switch_page(st.session_state[SCRIPTS][name], query_params=address.leave(asked))


def link(name: str, label: str = "", icon: str = "") -> None:
    """Draw a link to a page, by default under its own name and with its own icon."""
    page, script = PAGES[name], st.session_state[SCRIPTS][name]
    label, icon = label or page.title, icon or page.icon
    st.page_link(script, label=label, icon=icon, query_params=address.carried())
