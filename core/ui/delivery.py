"""Delivers messages from scripts to the event loop, which sends them to browsers: in batches, not singly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Lock

from streamlit.runtime.app_session import AppSession

_SOON_S = 0.004
Call = Callable[[], None]


class Delivery:
    """Calls that scripts schedule on the event loop, in order.

    Streamlit wakes the loop for each of a run's hundred messages, and loop and script then wait for each
    other a hundred times.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: list[Call] = []

    def put(self, loop: asyncio.AbstractEventLoop, call: Call) -> None:
        """Schedule a function; from any thread. Calls after the loop's end are dropped."""
        with self._lock:
            self._waiting.append(call)
            if len(self._waiting) > 1:
                return
        try:
            loop.call_soon_threadsafe(loop.call_later, _SOON_S, self._deliver, loop)
        except RuntimeError:
            if not loop.is_closed():
                raise

    def _deliver(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for call in waiting:
            loop.call_soon(call)


def deliver_together() -> None:
    """Make all sessions of this process deliver in batches."""
    delivery = Delivery()

    def put(session: AppSession, call: Call) -> None:
        delivery.put(session._event_loop, call)

    if hasattr(AppSession, "_call_soon_on_event_loop"):  # may be missing in another release of Streamlit
        AppSession._call_soon_on_event_loop = put  # type: ignore[assignment, method-assign]
