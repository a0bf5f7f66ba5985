"""Review of questions, one card after another by keys: accept, edit, reject, undo."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal

import streamlit as st

from core.bidi import strip_bidi_controls
from core.records import short_hash
from core.ui import access
from core.views.golden import reviewing
from core.views.text import plain
from core.work.questions.folder import read

_SINCE = "_review_since"
_ACTS = {"accept": ("Accept", "a"), "reject": ("Reject", "x"), "skip": ("Later", "l"), "undo": ("Undo", "u")}
"""Act → its word and its key; R and C are Streamlit's own."""
_TO_KEYS = "if (document.activeElement?.matches('input')) document.activeElement.blur();"
"""Moves the focus out of the name field, where keys would be typed as letters, when a card appears."""


@st.fragment
def review(folder: Path) -> None:
    """Draw the next question with its quote; every key is saved at once in the set's folder."""
    made, key = read(folder), str(folder)
    name = st.text_input("Your name", key=f"reviewer_{key}", max_chars=60).strip()
    if not name:
        st.caption("Your name stands with what you decide.")
        return
    st.caption(plain(reviewing.progress(made, name)))
    access.outcome()
    entry = reviewing.following(made, name)
    if entry is None:
        st.success(plain(reviewing.over(made, name)))
        _button(folder, name, "", "undo")
        return
    at = (key, entry.query_id)
    if st.session_state.get(_SINCE, (None,))[0] != at:
        st.session_state[_SINCE] = (at, time.monotonic())
    with st.container(border=True):
        st.markdown(f"#### {plain(entry.draft.text)}")
        answer = f" · answer: {entry.draft.answer}" if entry.draft.answer else ""
        st.caption(plain(f"{entry.query_id} · {entry.draft.kind}{answer}"))
        for quote in entry.draft.quotes:
            st.caption(plain(quote.source))
            st.text(strip_bidi_controls(quote.text))
    with st.container(horizontal=True, gap="small"):
        for act in _ACTS:
            _button(folder, name, entry.query_id, act)
    with st.form(f"edit_{key}_{entry.query_id}", border=False):
        text = st.text_input("Edited", entry.draft.text, key=f"edited_{key}_{entry.query_id}")
        if st.form_submit_button("Accept as edited"):
            _keep(folder, name, entry.query_id, "edit", text or "")
            st.rerun(scope="fragment")
    st.caption("Keys: A accept, X reject, L later, U undo; edit the text and press Enter.")
    card = short_hash(name, entry.query_id)
    st.html(f"<script data-card='{card}'>{_TO_KEYS}</script>", unsafe_allow_javascript=True)


def _button(folder: Path, name: str, query_id: str, act: str) -> None:
    word, key = _ACTS[act]
    kind: Literal["primary", "secondary"] = "primary" if act == "accept" else "secondary"
    st.button(
        word, key=f"{act}_{folder}_{query_id}", shortcut=key, type=kind,
        on_click=_keep, args=(folder, name, query_id, act),
    )  # fmt: skip


def _keep(folder: Path, name: str, query_id: str, act: str, text: str = "") -> None:
    """Save a decision (a callback)."""
    since = st.session_state.get(_SINCE, (None, time.monotonic()))[1]
    spent = time.monotonic() - since
    access.act(lambda: reviewing.decide(folder, name, query_id, act, text=text, seconds=spent))
