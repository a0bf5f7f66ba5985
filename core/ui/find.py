"""The search of the sidebar: Ctrl-K or / opens it, and the browser searches its local copy."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import polars as pl
import streamlit as st

from core.analysis.workspace.choices import Has, titled
from core.analysis.workspace.view import Place
from core.ui import cache
from core.ui.address.links import go
from core.views.finding import Found, document, found_in, sent, silent
from core.views.pages import PAGES

_HERE = Path(__file__).parent / "live"
_KEY, _CHOSEN = "finder", "_found"
_NOWHERE = pl.DataFrame()

_component = st.components.v2.component(
    "clq_find",
    html=(_HERE / "find.html").read_text(encoding="utf-8"),
    css=(_HERE / "find.css").read_text(encoding="utf-8"),
    js=(_HERE / "find.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def search(place: Place | None, stacks: pl.DataFrame | None, has: Collection[Has]) -> None:
    """Draw the search, and open the chosen result.

    Args:
        stacks: The stacks that can be found.
        has: The data that the workspace has for pages.
    """
    table = _NOWHERE if stacks is None else stacks
    rooms = () if place is None else titled(place.snapshot, cache.workspaces(place.snapshot))

    def chosen() -> None:
        state: Any = st.session_state.get(_KEY)
        at = state.get("chosen") if state else None
        found = found_in(table, rooms)
        if isinstance(at, int) and 0 <= at < len(found):  # clients can send anything
            st.session_state[_CHOSEN] = found[at]

    _component(key=_KEY, data=sent(table, _below(place, has), rooms), on_chosen_change=chosen)
    if (found := st.session_state.pop(_CHOSEN, None)) is not None:
        _open(found)


def _below(place: Place | None, has: Collection[Has]) -> frozenset[str]:
    """Return the pages and sections that the workspace has no data for."""
    pages = frozenset(page.name for page in PAGES.values() if page.needs and page.needs not in has)
    return pages if place is None else pages | silent(place.snapshot, place.scope.collection_id)


def _open(found: Found) -> None:
    if found.kind == "document":
        st.dialog(found.title, width="large")(st.markdown)(document(found.name))
    else:
        go(found.page, **found.asked)
