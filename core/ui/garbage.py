"""Garbage collection in a process that draws pages: when it runs, and which objects it skips."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Thread

_EVERY = 50
_SELDOM = (50_000, 20, 1_000)
"""Objects, and collections of the younger ones, between the interpreter's own: none while a page is drawn."""


class Garbage:
    """Collects garbage between page renders, skipping objects that live for the whole process.

    Streamlit would collect all generations after every script run (`runner.postScriptGC`); with the
    charting and table libraries loaded, that took half of a server's CPU. Objects made by imports and first
    drawings live as long as the process anyway; half of the libraries' objects are created by the
    first chart, not by the import.

    Args:
        turn: Lock held during a collection so that no page renders.
        every: Number of pages drawn between two collections.
    """

    def __init__(self, turn: Callable[[], AbstractContextManager[None]], every: int = _EVERY) -> None:
        self._turn, self._every = turn, every
        self._known: set[str] = set()
        self._drawn = 0
        self._settled = False

    def settle(self) -> None:
        """Freeze all existing objects, now that everything is imported."""
        if not self._settled:
            gc.set_threshold(*_SELDOM)
            atexit.register(gc.unfreeze)  # otherwise libraries that count their objects at exit report leaks
            self._settled = True
        gc.collect()
        gc.freeze()

    def drawn(self, page: str) -> Thread | None:
        """Note that a page was drawn: freeze objects of the first drawing, collect the leftovers of many."""
        first = page not in self._known
        self._known.add(page)
        self._drawn += 1
        if not self._settled or not (first or self._drawn >= self._every):
            return None
        self._drawn = 0
        thread = Thread(target=self._collect, args=(first,), name="garbage", daemon=True)
        thread.start()
        return thread

    def _collect(self, first: bool) -> None:
        with self._turn():
            (self.settle if first else gc.collect)()
