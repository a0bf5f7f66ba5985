"""Whether the visitor of this session may change anything; asked by the pages, and where it is done."""

from __future__ import annotations

import os

import streamlit as st

from core.errors import AccessError
from core.ui.door import HERE, VISITOR
from core.views.access import SETTING, why_not


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
