"""Files that are whole or absent, and locks that end with their process."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from core.records import JsonMap

_POLL_S = 0.05


def write_json(path: Path, value: JsonMap) -> None:
    """Replace a file by a JSON object at once; readers see the old one or the new one."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Replace a file by a text at once."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object from a file; None if there is none that can be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def sync_folder(path: Path) -> None:
    """Force a folder's files to the disk."""
    for file in (*(each for each in path.iterdir() if each.is_file()), path):
        handle = os.open(file, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def empty_folder(path: Path) -> None:
    """Make a folder that holds nothing."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)


@contextmanager
def locked(path: Path, *, wait: Callable[[], None] | None = None) -> Iterator[bool]:
    """Hold a lock that the kernel releases with the process.

    Args:
        path: The lock file; made when absent, and left.
        wait: Called before each new try, about 20 times a second, while another process holds the lock; it
            may raise. None = do not wait.

    Yields:
        Whether the lock is held; False only when not waiting.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        held = _try(handle)
        while not held and wait is not None:
            wait()
            time.sleep(_POLL_S)
            held = _try(handle)
        try:
            yield held
        finally:
            if held:  # explicitly: a child forked meanwhile holds the open file too
                fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock right now."""
    if not path.exists():
        return False
    with locked(path) as free:
        return not free


def _try(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
