"""Ways to other pages, by what Streamlit was given for each: most have no script of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

import streamlit as st

from core.views.pages import PAGES

SCRIPTS = "_scripts"  # Slot of the session: what Streamlit shows, by the name of the page


def go(name: str, /, **asked: str | Iterable[str]) -> NoReturn:
    """Show another page, with these settings alone: None would refuse what widgets hold."""
    st.switch_page(st.session_state[SCRIPTS][name], query_params=asked)


def link(name: str, label: str = "", icon: str = "") -> None:
    """Draw a link to a page, by default under its own name and with its own icon."""
    page = PAGES[name]
    st.page_link(st.session_state[SCRIPTS][name], label=label or page.title, icon=icon or page.icon)
