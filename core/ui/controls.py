"""What the dashboard alone has: the forms and buttons that a section names by a `Control`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl
import streamlit as st

from core.ui import door
from core.ui.sections.judge_cards import book
from core.views.golden.judging import propose
from core.views.pages import PAGES
from core.views.workspace.scope import Scope


def judge_next(scope: Scope, rows: pl.DataFrame) -> None:
    """Draw the button that hands passages over to page Golden sets."""
    if door.forbidden() or not st.button(f"Judge these {rows.height} next", icon=":material/rule:"):
        return
    queue = propose(book(), scope.collection_id, rows, scope.golden_set_id or "")
    # The section follows from it; what a widget here is bound to cannot be asked for.
    st.switch_page(PAGES["golden"].file, query_params={"queue": queue.queue_id})


CONTROLS: Mapping[str, Callable[..., None]] = {"judge next": judge_next}
"""What draws a control, by its name."""
