"""One transaction: a private copy of the catalogue that becomes the current one, or is thrown away.

Rows go to part folders first and the catalogue that names them is published last, so that what a killed
writer leaves behind is invisible; the next writer sweeps it away.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import duckdb

from core.errors import StoreError, UnknownNameError
from core.records import Batch, now
from core.store import migrations
from core.store.engine import ENGINE
from core.store.layout import Layout, remove
from core.store.ledger import KINDS, Kind, Ledger
from core.store.parts import Known, folders, write_parts
from core.tables import TABLES


class Writer:
    """Adds, removes and restores within one transaction. Made by `Store.write`.

    Attributes:
        revision: The revision that this transaction makes; after it ended without a change, the one before.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        base = layout.current()
        self._base = 0 if base is None else layout.revision_of(base.name)
        self.revision = self._base + 1
        self._failed = False
        self._made: list[Path] = []
        self._working = layout.catalogues / f".{self.revision:08d}-{secrets.token_hex(4)}.duckdb"
        if base is not None:
            # Closing a copy's handle drops this process's locks on the original. That is harmless here only
            # because a published catalogue is never opened for writing by anybody.
            shutil.copyfile(base, self._working)
        self._alias = ENGINE.attach(self._working, read_only=False)
        self._cursor = ENGINE.cursor(self._alias)
        self._ledger = Ledger(self._cursor, self.revision)
        try:
            self._cursor.execute("BEGIN")
            applied = migrations.migrate(self._cursor, str(layout.root), empty=base is None)
            self._ledger.changed = applied > 0 and base is not None
            self._sweep()
        except BaseException:
            self.discard()
            raise

    def _sweep(self) -> None:
        unneeded = self._layout.orphans(folders(self._ledger.paths())) + self._layout.superseded()
        for orphan in unneeded:
            if not orphan.name.startswith(self._working.name):
                remove(orphan)

    def add(
        self,
        batch: Batch,
        *,
        replacing: Collection[str] = (),
        on_step: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Add records and their rows.

        What is in the store already with equal content is left alone (a removed run is restored). All rows
        that one id has in one table come in one batch; a table that an id has no rows in may be added later.

        Args:
            batch: Records and frames; frames have the columns of `TABLES`, in any order.
            replacing: Ids of collections and golden sets whose record and rows take the place of those in the
                store; earlier revisions show what was there.
            on_step: Told what is being done, in a few words.

        Raises:
            InputError: If a frame or a record cannot be used.
            UnknownNameError: If something refers to a record or a table that does not exist.
            StoreError: If an id exists with other content, or what it names is deleted.
        """
        self._guarded(lambda: self._add(batch, frozenset(replacing), on_step))

    def remove(self, kind: Kind, ids: Sequence[str]) -> None:
        """Hide records from this revision on; their rows stay, and earlier revisions show them.

        A collection hides its runs, golden sets and parts, a golden set its parts.

        Args:
            kind: What they are.
            ids: Which; those that are deleted already are left alone.

        Raises:
            UnknownNameError: If one does not exist.
            InputError: If one is a part of another.
            StoreError: If one is hidden because its collection is deleted.
        """
        self._guarded(lambda: self._ledger.turn(kind, ids, "removed"))

    def restore(self, kind: Kind, ids: Sequence[str]) -> None:
        """Bring deleted records back, with what their deletion hid; arguments and errors as for `remove`."""
        self._guarded(lambda: self._ledger.turn(kind, ids, "restored"))

    def remove_runs(self, run_ids: Sequence[str]) -> None:
        """Hide runs; see `remove`."""
        self.remove("run", run_ids)

    def restore_runs(self, run_ids: Sequence[str]) -> None:
        """Bring deleted runs back; see `restore`."""
        self.restore("run", run_ids)

    def _guarded(self, change: Callable[[], None]) -> None:
        """Run a change; once one has failed, the transaction cannot be published any more."""
        self._refuse_failed()
        try:
            change()
        except BaseException as error:
            self._failed = True
            if isinstance(error, duckdb.Error | OSError):
                raise StoreError(
                    f"Writing failed: {error}", where=str(self._layout.root), do="Nothing was changed."
                ) from error
            raise

    def _refuse_failed(self) -> None:
        if self._failed:
            raise StoreError("A step of this transaction failed.", do="Start again; nothing was written.")

    def _add(self, batch: Batch, replacing: frozenset[str], on_step: Callable[[str], None]) -> None:
        for table in set(batch.frames) - set(TABLES):
            raise UnknownNameError("table", table, TABLES)
        self._ledger.add_records(batch, replacing)
        if batch.frames:
            known = Known(
                ids={kind: self._ledger.ids(kind) for kind in KINDS},
                held={table: self._ledger.held(table, self._layout.root) for table in batch.frames},
                replaced=replacing,
            )
            place = (self._cursor, self._layout, self.revision)
            folder, parts = write_parts(*place, batch.frames, known, on_step=on_step)
            self._made.append(folder)
            self._ledger.add_parts(folder, parts)

    def publish(self, action: str, note: str) -> None:
        """Make this transaction's result the current revision, unless nothing changed.

        Raises:
            StoreError: If a step failed (and its error was swallowed), or the disk refuses.
        """
        self._refuse_failed()
        if not self._ledger.changed:
            self.discard()
            self.revision = self._base
            return
        try:
            self._ledger.add_revision(now(), action, note)
            self._cursor.execute("COMMIT")
            self._cursor.execute("CHECKPOINT " + self._alias)
            self._close()
            self._layout.publish(self._working, self.revision)
        except (duckdb.Error, OSError) as error:
            raise StoreError(f"Writing failed: {error}", where=str(self._layout.root)) from error

    def discard(self) -> None:
        """Undo everything, unless it has been published (the failure came later)."""
        self._close()
        current = self._layout.current()
        if current is not None and self._layout.revision_of(current.name) == self.revision:
            return
        for leftover in (*self._made, self._working, self._working.with_suffix(".duckdb.wal")):
            remove(leftover)

    def _close(self) -> None:
        self._cursor.close()
        ENGINE.detach(self._alias)
