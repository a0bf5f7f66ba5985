"""The library: a store opened in Python; its answers are objects that display themselves in notebooks.

A thin layer over the functions behind commands and pages.
"""

from core.api.decision import Confidence, Decision, Gate, Stack
from core.api.pages import Page
from core.api.results import Added, Measured
from core.api.store import Results, measure, open, run  # noqa: A004 - called as clq.open
from core.api.workspace import Workspace

__all__ = [
    "Added",
    "Confidence",
    "Decision",
    "Gate",
    "Measured",
    "Page",
    "Results",
    "Stack",
    "Workspace",
    "measure",
    "open",
    "run",
]
