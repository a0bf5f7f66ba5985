"""What breaks no limit but lacks a number, folded away under the answer."""

from __future__ import annotations

import streamlit as st

from core.ui import show
from core.ui.view import View
from core.views.decision.promising import HEADING, promising_rows, promising_words

_COLUMNS = {
    "stack": show.text_column("stack", width=290),
    "quality": show.score_column("quality"),
    "gain": show.signed_column("better by", "Than the chosen stack; empty without one."),
    "missing": show.text_column("is"),
    "measure": show.text_column("so", width=360),
    "why": show.text_column("on record", width=260),
}


def promising(view: View) -> None:
    """List the stacks that are not shipped for want of a number, with what to measure."""
    rows = promising_rows(view.table, view.decision)
    if rows.is_empty():
        return
    with st.expander(f"{HEADING} ({rows.height:,})", icon=":material/hourglass_empty:"):
        st.text(promising_words(rows, view.decision))
        show.table(rows.drop("unknown"), "promising", _COLUMNS)
