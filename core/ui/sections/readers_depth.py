"""Sections of page Readers: score against passages sent, and retrievers by readers."""

from __future__ import annotations

from core.ui import show
from core.ui.view import View
from core.views.readers import words


def by_depth(view: View) -> None:
    """Draw the section."""
    del view
    show.head(words.NOTHING)


def matrix(view: View) -> None:
    """Draw the section."""
    del view
    show.head(words.NOTHING)
