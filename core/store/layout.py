"""The folder of a store: names, durable writes, the pointer to the current catalogue.

::

    CURRENT                                   name of the current catalogue, replaced atomically
    LOCK                                      locked by the one writer; says who holds it
    JOURNAL                                   what the writer has made that is not published yet
    catalogue/00000012-9f3c….duckdb           immutable once published; the last few are kept
    parts/00000012-51ab…/rankings.parquet     immutable; written to a hidden folder first, then renamed
    parts/00000012-51ab…/rankings.codes.arrow the same rows as integers, for joining (core.store.read.codes)
    parts/00000013-07fe…/rankings-00003.parquet   one lot of many rows (core.store.parts)
    trash/1793…-00000012-51ab…                of a writer that did not finish; emptied after a day
    aside/                                    what a repair or a restore took out of use; nothing empties it

A catalogue's name is its revision and its checksum, and it lists the checksums of all parts: so the pointer
vouches for every byte. (Earlier releases put eight random digits there instead, which vouch for nothing.)
Names of parts contain random digits. So a name never returns with other content, not even after a store was
deleted and made again: readers may cache by name.

`CURRENT` exists before the first catalogue is published. So a store that has a catalogue and no pointer has
lost it; it neither reads as empty nor is written to.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from core.errors import StoreDamagedError, StoreError
from core.files import replacing, sync
from core.store.seals import Sealed, checksum

KEPT_CATALOGUES = 5
"""A reader that got a name has this many publications' time to open it (and then asks again)."""

REPAIR = "Run `python -m core doctor --repair`; it deletes nothing."
RESTORE = "Restore a backup with `python -m core store restore BACKUP`, or name another store."
_ELSEWHERE = "Name another folder, or a new one."
_ODD = "?" if os.sep == "\\" else "?\\"  # Characters of a path that the engine misreads
_NOTHING_YET = "nothing yet"
_REMOVALS = 10
_OWN_NAMES = {"CURRENT", "LOCK", "JOURNAL", "catalogue", "parts", "trash", "aside"}
_CATALOGUE = re.compile(r"([0-9]{8,18})-([0-9a-f]{8}|[0-9a-f]{32})\.duckdb")
_NUMBERED = re.compile(r"([0-9]{8,18})-.+")


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths of one store and the few operations on them that must be atomic."""

    root: Path  # the store's folder; need not exist

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

    @property
    def trash(self) -> Path:
        """Folder of what unfinished writers left."""
        return self.root / "trash"

    @property
    def aside(self) -> Path:
        """Folder of retired files."""
        return self.root / "aside"

    def check(self) -> None:
        """Refuse a path that holds something other than a store.

        Raises:
                StoreError: If the path is a file, or a folder with foreign content and no store in it, or if
                    the engine would read another name.
        """
        odd = [char for char in _ODD if char in str(self.root)]
        if odd or not _is_text(str(self.root)):
            found = f"The path holds {odd[0]!r}" if odd else "The path is not UTF-8"
            raise StoreError(
                f"{found}, which the engine reads as another name.", where=str(self.root), do=_ELSEWHERE
            )
        if self.root.is_dir():
            foreign = {entry.name for entry in self.root.iterdir() if not entry.name.startswith(".")}
            if "CURRENT" not in foreign and not foreign <= _OWN_NAMES and not self.published():
                shown = ", ".join(sorted(foreign - _OWN_NAMES)[:3])
                raise StoreError(
                    f"This folder is not a store and is not empty; it holds {shown}.",
                    where=str(self.root),
                    do=_ELSEWHERE,
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

    def begin(self) -> Path | None:
        """Return the current catalogue, for a writer that holds the lock; a new store gets its pointer."""
        current = self.current()
        if current is None:
            self._point(_NOTHING_YET)
        return current

    def current(self) -> Path | None:
        """Return the current catalogue file, or None for a store that was never written to."""
        name = self._pointed()
        if name is None and (held := self._held()):
            name = self._pointed()  # a first write may have happened in between
            if name is None:
                raise StoreDamagedError(
                    f"The pointer CURRENT is missing, and the store holds {held}.",
                    where=str(self.root),
                    do=REPAIR if self.published() else RESTORE,
                )
        if name is None or name == _NOTHING_YET:
            return None
        self.revision_of(name)
        return self.catalogues / name

    def _pointed(self) -> str | None:
        try:
            return (self.root / "CURRENT").read_text(encoding="ascii").removesuffix("\n")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except UnicodeDecodeError as error:
            raise StoreDamagedError(
                f"The pointer CURRENT cannot be read: {error}.", where=str(self.root), do=REPAIR
            ) from error

    def _held(self) -> str:
        """Describe the published data in a store that has no pointer; return "" if there is none."""
        catalogues = len(self.published())
        if catalogues:
            return f"{catalogues} catalogue{'s' if catalogues > 1 else ''}"
        parts = [entry for entry in entries(self.parts) if not entry.name.startswith(".")]
        return "parts without a catalogue" if parts else ""

    def published(self) -> list[Path]:
        """Return the catalogues under their final names, the newest first."""
        named = [entry for entry in entries(self.catalogues) if _CATALOGUE.fullmatch(entry.name)]
        return sorted(named, key=lambda entry: (self.revision_of(entry.name), entry.name), reverse=True)

    def revision_of(self, name: str) -> int:
        """Return the revision that a catalogue's file name states."""
        parts = _CATALOGUE.fullmatch(name)
        if parts is None:
            raise StoreDamagedError(
                f"The pointer CURRENT names {name[:80]!r}, which is not a catalogue.",
                where=str(self.root),
                do=REPAIR,
            )
        return int(parts[1])

    def newest(self) -> int:
        """Return the highest revision that any name in the store states, whether in use or not."""
        names = (
            entry.name for folder in (self.catalogues, self.parts, self.aside) for entry in entries(folder)
        )
        return max((int(match[1]) for name in names if (match := _NUMBERED.fullmatch(name))), default=0)

    def finish(self, working: Path, revision: int) -> Path:
        """Give a closed catalogue its final name, which vouches for its bytes; publish it afterwards."""
        sync(working)
        final = self.catalogues / f"{revision:08d}-{checksum(working)}.duckdb"
        self.note(final)
        working.rename(final)
        return final

    def publish(self, catalogue: Path) -> None:
        """Make a catalogue the current one. The pointer is swapped as the very last step."""
        sync(self.parts)
        sync(self.catalogues)
        self._point(catalogue.name)

    def _point(self, name: str) -> None:
        with replacing(self.root / "CURRENT", mark="new") as pointer:
            pointer.write_text(name + "\n", encoding="ascii")
            sync(pointer)
        sync(self.root)

    def note(self, path: Path) -> None:
        """Write into the journal that the writer is about to give something its final name."""
        with self._journal.open("a", encoding="utf-8") as file:
            file.write(f"{path.relative_to(self.root)}\n")
            file.flush()
            os.fsync(file.fileno())

    def noted(self) -> set[Path]:
        """Return the paths that the journal names."""
        try:
            lines = self._journal.read_text(encoding="utf-8", errors="replace").splitlines()
        except (FileNotFoundError, NotADirectoryError):
            return set()
        return {self.root / line for line in lines}

    def close_journal(self) -> None:
        """Forget the paths in the journal: they are published, or gone."""
        self._journal.unlink(missing_ok=True)

    @property
    def _journal(self) -> Path:
        return self.root / "JOURNAL"

    def superseded(self) -> list[Path]:
        """Return published catalogues older than any that a reader may still be about to open."""
        current = self.current()
        older = [
            entry
            for entry in self.published()
            if current is not None and self.revision_of(entry.name) < self.revision_of(current.name)
        ]
        return older[KEPT_CATALOGUES:]


def sealed(catalogue: Path) -> Sealed | None:
    """Return a published catalogue with the checksum in its name, or None if an earlier release wrote it."""
    parts = _CATALOGUE.fullmatch(catalogue.name)
    if parts is None or len(parts[2]) == 8:
        return None
    return Sealed(str(catalogue), None, parts[2])


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def copy_catalogue(catalogue: Path, target: Path) -> None:
    """Copy a published catalogue after checking its bytes, because its new name would vouch for them.

    Closing the copy's handle drops this process's locks on the original. That is harmless only because a
    published catalogue is never opened for writing by anybody.
    """
    shutil.copyfile(catalogue, target)
    seal = sealed(catalogue)
    if seal is not None and (problem := seal._replace(path=str(target)).problem()):
        raise StoreDamagedError(f"The catalogue {problem}.", where=str(catalogue), do=REPAIR)


def entries(folder: Path) -> list[Path]:
    """Return a folder's entries, sorted, or [] if there is no folder."""
    return sorted(folder.iterdir()) if folder.is_dir() else []


def remove(path: Path) -> None:
    """Remove a file or a folder; one that is gone already is fine."""
    if not path.is_dir():
        path.unlink(missing_ok=True)
        return
    # A failed stream may still be opening its file on another thread, and a folder that gains a file
    # while it is emptied stays. Once the folder is gone, the late file has nowhere to appear.
    for _ in range(_REMOVALS):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
