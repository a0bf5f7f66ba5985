"""Stopping on request: a flag that work looks at between two steps, and that ends waits for vendors."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType

_EVERY_S = 0.2


class Stopped(Exception):  # noqa: N818 - it is no error
    """Somebody asked the work to stop."""


class Watch:
    """Looks for requests to stop while the block runs.

    Args:
        asked: Whether the caller wants it to stop.
        file: Its existence asks, too.
        interrupt: Ends waits that are under way, once somebody asked.
    """

    def __init__(self, asked: Callable[[], bool], file: Path, interrupt: Callable[[], None]) -> None:
        self._asked, self._file, self._interrupt = asked, file, interrupt
        self._stop, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._look, name="watch", daemon=True)

    @property
    def stopping(self) -> bool:
        """Whether somebody asked."""
        return self._stop.is_set()

    def check(self) -> None:
        """Raise `Stopped` if somebody asked."""
        if self._stop.is_set():
            raise Stopped

    def wait(self, seconds: float) -> None:
        """Let time pass; raise `Stopped` as soon as somebody asks."""
        self._stop.wait(max(0.0, seconds))
        self.check()

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.is_set():
            if self._asked() or self._file.exists():
                self._stop.set()
                self._interrupt()
                return
            self._over.wait(_EVERY_S)


@contextmanager
def asked_to_stop(then: Callable[[], None] = lambda: None) -> Iterator[threading.Event]:
    """An event that is set when the process is told to end; `then` is called besides, and may raise."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def told(_number: int, _frame: FrameType | None) -> None:
        asked.set()
        then()

    before = signal.signal(signal.SIGTERM, told)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGTERM, before)
