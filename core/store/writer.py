"""One transaction: a private copy of the catalogue that becomes the current one, or is thrown away.

Rows go to part folders first and the catalogue that names them is published last, so that what a killed
writer leaves behind is invisible; the next writer sweeps it away.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from core.errors import InputError, StoreError, UnknownNameError
from core.records import TABLES, Batch, Run, canonical_json, now
from core.store import migrations
from core.store.engine import ENGINE
from core.store.layout import Layout, remove
from core.store.parts import Known, Part, folders, write_parts

_KINDS = {"collection": "collections", "golden_set": "golden_sets", "run": "runs"}
_READ = {kind: "SELECT * FROM " + table for kind, table in _KINDS.items()}
Rows = dict[str, dict[str, Any]]


class Writer:
    """Adds, removes and restores within one transaction. Made by `Store.write`.

    Attributes:
        revision: The revision that this transaction makes; once it has ended without a change, the one before.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        base = layout.current()
        self._base = 0 if base is None else layout.revision_of(base.name)
        self.revision = self._base + 1
        self._changed = False
        self._failed = False
        self._made: list[Path] = []
        self._working = layout.catalogues / f".{self.revision:08d}-{secrets.token_hex(4)}.duckdb"
        if base is not None:
            # Closing a copy's handle drops this process's locks on the original. That is harmless here only
            # because a published catalogue is never opened for writing by anybody.
            shutil.copyfile(base, self._working)
        self._alias = ENGINE.attach(self._working, read_only=False)
        try:
            self._cursor = ENGINE.cursor(self._alias)
            self._cursor.execute("BEGIN")
            self._changed = migrations.migrate(self._cursor, str(layout.root)) > 0 and base is not None
            self._sweep()
        except BaseException:
            self.discard()
            raise

    def _sweep(self) -> None:
        paths = self._cursor.execute("SELECT path FROM parts").fetchall()
        for orphan in self._layout.orphans(folders(path for (path,) in paths)):
            if orphan.name.removesuffix(".wal") != self._working.name:
                remove(orphan)

    def add(self, batch: Batch) -> None:
        """Add records and their rows.

        What is in the store already with equal content is left alone (a removed run is restored); all rows
        that one id has in one table come in one batch.

        Args:
            batch: Records and frames; frames have the columns of `TABLES`, in any order.

        Raises:
            InputError: If a frame or a record cannot be used.
            UnknownNameError: If something refers to a record that does not exist.
            StoreError: If an id exists with other content.
        """
        self._guarded(lambda: self._add(batch))

    def remove_runs(self, run_ids: Sequence[str]) -> None:
        """Hide runs from this revision on; their rows stay, and earlier revisions show them.

        Raises:
            UnknownNameError: If a run does not exist.
        """
        self._guarded(lambda: self._turn(run_ids, "removed"))

    def restore_runs(self, run_ids: Sequence[str]) -> None:
        """Bring removed runs back.

        Raises:
            UnknownNameError: If a run does not exist.
        """
        self._guarded(lambda: self._turn(run_ids, "restored"))

    def _guarded(self, change: Callable[[], None]) -> None:
        """Run a change; once one has failed, the transaction cannot be published any more."""
        if self._failed:
            raise StoreError(
                "An earlier step of this transaction failed.", do="Start again; nothing was written."
            )
        try:
            change()
        except BaseException as error:
            self._failed = True
            if isinstance(error, duckdb.Error | OSError):
                raise StoreError(
                    f"Writing failed: {error}", where=str(self._layout.root), do="Nothing was changed."
                ) from error
            raise

    def _add(self, batch: Batch) -> None:
        for table in set(batch.frames) - set(TABLES):
            raise UnknownNameError("table", table, TABLES)
        collections = _rows("collection", batch.collections, asdict)
        self._records("collection", collections)
        golden_sets = _rows("golden_set", batch.golden_sets, asdict)
        self._refer("collection", golden_sets)
        self._records("golden_set", golden_sets)
        runs = _rows("run", batch.runs, _run_row)
        self._refer("collection", runs)
        self._stacks(batch.runs)
        self._records("run", runs)
        self._restore_added(list(runs))
        self._frames(batch)

    def _records(self, kind: str, offered: Rows) -> None:
        """Insert new records; refuse those that exist with other content."""
        known = (
            {row[f"{kind}_id"]: row for row in self._cursor.sql(_READ[kind]).pl().to_dicts()}
            if offered
            else {}
        )
        for record_id, row in offered.items():
            old = known.get(record_id)
            differing = [name for name in row if old and name != "created_at" and row[name] != old[name]]
            if old and differing:
                raise StoreError(
                    f"The {kind.replace('_', ' ')} {record_id!r} is in the store with another {differing[0]}: "
                    f"{str(old[differing[0]])[:80]!r}, not {str(row[differing[0]])[:80]!r}.",
                    do="Give the new one another id.",
                )
        new = {record_id: row for record_id, row in offered.items() if record_id not in known}
        self._insert(_KINDS[kind], list(new.values()))
        self._events(kind, list(new), "added")

    def _stacks(self, runs: Iterable[Run]) -> None:
        known = {row[0] for row in self._cursor.execute("SELECT stack_id FROM stacks").fetchall()}
        stacks = {run.stack.stack_id: run.stack for run in runs}
        self._insert(
            "stacks",
            [
                {"stack_id": stack_id, "spec": canonical_json(stack.spec), "label": stack.label}
                for stack_id, stack in stacks.items()
                if stack_id not in known
            ],
        )

    def _restore_added(self, run_ids: list[str]) -> None:
        if run_ids and self._base:
            removed = self._states("run", "removed")
            self._events("run", [run_id for run_id in run_ids if run_id in removed], "restored")

    def _refer(self, kind: str, offered: Rows) -> None:
        if offered:
            known = self._ids(kind)
            for record_id, row in offered.items():
                if row[f"{kind}_id"] not in known:
                    raise UnknownNameError(kind.replace("_", " "), row[f"{kind}_id"], known, where=record_id)

    def _frames(self, batch: Batch) -> None:
        if not batch.frames:
            return
        known = Known(
            ids={kind: self._ids(kind) for kind in _KINDS},
            held={table: self._held(table) for table in batch.frames},
        )
        folder, parts = write_parts(self._cursor, self._layout, self.revision, batch.frames, known)
        self._made.append(folder)
        self._list(folder, parts)

    def _list(self, folder: Path, parts: Sequence[Part]) -> None:
        numbered = list(enumerate(parts, self._count("parts")))
        self._insert(
            "parts",
            [
                {
                    "part_id": number,
                    "table_name": part.table,
                    "path": f"parts/{folder.name}/{part.name}",
                    "rows": part.rows,
                    "bytes": part.size,
                    "checksum": part.checksum,
                    "revision": self.revision,
                }
                for number, part in numbered
            ],
        )
        self._insert(
            "part_keys",
            [
                {"part_id": number, "id": key, "rows": rows, "queries": queries}
                for number, part in numbered
                for key, (rows, queries) in part.keys.items()
            ],
        )

    def _turn(self, run_ids: Sequence[str], event: str) -> None:
        known, removed = self._ids("run"), self._states("run", "removed")
        for run_id in run_ids:
            if run_id not in known:
                raise UnknownNameError("run", run_id, known)
        wanted = [run_id for run_id in dict.fromkeys(run_ids) if (run_id in removed) == (event == "restored")]
        self._events("run", wanted, event)

    def _ids(self, kind: str) -> frozenset[str]:
        found = self._cursor.execute("SELECT id FROM state(?, ?)", [kind, self.revision]).fetchall()
        return frozenset(row[0] for row in found)

    def _states(self, kind: str, event: str) -> frozenset[str]:
        found = self._cursor.execute(
            "SELECT id FROM state(?, ?) WHERE event = ?", [kind, self.revision, event]
        )
        return frozenset(row[0] for row in found.fetchall())

    def _held(self, table: str) -> Mapping[str, Path]:
        found = self._cursor.execute("SELECT id, path FROM held(?, ?)", [table, self.revision]).fetchall()
        return {owner: self._layout.root / path for owner, path in found}

    def _events(self, kind: str, ids: Sequence[str], event: str) -> None:
        self._insert(
            "events",
            [
                {"seq": seq, "kind": kind, "id": record_id, "revision": self.revision, "event": event}
                for seq, record_id in enumerate(ids, self._count("events"))
            ],
        )

    def _count(self, table: str) -> int:
        return int(self._cursor.execute("SELECT count(*) FROM " + table).fetchall()[0][0])

    def _insert(self, table: str, rows: list[dict[str, Any]]) -> None:
        """Insert many rows at once (row by row takes a millisecond each)."""
        if rows:
            self._cursor.register("incoming", pl.DataFrame(rows, infer_schema_length=None))
            self._cursor.execute(f"INSERT INTO {table} BY NAME SELECT * FROM incoming")  # noqa: S608
            self._cursor.unregister("incoming")
            self._changed = True

    def publish(self, action: str, note: str) -> None:
        """Make this transaction's result the current revision, unless nothing changed."""
        if self._failed:
            raise StoreError("A step of this transaction failed.", do="Start again; nothing was written.")
        if not self._changed:
            self.discard()
            self.revision = self._base
            return
        at = now().astimezone(UTC).replace(tzinfo=None)
        self._insert(
            "revisions", [{"revision": self.revision, "made_at": at, "action": action, "note": note}]
        )
        self._cursor.execute("COMMIT")
        self._cursor.execute("CHECKPOINT " + self._alias)
        self._close()
        self._layout.publish(self._working, self.revision)

    def discard(self) -> None:
        """Undo everything."""
        self._close()
        for leftover in (*self._made, self._working, self._working.with_suffix(".duckdb.wal")):
            remove(leftover)

    def _close(self) -> None:
        self._cursor.close()
        ENGINE.detach(self._alias)


def _rows(kind: str, records: Iterable[Any], row: Callable[[Any], dict[str, Any]]) -> Rows:
    """Records as catalogue rows by id; the same record twice counts once."""
    rows: Rows = {}
    for record in records:
        made = row(record)
        record_id = made[f"{kind}_id"]
        if not record_id:
            raise InputError(f"A {kind.replace('_', ' ')} has an empty id.", do="Give it one.")
        if rows.setdefault(record_id, made) != made:
            raise InputError(
                f"Two records in one batch have the id {record_id!r}.", do="Give one another id."
            )
    return rows


def _run_row(run: Run) -> dict[str, Any]:
    try:
        environment, manifest = canonical_json(run.environment), canonical_json(run.manifest)
        stack_id = run.stack.stack_id
    except (TypeError, ValueError) as error:
        raise InputError(
            f"The run {run.run_id!r} cannot be written as JSON: {error}",
            do="Use texts, numbers, lists and maps.",
        ) from error
    return {
        "run_id": run.run_id,
        "collection_id": run.collection_id,
        "stack_id": stack_id,
        "label": run.label,
        "origin": run.origin.value,
        "pool": run.pool,
        "environment": environment,
        "manifest": manifest,
        "created_at": run.created_at.astimezone(UTC).replace(tzinfo=None),
    }
