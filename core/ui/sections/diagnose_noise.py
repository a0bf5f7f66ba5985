"""Section Noise of Diagnostics: what conversational noise costs."""

from __future__ import annotations

from core.ui import show
from core.ui.view import View
from core.views.diagnostics import words


def noise(view: View) -> None:
    """Draw the section."""
    del view
    show.head(words.NOTHING)
