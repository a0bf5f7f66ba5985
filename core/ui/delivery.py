"""Brings what scripts have sent to the event loop, which sends it to browsers: many at once, not singly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Lock

from streamlit.runtime.app_session import AppSession

_SOON_S = 0.004
Call = Callable[[], None]


class Delivery:
    """What scripts want called on the event loop, in their order.

    Streamlit wakes the loop for each of a hundred messages of a run, and loop and script then wait for each
    other a hundred times.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: list[Call] = []

    def put(self, loop: asyncio.AbstractEventLoop, call: Call) -> None:
        """Have a function called soon; from any thread. What comes after the loop's end is dropped."""
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
    """Have all sessions of this process deliver together."""
    delivery = Delivery()

    def put(session: AppSession, call: Call) -> None:
        delivery.put(session._event_loop, call)

    if hasattr(AppSession, "_call_soon_on_event_loop"):  # not so in another release of Streamlit
        AppSession._call_soon_on_event_loop = put  # type: ignore[assignment, method-assign]
