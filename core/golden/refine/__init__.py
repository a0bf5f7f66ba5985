"""Listwise refinement (stage S6): passages put in order by a judge, five at a time, until the Top-20 rests.

A driver asks `batch()`, has it judged, answers `told(order)` or `skipped()`, and writes `state()` after each.
"""

from core.golden.refine.base import METHODS, TOP, Method, Pair, Point, Refinement, RefineSettings, Row
from core.golden.refine.methods import refinement, restore

__all__ = [
    "METHODS",
    "TOP",
    "Method",
    "Pair",
    "Point",
    "RefineSettings",
    "Refinement",
    "Row",
    "refinement",
    "restore",
]
