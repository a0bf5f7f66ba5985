"""One writer at a time: a lock on a file, held by the kernel, so that it ends with its process.

`flock` conflicts between open files, not between processes, so it keeps threads of one process apart too.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from core.errors import StoreBusyError
from core.store.faults import told

_POLL_S = 0.02
_TELL_S = 1.0


def holder(path: Path) -> str:
    """Who wrote their name into the lock file last, in words; empty when nobody did."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        return f"process {int(said['pid'])} ({str(said['action'])[:80]})"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def held(path: Path) -> bool:
    """Whether somebody is writing right now."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


@contextmanager
def exclusive(
    path: Path, action: str, wait_s: float, on_wait: Callable[[float], None] | None
) -> Iterator[None]:
    """Hold the writers' lock."""
    with told("taking the lock", path.parent, "Nothing was changed."):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _acquire(handle, path, wait_s, on_wait)
        with told("taking the lock", path.parent, "Nothing was changed."):
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps({"pid": os.getpid(), "action": action}).encode(), 0)
        try:
            yield
        finally:
            # An explicit release: a child forked meanwhile holds the open file too.
            os.ftruncate(handle, 0)
            fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


def _acquire(handle: int, path: Path, wait_s: float, on_wait: Callable[[float], None] | None) -> None:
    started = time.monotonic()
    told = -_TELL_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waited = time.monotonic() - started
        else:
            return
        if waited >= wait_s:
            raise StoreBusyError(
                f"Another writer, {holder(path) or 'unnamed'}, did not finish within {wait_s:g} s.",
                where=str(path.parent),
                do="Try again when it is done; nothing was written.",
            )
        if on_wait is not None and waited - told >= _TELL_S:
            on_wait(waited)
            told = waited
        time.sleep(_POLL_S)
