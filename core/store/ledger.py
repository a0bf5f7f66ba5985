"""The catalogue rows that a writer is building, and how events decide whether records exist."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import duckdb
import polars as pl

from core.errors import InputError, StoreError, UnknownNameError
from core.records import Batch, GoldenSet, JsonMap, Run, Stack, canonical_json, part_id
from core.store.parts import PartFile
from core.store.rules import GROWING
from core.store.seals import Sealed

STATE = """
SELECT kind, id, min(revision) AS added_revision, arg_max(event, seq) AS event
FROM events WHERE revision <= $revision GROUP BY kind, id
"""
WHOLES = """
SELECT 'collection' AS kind, collection_id AS id, collection_id, part_of FROM collections
UNION ALL SELECT 'golden_set', golden_set_id, collection_id, part_of FROM golden_sets
UNION ALL SELECT 'run', run_id, collection_id, NULL FROM runs
"""
THERE = (pl.col("event") != "removed") & pl.col("behind").is_null()
DELETED = (pl.col("event") == "removed") & pl.col("behind").is_null()
HIDDEN = (pl.col("event") != "removed") & pl.col("behind").is_not_null()
LedgerKind = Literal["collection", "golden_set", "run"]
KINDS: tuple[LedgerKind, ...] = ("collection", "golden_set", "run")
INCUMBENT = "incumbent"
"""Kind of the events that mark a run as that of the stack that runs today; `id` is the run's."""
_Rows = dict[str, dict[str, Any]]
_HELD = "SELECT h.id, h.path, p.bytes, p.checksum FROM held(?, ?) h JOIN parts p ON p.path = h.path"
_GROWN = """
SELECT k.id, p.path, p.bytes, p.checksum FROM part_keys k JOIN parts p USING (part_id)
WHERE p.table_name = ? AND p.revision <= ?
"""
# The time of a run does not make it a different run, so that a repeated import is recognised.
_NOT_COMPARED = "created_at"


def standing(state: pl.DataFrame, wholes: Callable[[], pl.DataFrame]) -> pl.DataFrame:
    """Return the state of every record: existing, deleted or hidden."""
    gone = state.filter((pl.col("event") == "removed") & ~pl.col("kind").is_in(["run", INCUMBENT]))
    if gone.is_empty():
        return state.with_columns(behind=pl.lit(None, pl.String))
    named = pl.format("{} '{}'", pl.col("kind").str.replace("_", " "), "id")
    gone = gone.select("kind", "id", behind=named)
    collections = gone.filter(kind="collection").drop("kind")
    records = wholes()
    of_parts = _behind(records, gone, ["kind", "part_of"], ["kind", "id"])
    parts = of_parts.filter(kind="collection").select("id", "behind")
    of_collections = _behind(
        records.filter(pl.col("kind") != "collection"),
        pl.concat([collections, parts]),
        ["collection_id"],
        ["id"],
    )
    hidden = pl.concat([of_collections, of_parts]).unique(["kind", "id"], keep="first", maintain_order=True)
    return state.join(hidden, on=["kind", "id"], how="left", maintain_order="left")


def _behind(records: pl.DataFrame, gone: pl.DataFrame, left: list[str], right: list[str]) -> pl.DataFrame:
    """Return kind, id and behind (what hides it) of records that refer to something deleted."""
    return records.join(gone, left_on=left, right_on=right).select("kind", "id", "behind")


class Ledger:
    """Reads and appends catalogue rows within one open transaction.

    Attributes:
        changed: Whether anything was appended.
    """

    def __init__(self, cursor: duckdb.DuckDBPyConnection, revision: int) -> None:
        self._cursor = cursor
        self._revision = revision
        self.changed = False
        self._state: pl.DataFrame | None = None  # where records stand, until something changes

    def ids(self, kind: str) -> frozenset[str]:
        """Return ids of a kind that rows may belong to, including those of deleted runs."""
        standing = self._standing(kind)
        return frozenset((standing if kind == "run" else standing.filter(THERE))["id"])

    def held(self, tables: Iterable[str], root: Path) -> dict[str, dict[str, list[Sealed]]]:
        """Return, for each table, the files of the store at `root` that hold an id's rows.

        There is one file, unless the table grows.
        """
        filled = dict(self._cursor.execute("SELECT DISTINCT table_name, true FROM parts").fetchall())
        return {table: self._held(table, root) if table in filled else {} for table in tables}

    def _held(self, table: str, root: Path) -> dict[str, list[Sealed]]:
        answer = self._cursor.execute(_GROWN if table in GROWING else _HELD, [table, self._revision])
        files: dict[str, list[Sealed]] = {}
        for owner, path, *seal in answer.fetchall():
            files.setdefault(owner, []).append(Sealed(f"{root}/{path}", *seal))
        return files

    def paths(self) -> list[str]:
        """Return every file that the catalogue lists, relative to the store."""
        return [row[0] for row in self._cursor.execute("SELECT path FROM parts").fetchall()]

    def add_records(self, batch: Batch, replacing: frozenset[str] = frozenset()) -> None:
        """Append a batch's records; leave existing ones of equal content alone."""
        self._refuse_deleted(batch)
        collections = _rows("collection", batch.collections, asdict)
        self._records("collection", collections, replacing)
        golden_sets = _rows("golden_set", batch.golden_sets, _golden_row)
        runs = _rows("run", batch.runs, _run_row)
        self._check_collections(golden_sets | runs)
        self._records("golden_set", golden_sets, replacing)
        for kind, offered in (("collection", collections), ("golden_set", golden_sets)):
            _check_parts(kind, offered.values(), self._wholes(kind) if offered else {})
        stacks = {run.stack.stack_id: run.stack for run in batch.runs}
        self._records("stack", _rows("stack", stacks.values(), _stack_row))
        self._records("run", runs)
        self.turn("run", list(runs), "restored")
        for run_id in batch.incumbents:
            if run_id in self.ids("run") and not self._marked_beside(run_id):
                self.mark(run_id)

    def turn(self, kind: str, ids: Sequence[str], event: str) -> None:
        """Record that records were deleted or restored; leave those alone that already are."""
        if not ids:
            return
        known = {row["id"]: row for row in self._standing(kind).iter_rows(named=True)}
        wholes = self._wholes(kind) if kind != "run" else {}
        for record_id in ids:
            named = f"The {kind.replace('_', ' ')} {record_id!r}"
            if record_id not in known:
                raise UnknownNameError(kind.replace("_", " "), record_id, known)
            if whole := wholes.get(record_id):
                raise InputError(
                    f"{named} is part of {whole!r}.", do=f"Name {whole!r}; its parts go with it."
                )
            if behind := known[record_id]["behind"]:
                raise StoreError(f"{named} is hidden with the deleted {behind}.", do="Restore that.")
        deleted = {record_id for record_id, row in known.items() if row["event"] == "removed"}
        self._events(
            kind,
            [
                record_id
                for record_id in dict.fromkeys(ids)
                if (record_id in deleted) == (event == "restored")
            ],
            event,
        )

    def mark(self, run_id: str) -> None:
        """Record that a run's stack runs today, replacing the collection's previous one."""
        if run_id not in (known := self.ids("run")):
            raise UnknownNameError("run", run_id, known)
        marked = self._marked_beside(run_id)
        self._events(INCUMBENT, [each for each in marked if each != run_id], "removed")
        self._events(INCUMBENT, [run_id] if run_id not in marked else [], "added")

    def unmark(self, collection_id: str) -> None:
        """Record that none of a collection's stacks is known to run today."""
        self._events(INCUMBENT, self._marked(collection_id), "removed")

    def _marked(self, collection_id: str) -> list[str]:
        """Return the marked runs of a collection: one, or none."""
        marked = self._standing(INCUMBENT).filter(pl.col("event") == "added")["id"].to_list()
        own = "SELECT run_id FROM runs WHERE collection_id = ? AND run_id IN (SELECT unnest(?)) ORDER BY 1"
        return [row[0] for row in self._cursor.execute(own, [collection_id, marked]).fetchall()]

    def _marked_beside(self, run_id: str) -> list[str]:
        whose = "SELECT collection_id FROM runs WHERE run_id = ?"
        (collection_id,) = self._cursor.execute(whose, [run_id]).fetchall()[0]
        return self._marked(collection_id)

    def add_parts(self, folder: Path, parts: Sequence[PartFile]) -> None:
        """List newly written parts."""
        numbered = list(enumerate(parts, self._count("SELECT count(*) FROM parts")))
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
                    "revision": self._revision,
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

    def reseal(self, files: Mapping[str, tuple[int, str]]) -> None:
        """Update the bytes and checksums of listed files."""
        for path, seal in files.items():
            self._cursor.execute("UPDATE parts SET bytes = ?, checksum = ? WHERE path = ?", [*seal, path])
        self.changed = True

    def add_revision(self, at: datetime, action: str, note: str) -> None:
        """Record the action that made this revision, and its time."""
        made_at = at.astimezone(UTC).replace(tzinfo=None)
        self._insert(
            "revisions", [{"revision": self._revision, "made_at": made_at, "action": action, "note": note}]
        )

    def _records(self, kind: str, offered: _Rows, replacing: frozenset[str] = frozenset()) -> None:
        """Insert new records; refuse existing ids with other content (a stack's id is its content)."""
        if not offered:
            return
        read = f"SELECT * FROM {kind}s WHERE {kind}_id IN (SELECT unnest($ids))"  # noqa: S608 - own names
        stored = self._cursor.sql(read, params={"ids": list(offered)}).pl()
        known = {row[f"{kind}_id"]: row for row in stored.to_dicts()}
        for record_id, old in known.items() if kind in KINDS else ():
            if record_id in replacing:
                self._replace(kind, old, offered[record_id])
            else:
                _compare(kind, record_id, old, offered[record_id])
        new = [record_id for record_id in offered if record_id not in known]
        self._insert(f"{kind}s", [offered[record_id] for record_id in new])
        if kind in KINDS:
            self._events(kind, new, "added")

    def _replace(self, kind: str, old: Mapping[str, Any], new: dict[str, Any]) -> None:
        """Replace a record; its owner, and the whole that it is part of, stay."""
        stay = ("collection_id", "part_of")
        _compare(kind, new[f"{kind}_id"], old, {name: new[name] for name in stay if name in new})
        if any(value != old[name] for name, value in new.items()):
            own = f"DELETE FROM {kind}s WHERE {kind}_id = ?"  # noqa: S608 - own names
            self._cursor.execute(own, [new[f"{kind}_id"]])
            self._state = None
            self._insert(f"{kind}s", [new])

    def _check_collections(self, offered: _Rows) -> None:
        known = self.ids("collection") if offered else frozenset()
        for record_id, row in offered.items():
            whole = row["collection_id"]
            for name in (whole, part_id(whole, row.get("chunking") or None)):
                if name not in known:
                    raise UnknownNameError("collection", name, known, where=record_id)

    def _refuse_deleted(self, batch: Batch) -> None:
        """Refuse to add to a deleted record: it would return, with all that it hid, by surprise."""
        named: dict[str, set[str | None]] = {
            "collection": {
                *(
                    name
                    for collection in batch.collections
                    for name in (collection.collection_id, collection.part_of)
                ),
                *(golden_set.collection_id for golden_set in batch.golden_sets),
                *(run.collection_id for run in batch.runs),
            },
            "golden_set": {
                name
                for golden_set in batch.golden_sets
                for name in (golden_set.golden_set_id, golden_set.part_of)
            },
        }
        for kind, names in named.items():
            deleted = set(self._standing(kind).filter(~THERE)["id"].to_list()) if names else set()
            for name in sorted(deleted & names):
                raise StoreError(
                    f"The {kind.replace('_', ' ')} {name!r} is deleted.",
                    do="Restore it, or give the new one another id.",
                )

    def _standing(self, kind: str) -> pl.DataFrame:
        """Return the present state of the records of a kind, as `standing` does."""
        if self._state is None:
            state = self._cursor.sql(STATE, params={"revision": self._revision}).pl()
            self._state = standing(state, lambda: self._cursor.sql(WHOLES).pl())
        return self._state.filter(kind=kind)

    def _wholes(self, kind: str) -> dict[str, str | None]:
        pairs = self._cursor.execute(f"SELECT {kind}_id, part_of FROM {kind}s")  # noqa: S608 - own names
        return dict(pairs.fetchall())

    def _events(self, kind: str, ids: Sequence[str], event: str) -> None:
        first = self._count("SELECT count(*) FROM events") if ids else 0
        self._insert(
            "events",
            [
                {"seq": seq, "kind": kind, "id": record_id, "revision": self._revision, "event": event}
                for seq, record_id in enumerate(ids, first)
            ],
        )

    def _count(self, sql: str) -> int:
        return int(self._cursor.execute(sql).fetchall()[0][0])

    def _insert(self, table: str, rows: list[dict[str, Any]]) -> None:
        """Insert many rows at once (row by row takes a millisecond each)."""
        if rows:
            self._cursor.register("incoming", pl.DataFrame(rows, infer_schema_length=None))
            self._cursor.execute(f"INSERT INTO {table} BY NAME SELECT * FROM incoming")  # noqa: S608 - own names
            self._cursor.unregister("incoming")
            self.changed, self._state = True, None


def _check_parts(kind: str, offered: Iterable[Mapping[str, Any]], known: Mapping[str, str | None]) -> None:
    """Refuse a part that could not be found from its whole."""
    for record in offered:
        name, whole = record[f"{kind}_id"], record["part_of"]
        if whole is None:
            continue
        if whole not in known or known[whole] is not None:
            state = "is a part itself" if whole in known else "is absent"
            problem = f"It is part of {whole!r}, which {state}."
        elif not (name.startswith(part_id(whole, "")) and name != part_id(whole, "")):
            problem = f"It is part of {whole!r}, so its id is {part_id(whole, 'name of the chunking')!r}."
        else:
            continue
        raise InputError(problem, where=f"{kind.replace('_', ' ')} {name!r}", do="Nothing was written.")


def _compare(kind: str, record_id: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    for name, value in new.items():
        if name != _NOT_COMPARED and value != old[name]:
            raise StoreError(
                f"The {kind.replace('_', ' ')} {record_id!r} is in the store with another {name}: "
                f"{str(old[name])[:80]!r}, not {str(value)[:80]!r}.",
                do="Give the new one another id.",
            )


def _rows(kind: str, records: Iterable[Any], row: Callable[[Any], dict[str, Any]]) -> _Rows:
    """Return records as catalogue rows by id; the same record twice counts once."""
    rows: _Rows = {}
    for record in records:
        values = row(record)
        record_id = values[f"{kind}_id"]
        if not record_id:
            raise InputError(f"A {kind.replace('_', ' ')} has an empty id.", do="Give it one.")
        if rows.setdefault(record_id, values) != values:
            raise InputError(
                f"Two records in one batch have the id {record_id!r}.", do="Give one another id."
            )
    return rows


def _stack_row(stack: Stack) -> dict[str, Any]:
    return {"stack_id": stack.stack_id, "spec": canonical_json(stack.spec), "label": stack.label}


def _golden_row(golden: GoldenSet) -> dict[str, Any]:
    texts = {"parents": json.dumps(golden.parents), "manifest": _json(golden, golden.manifest)}
    return {field.name: getattr(golden, field.name) for field in fields(golden)} | texts


def _json(record: GoldenSet | Run, value: JsonMap) -> str:
    try:
        return canonical_json(value)
    except (TypeError, ValueError) as error:
        name = record.run_id if isinstance(record, Run) else record.golden_set_id
        kind = "run" if isinstance(record, Run) else "golden set"
        raise InputError(
            f"The {kind} {name!r} cannot be written as JSON: {error}",
            do="Use texts, numbers, lists and maps.",
        ) from error


def _run_row(run: Run) -> dict[str, Any]:
    _json(run, run.stack.spec)
    own = {field.name: getattr(run, field.name) for field in fields(run) if field.name != "stack"}
    return own | {
        "stack_id": run.stack.stack_id,
        "origin": run.origin.value,
        "environment": _json(run, run.environment),
        "manifest": _json(run, run.manifest),
        "created_at": run.created_at.astimezone(UTC).replace(tzinfo=None),
    }
