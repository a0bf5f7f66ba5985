"""Section Names of Diagnostics: how much identity an embedder carries."""

from __future__ import annotations

from core.ui import show
from core.ui.view import View
from core.views.diagnostics import words


def names(view: View) -> None:
    """Draw the section."""
    del view
    show.head(words.NOTHING)
