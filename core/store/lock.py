"""One writer at a time: a lock on a file that says who holds it, and ends with its process."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from core.errors import StoreBusyError
from core.files import locked
from core.store.faults import told

_TELL_S = 1.0


def holder(path: Path) -> str:
    """Who wrote their name into the lock file last, in words; empty when nobody did."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        return f"process {int(said['pid'])} ({str(said['action'])[:80]})"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


@contextmanager
def exclusive(
    path: Path, action: str, wait_s: float, on_wait: Callable[[float], None] | None
) -> Iterator[None]:
    """Hold the writers' lock."""
    with ExitStack() as held:
        with told("taking the lock", path.parent, "Nothing was changed."):
            held.enter_context(locked(path, wait=_patience(path, wait_s, on_wait)))
            path.write_text(json.dumps({"pid": os.getpid(), "action": action}), encoding="utf-8")
        try:
            yield
        finally:
            with suppress(FileNotFoundError):
                os.truncate(path, 0)


def _patience(path: Path, wait_s: float, on_wait: Callable[[float], None] | None) -> Callable[[], None]:
    """Return what is done while another writer holds the lock."""
    started, told_at = time.monotonic(), -_TELL_S

    def wait() -> None:
        nonlocal told_at
        waited = time.monotonic() - started
        if waited >= wait_s:
            raise StoreBusyError(
                f"Another writer, {holder(path) or 'unnamed'}, did not finish within {wait_s:g} s.",
                where=str(path.parent),
                do="Try again when it is done; nothing was written.",
            )
        if on_wait is not None and waited - told_at >= _TELL_S:
            on_wait(waited)
            told_at = waited

    return wait
