"""One transaction: a private copy of the catalogue that becomes the current one, or is thrown away.

Rows go to part folders first and the catalogue that names them is published last, so that what a killed
writer leaves behind is invisible; the next writer sweeps it away.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from core.errors import StoreDamagedError, StoreError, UnknownNameError
from core.records import Batch, now
from core.store import engine, migrations
from core.store.engine import ENGINE
from core.store.layout import Layout, copy_catalogue, entries, remove
from core.store.ledger import KINDS, Ledger, LedgerKind
from core.store.parts import StoredRows, folders, write_parts
from core.tables import TABLES

_KEPT_S = 24 * 3600  # How long the trash keeps an entry


class Writer:
    """Adds, removes and restores records within one transaction; created by `Store.write`.

    Attributes:
        revision: The revision that this transaction makes; if it ended without a change, the one before.
    """

    def __init__(self, layout: Layout, base: Path | None, revision: int) -> None:
        """Begin a transaction."""
        self._layout = layout
        self._base = 0 if base is None else layout.revision_of(base.name)
        self.revision = revision
        self._failed = False
        self._made: list[Path] = []
        self._final: Path | None = None
        self._working = layout.catalogues / f".{self.revision:08d}-{secrets.token_hex(4)}.duckdb"
        self._alias = ""
        try:
            if base is not None:
                copy_catalogue(base, self._working)
            self._alias = ENGINE.attach(self._working, read_only=False)
            self._cursor = ENGINE.cursor(self._alias)
            self._ledger = Ledger(self._cursor, self.revision)
            self._cursor.execute("BEGIN")
            applied = migrations.migrate(self._cursor, str(layout.root), empty=base is None)
            self._ledger.changed = applied > 0 and base is not None
            sweep(layout, folders(self._ledger.paths()), self._working)
        except BaseException:
            self.discard()
            raise

    def add(
        self,
        batch: Batch,
        *,
        replacing: Collection[str] = (),
        on_step: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Add records and their rows.

        Records that the store already has with equal content are left alone (a removed run is restored). All
        rows of an id in a table come in one batch; a table in which an id has no rows yet may be added later.

        Args:
            batch: Records and frames; frames have the columns of `TABLES`, in any order.
            replacing: Ids of collections and golden sets whose record and rows replace those in the
                store; earlier revisions still show the old ones.
            on_step: Called with what is being done, in a few words.

        Raises:
            InputError: If a frame or a record cannot be used.
            UnknownNameError: If something refers to a record or a table that does not exist.
            StoreError: If an id exists with other content, or a record that it refers to is deleted.
        """
        self._guarded(lambda: self._add(batch, frozenset(replacing), on_step))

    def remove(self, kind: LedgerKind, ids: Sequence[str]) -> None:
        """Hide records from this revision on; their rows stay, and earlier revisions show them.

        A collection hides its runs, golden sets and parts, a golden set its parts.

        Args:
            ids: The records; those that are deleted already are left alone.

        Raises:
            UnknownNameError: If one of them does not exist.
            InputError: If one is a part of another.
            StoreError: If one is hidden because its collection is deleted.
        """
        self._guarded(lambda: self._ledger.turn(kind, ids, "removed"))

    def restore(self, kind: LedgerKind, ids: Sequence[str]) -> None:
        """Bring deleted records back, with what their deletion hid; arguments and errors as for `remove`."""
        self._guarded(lambda: self._ledger.turn(kind, ids, "restored"))

    def mark(self, run_id: str) -> None:
        """Mark the stack of a run as the one that runs today, in place of the collection's other.

        Raises:
            UnknownNameError: If there is no such run.
        """
        self._guarded(lambda: self._ledger.mark(run_id))

    def unmark(self, collection_id: str) -> None:
        """Say that no stack of a collection is known to run today."""
        self._guarded(lambda: self._ledger.unmark(collection_id))

    def reseal(self, files: Mapping[str, tuple[int, str]]) -> None:
        """Update the bytes and checksums of derived files; a revision is made even if there are none."""
        self._guarded(lambda: self._ledger.reseal(files))

    def _guarded(self, change: Callable[[], None]) -> None:
        """Run a change; after one has failed, the transaction cannot be published any more."""
        self._refuse_failed()
        try:
            change()
        except BaseException as error:
            self._failed = True
            if isinstance(error, engine.FAULTS):
                raise engine.of(error, "writing", self._layout.root, "Nothing was changed.") from error
            raise

    def _refuse_failed(self) -> None:
        if self._failed:
            raise StoreError("A step of this transaction failed.", do="Start again; nothing was written.")

    def _add(self, batch: Batch, replacing: frozenset[str], on_step: Callable[[str], None]) -> None:
        for table in set(batch.frames) - set(TABLES):
            raise UnknownNameError("table", table, TABLES)
        self._ledger.add_records(batch, replacing)
        if batch.frames:
            known = StoredRows(
                ids={kind: self._ledger.ids(kind) for kind in KINDS},
                held=self._ledger.held(batch.frames, self._layout.root),
                replaced=replacing,
            )
            place = (self._cursor, self._layout, self.revision)
            folder, parts = write_parts(*place, batch.frames, known, on_step=on_step)
            self._made.append(folder)
            self._ledger.add_parts(folder, parts)

    def publish(self, action: str, note: str) -> None:
        """Make this transaction's result the current revision if anything changed."""
        self._refuse_failed()
        if not self._ledger.changed:
            self.discard()
            self.revision = self._base
            return
        with engine.as_store_error("writing", self._layout.root, "Nothing was changed."):
            self._ledger.add_revision(now(), action, note)
            self._cursor.execute("COMMIT")
            self._cursor.execute("CHECKPOINT " + self._alias)
            self._close()
            self._final = self._layout.finish(self._working, self.revision)
            self._layout.publish(self._final)
        with suppress(OSError):  # the paths in it are in use: the next sweep sees that
            self._layout.close_journal()

    def discard(self) -> None:
        """Undo everything, unless it has been published (the failure came later)."""
        self._close()
        with suppress(StoreError, OSError):
            if self._final is not None and self._layout.current() == self._final:
                return
            leftovers = [*self._made, self._working, self._working.with_suffix(".duckdb.wal")]
            for leftover in leftovers if self._final is None else [*leftovers, self._final]:
                remove(leftover)
            self._layout.close_journal()

    def _close(self) -> None:
        if self._alias:
            self._cursor.close()
            ENGINE.detach(self._alias)
            self._alias = ""


@contextmanager
def publishing(writer: Writer, action: str, note: str) -> Iterator[Writer]:
    """Publish a transaction at the end of the block, or undo it if something fails."""
    try:
        yield writer
        writer.publish(action, note)
    except BaseException:
        writer.discard()
        raise


def unfinished(layout: Layout, referenced: set[str]) -> list[Path]:
    """List files that dead writers left; only the writers' lock guarantees that none is at work."""
    noted, current = layout.noted(), layout.current()
    return [
        entry
        for entry in _both(layout)
        if entry.name.startswith(".")
        or (entry in noted and entry != current and entry.name not in referenced)
    ]


def unused(layout: Layout, referenced: set[str]) -> list[Path]:
    """List parts, and later catalogues, that nothing in use refers to and that no known writer has left."""
    left, current = set(unfinished(layout, referenced)), layout.current()
    earlier = (
        catalogue.name for catalogue in layout.published() if current and not _later(catalogue, current)
    )
    in_use = {*referenced, *earlier}
    return [entry for entry in _both(layout) if entry not in left and entry.name not in in_use]


def sweep(layout: Layout, referenced: set[str], working: Path) -> None:
    """Move the leftovers of writers into the trash, and remove what has lain there for a day.

    If the disk refuses, or a pointer is damaged, everything is left for the next time.
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


def passed_over(layout: Layout) -> Path | None:
    """Return the newest published catalogue later than the current one, or None.

    A catalogue that a writer is about to publish, or has left, is in the journal and does not count.
    """
    current, noted = layout.current(), layout.noted()
    now = 0 if current is None else layout.revision_of(current.name)
    left = (each for each in layout.published() if each not in noted)
    return next((each for each in left if layout.revision_of(each.name) > now), None)


def _later(one: Path, other: Path) -> bool:
    """Return whether a catalogue's name states a later revision, or another content of the same one."""
    return one.name != other.name and one.name.partition("-")[0] >= other.name.partition("-")[0]
