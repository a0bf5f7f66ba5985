"""Links to other pages, from the Streamlit page objects: most have no separate script."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NoReturn

import streamlit as st

from core.ui import address
from core.views.pages import PAGES, SECTION

SCRIPTS = "_scripts"  # Session slot: Streamlit's page objects, by page name


def go(name: str, /, **asked: str | Iterable[str]) -> NoReturn:
    """Show another page, with these settings and those that every page reads."""
    st.switch_page(st.session_state[SCRIPTS][name], query_params=address.leave(asked))


def link(
    name: str,
    label: str = "",
    icon: str = "",
    section: str = "",
    carried: Mapping[str, list[str]] | None = None,
) -> None:
    """Draw a link to a page or a section of it, by default under its own name and with its own icon.

    Args:
        carried: The settings included in every link, if already known.
    """
    page, script = PAGES[name], st.session_state[SCRIPTS][name]
    carried = address.carried() if carried is None else carried
    asked = {**carried, **({SECTION: section} if section else {})}
    st.page_link(script, label=label or page.title, icon=icon or page.icon, query_params=asked)
