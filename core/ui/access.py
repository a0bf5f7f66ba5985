"""Whether the visitor of this session may change anything; asked by the pages, and where it is done."""

from __future__ import annotations

import os
from collections.abc import Callable

import streamlit as st

from core.errors import AccessError, ClqError
from core.ui.door import HERE, VISITOR
from core.views.access import SETTING, why_not
from core.views.text import plain

_SAID, _FAILED = "_act_said", "_act_failed"


def forbidden() -> str:
    """Why this visitor may neither write nor start work; empty where both are allowed."""
    return why_not(os.environ.get(SETTING), here=st.context.headers.get(VISITOR) == HERE)


def require() -> None:
    """Let nothing happen that this visitor may not do, whatever the browser sent.

    Raises:
        AccessError: If the visitor may not; nothing was changed then.
    """
    if reason := forbidden():
        raise AccessError(reason)


def act(change: Callable[..., str], *args: object) -> bool:
    """Change something if this visitor may; what became of it is kept for `outcome`.

    In a callback, so that the next script run shows the new revision everywhere.

    Args:
        change: Does it and says so in a sentence.
        args: What it is given.

    Returns:
        Whether it was done.
    """
    try:
        require()
        st.session_state[_SAID] = change(*args)
    except ClqError as error:
        st.session_state[_FAILED] = str(error)
        return False
    return True


def outcome() -> None:
    """What the last change did, once."""
    if _SAID in st.session_state:
        st.success(plain(st.session_state.pop(_SAID)), icon=":material/check:")
    if _FAILED in st.session_state:
        st.error(plain(st.session_state.pop(_FAILED)), icon=":material/error:")
