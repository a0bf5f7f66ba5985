"""Stopping on request: a flag that work looks at between queries, and that ends waits for vendors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

_EVERY_S = 0.2


class Stopped(Exception):  # noqa: N818 - it is no error
    """Somebody asked the evaluation to stop."""


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
        """Stop here if somebody asked.

        Raises:
            Stopped: If so.
        """
        if self._stop.is_set():
            raise Stopped

    def wait(self, seconds: float) -> None:
        """Let time pass.

        Raises:
            Stopped: As soon as somebody asks.
        """
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
