"""The folder that a store is: names, durable writes, the pointer to the current catalogue.

::

    CURRENT                                   name of the current catalogue, replaced atomically
    LOCK                                      locked by the one writer; says who holds it
    catalogue/00000012-9f3c….duckdb           immutable once published; the last few are kept
    parts/00000012-51ab…/rankings.parquet     immutable; written to a hidden folder first, then renamed
    parts/00000012-51ab…/rankings.codes.arrow the same rows as integers, for joining (core.store.codes)

Names carry random digits so that a name never comes back with other content, not even after a store was
deleted and made again: readers may cache by name.
"""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from core.errors import StoreError

KEPT_CATALOGUES = 5
"""A reader that was handed a name has this many publications' time to open it (and then asks again)."""

_REMOVALS = 10
_OWN_NAMES = {"CURRENT", "LOCK", "catalogue", "parts"}


def sync(path: Path) -> None:
    """Force a file's bytes, or a folder's entries, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths of one store and the few operations on them that must be atomic.

    Attributes:
        root: The store's folder; need not exist.
    """

    root: Path

    @property
    def lock(self) -> Path:
        """The writers' lock file."""
        return self.root / "LOCK"

    @property
    def catalogues(self) -> Path:
        """Folder of the catalogue files."""
        return self.root / "catalogue"

    @property
    def parts(self) -> Path:
        """Folder of the part folders."""
        return self.root / "parts"

    def check(self) -> None:
        """Refuse a path that holds something other than a store.

        Raises:
            StoreError: If the path is a file, or a folder with foreign content and no store in it.
        """
        if self.root.is_dir():
            foreign = {entry.name for entry in self.root.iterdir() if not entry.name.startswith(".")}
            if "CURRENT" not in foreign and not foreign <= _OWN_NAMES:
                shown = ", ".join(sorted(foreign - _OWN_NAMES)[:3])
                raise StoreError(
                    f"This folder is not a store and is not empty; it holds {shown}.",
                    where=str(self.root),
                    do="Name another folder, or a new one.",
                )
        elif self.root.exists():
            raise StoreError(
                "This is a file; a store is a folder.",
                where=str(self.root),
                do="Name a folder, or a new one.",
            )

    def create(self) -> None:
        """Make the folders that a writer needs."""
        self.check()
        self.catalogues.mkdir(parents=True, exist_ok=True)
        self.parts.mkdir(exist_ok=True)

    def current(self) -> Path | None:
        """The current catalogue file; None for a store that nobody has written to yet."""
        try:
            name = (self.root / "CURRENT").read_text(encoding="ascii").strip()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"The pointer CURRENT cannot be read: {error}", where=str(self.root)) from error
        self.revision_of(name)
        return self.catalogues / name

    def revision_of(self, name: str) -> int:
        """The revision that a catalogue's file name states.

        Raises:
            StoreError: If it is not the name of a catalogue.
        """
        digits, dash, _ = name.partition("-")
        if not (dash and digits.isdecimal() and name.endswith(".duckdb")):
            raise StoreError(
                f"The pointer CURRENT names {name[:80]!r}, which is not a catalogue.",
                where=str(self.root),
                do="Write the name of the newest file in catalogue/ into it, or restore a backup.",
            )
        return int(digits)

    def publish(self, working: Path, revision: int) -> None:
        """Make a finished catalogue the current one. The pointer is swapped as the very last step.

        Args:
            working: A closed catalogue file in the catalogue folder.
            revision: What it holds.
        """
        name = f"{revision:08d}-{secrets.token_hex(4)}.duckdb"
        sync(working)
        working.rename(self.catalogues / name)
        sync(self.parts)
        sync(self.catalogues)
        pointer = self.root / ".CURRENT.new"
        pointer.write_text(name + "\n", encoding="ascii")
        sync(pointer)
        pointer.replace(self.root / "CURRENT")
        sync(self.root)

    def orphans(self, referenced: set[str]) -> list[Path]:
        """What writers left behind that died or gave up; only under the writers' lock safe to remove.

        Args:
            referenced: Names of the part folders that the current catalogue lists.
        """
        parts = [entry for entry in _entries(self.parts) if entry.name not in referenced]
        current = self.current()
        return parts + [
            entry
            for entry in _entries(self.catalogues)
            if entry.name.startswith(".")
            or (entry.suffix == ".duckdb" and (current is None or _later(entry.name, current.name)))
        ]

    def superseded(self) -> list[Path]:
        """Published catalogues that are older than any that a reader may still be about to open."""
        current = self.current()
        older = sorted(
            entry
            for entry in _entries(self.catalogues)
            if current is not None and entry.suffix == ".duckdb" and _later(current.name, entry.name)
        )
        return older[:-KEPT_CATALOGUES]


def _later(name: str, than: str) -> bool:
    """Whether a catalogue's name states another content of the same revision, or a later one."""
    return name != than and name.partition("-")[0] >= than.partition("-")[0]


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def remove(path: Path) -> None:
    """Remove a file or a folder; one that is gone already is fine."""
    if not path.is_dir():
        path.unlink(missing_ok=True)
        return
    # A stream that failed may still be opening its file on another thread, and a folder that gains a file
    # while it is emptied stays. Once the folder is gone, the late file has nowhere to appear.
    for _ in range(_REMOVALS):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
