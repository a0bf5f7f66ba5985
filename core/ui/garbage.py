"""What a process that draws pages leaves to be collected: when, and what is never looked at."""

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
    """Collects what pages leave behind while none is drawn, and walks nothing that lives with the process.

    Streamlit would collect all generations after every run of a script (`runner.postScriptGC`); with the
    libraries of charts and tables loaded, that was half of a server's processor. What imports and first
    drawings have made lives as long as the process anyway; half of the libraries' objects are made by the
    first chart, not by the import.

    Args:
        turn: What a collection holds meanwhile, so that no page is drawn.
        every: Pages drawn between two collections.
    """

    def __init__(self, turn: Callable[[], AbstractContextManager[None]], every: int = _EVERY) -> None:
        self._turn, self._every = turn, every
        self._known: set[str] = set()
        self._drawn = 0
        self._settled = False

    def settle(self) -> None:
        """Move all that is there out of the collector's sight, now that everything is imported."""
        if not self._settled:
            gc.set_threshold(*_SELDOM)
            atexit.register(gc.unfreeze)  # else libraries that count their objects at exit report leaks
            self._settled = True
        gc.collect()
        gc.freeze()

    def drawn(self, page: str) -> Thread | None:
        """Note that a page was drawn: what the first drawing has made stays, what many leave behind goes."""
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
