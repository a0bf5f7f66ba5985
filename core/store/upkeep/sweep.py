"""Clearing up after writers that died: only what a journal or a hidden name proves to be theirs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from core.errors import StoreDamagedError
from core.store.layout import Layout, entries, remove

_KEPT_S = 24 * 3600
"""How long the trash keeps something."""


def unfinished(layout: Layout, referenced: set[str]) -> list[Path]:
    """What writers left that died or gave up; only under the writers' lock is none at work for sure."""
    noted, current = layout.noted(), layout.current()
    return [
        entry
        for entry in _both(layout)
        if entry.name.startswith(".")
        or (entry in noted and entry != current and entry.name not in referenced)
    ]


def unused(layout: Layout, referenced: set[str]) -> list[Path]:
    """Parts, and later catalogues, that nothing in use refers to and that no writer is known to have left."""
    left, current = set(unfinished(layout, referenced)), layout.current()
    earlier = (each.name for each in layout.published() if current and not _later(each, current))
    in_use = {*referenced, *earlier}
    return [entry for entry in _both(layout) if entry not in left and entry.name not in in_use]


def sweep(layout: Layout, referenced: set[str], working: Path) -> None:
    """Move what writers left into the trash and take out what has lain there for a day.

    A disk that refuses, or a pointer that is damaged, leaves all of it for the next time.
    """
    now = time.time()
    with suppress(OSError, StoreDamagedError):
        for entry in unfinished(layout, referenced):
            if not entry.name.startswith(working.name):
                layout.trash.mkdir(exist_ok=True)
                entry.rename(layout.trash / f"{int(now)}-{entry.name.lstrip('.')}")
        layout.close_journal()
        for entry in entries(layout.trash):
            thrown = entry.name.partition("-")[0]
            if thrown.isascii() and thrown.isdecimal() and now - int(thrown) > _KEPT_S:
                remove(entry)
        for entry in layout.superseded():
            remove(entry)


def _both(layout: Layout) -> Iterator[Path]:
    yield from entries(layout.parts)
    yield from entries(layout.catalogues)


def _later(one: Path, other: Path) -> bool:
    """Whether a catalogue's name states another content of the same revision, or a later one."""
    return one.name != other.name and one.name.partition("-")[0] >= other.name.partition("-")[0]
