"""What stands just outside the limits, and a latency that says more: each with a button that takes it."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.decide.near import near_misses
from core.ui import cache
from core.ui.limits import limits, take
from core.ui.view import View
from core.views.decision.near import HEADING, near_rows, own_scope, sentence, way_in
from core.views.text import plain


def near(view: View) -> None:
    """List the near misses of a workspace and the published latency; a button takes what it stands beside."""
    rows = near_rows(view.table, near_misses(view.table, view.decision, view.constraints))
    own = _own_scope(view, cache.table_key(view))
    if not rows and not own:
        return
    offered = limits(view.table, view.quality)
    with st.container(border=True, key="near"):
        if rows:
            st.markdown(f"**{HEADING}**")
        for place, row in enumerate(rows):
            values = {row["limit"]: row["set_to"]}
            words = sentence(row, view.quality.name)
            _line(words, f"Set {way_in(row)}", f"near_{place}", on_click=take, args=(offered, values))
        if own:
            _line(own, "Decide on the reranker", "near_scope", on_click=_take_scope)


def _line(words: str, label: str, key: str, **click: Any) -> None:
    left, right = st.columns([4, 1], vertical_alignment="center")
    left.markdown(plain(words))
    right.button(plain(label), key=key, width="stretch", **click)


def _take_scope() -> None:
    st.session_state["lat"] = "rerank"


@st.cache_resource(show_spinner=False, max_entries=64)
def _own_scope(_view: View, key: tuple[object, ...]) -> str:
    del key  # of the table
    return own_scope(_view.snapshot, _view.table, _view.latency)
