"""Imports of items that the store has, or had: nothing new, a new version, a replacement, or restored."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any, Literal

import polars as pl

from core.importers import Import
from core.records import Origin, Run, Stack
from core.store import LedgerKind, Snapshot
from core.work.imports.background import OWNED, RECORDS, Changed, IfStored, parts_of, renamed, with_own_runs

_KINDS: tuple[LedgerKind, ...] = ("collection", "golden_set")
_VERSION = re.compile(r"(.*) \((\d+)\)", re.DOTALL)  # Label of a later version of a run
_LATER = re.compile(r"(.+)-(\d+)", re.DOTALL)  # Id of a later version of a collection or a golden set


@dataclass(frozen=True, slots=True)
class Settled:
    """An import as it can be written."""

    made: Import  # with the names under which it is, or will be, in the store
    replacing: frozenset[str] = frozenset()  # collections and golden sets whose rows are replaced
    removed: tuple[str, ...] = ()  # runs to replace
    # Deleted collections and golden sets to restore, by kind and id
    restored: tuple[tuple[LedgerKind, str], ...] = ()
    changes: tuple[Changed, ...] = ()  # stored items with other content, and deleted ones
    undecided: tuple[Changed, ...] = ()  # changes that the choice does not cover


def settle(snapshot: Snapshot, imported: Import, choice: IfStored | None = None) -> Settled:
    """Find out what an import would change, and prepare it for writing.

    Content in the store under a later version of the name counts as existing: reimporting it adds nothing.

    Args:
        choice: How to treat other content under the same name; None leaves it unchanged.
    """
    changes: list[Changed] = []
    replacing: set[str] = set()
    restored: list[tuple[LedgerKind, str]] = []
    for kind in _KINDS:
        shelf = _Shelf(snapshot, kind, imported)
        for name in _ids(kind, imported, snapshot):
            shelved = shelf.find(name, imported)
            chosen = shelved.same
            if chosen is None and shelved.change:
                changes.append(shelved.change)
                chosen, back, gives_way = _decided(shelved, choice)
                restored += [(kind, chosen)] if back and chosen else []
                if gives_way and chosen:
                    parts = parts_of(imported, kind, name)
                    replacing |= {chosen, *(chosen + part.removeprefix(name) for part in parts)}
                if back and not gives_way and kind == "collection":  # restored unchanged
                    others = tuple(
                        collection for collection in imported.collections if collection.collection_id != name
                    )
                    imported = replace(imported, collections=others)
            chosen = chosen or name
            imported = renamed(imported, kind, name, chosen, known=chosen in shelved.known)
    imported = with_own_runs(imported, snapshot)
    runs, removed, rivals = _runs(snapshot, imported.runs, choice)
    imported, changes = replace(imported, runs=tuple(runs)), [*changes, *rivals]
    undecided = [] if choice in ("new", "replace") else changes
    if choice == "restore":
        undecided = [change for change in changes if change.deleted != "same"]
    return Settled(
        imported,
        replacing=frozenset(replacing),
        removed=tuple(dict.fromkeys(removed)),
        restored=tuple(restored),
        changes=tuple(changes),
        undecided=tuple(undecided),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """Stored versions of a name: itself and its later ones."""

    known: list[str]  # their ids, oldest first, including deleted ones
    same: str | None = None  # the one with the same content that isn't deleted
    again: str | None = None  # the deleted one with the same content
    change: Changed | None = None  # the change to decide on; None if there is none


class _Shelf:
    """Stored rows of a kind, and the import's rows of that kind; both read once."""

    def __init__(self, snapshot: Snapshot, kind: LedgerKind, imported: Import) -> None:
        self._whole = snapshot.with_deleted()
        self._kind: LedgerKind = kind
        # Items hidden with their collection come back when it is restored.
        self._seen = {*_all(snapshot, kind), *_all(snapshot, kind, hidden=True)}
        present = _all(self._whole, kind)
        self._present = frozenset(present)
        self._versions = _by_version(present)
        self._frames = {table: imported.frames[table] for table in OWNED[kind] if table in imported.frames}

    def find(self, name: str, imported: Import) -> _Found:
        """Look up a name and its later versions."""
        known = [version for _, version in self._versions.get(name, ())]
        there = [version for version in known if version in self._seen]
        same = next((version for version in there if self._equal(version, name, imported)), None)
        if same or not known:
            return _Found(known, same)
        gone = [version for version in known if version not in self._seen]
        again = next((version for version in gone if self._equal(version, name, imported)), None)
        deleted: Literal["no", "same", "other"] = "same" if again else "no" if there else "other"
        return _Found(known, None, again, Changed(self._kind, name, tuple(there or gone), deleted))

    def _equal(self, known: str, name: str, imported: Import) -> bool:
        """Return whether the store has the rows of `name` and its parts under the id `known`.

        Tables and parts that it lacks may be added.
        """
        moved = {part: known + part.removeprefix(name) for part in parts_of(imported, self._kind, name)}
        held = {part: there for part, there in moved.items() if there in self._present}
        return all(self._equal_rows(there, own, imported) for own, there in {name: known, **held}.items())

    def _equal_rows(self, known: str, name: str, imported: Import) -> bool:
        key = f"{self._kind}_id"
        if self._kind == "golden_set":
            of = {golden_set.golden_set_id: golden_set.collection_id for golden_set in imported.golden_sets}
            if name in of and self._collections[known] != of[name]:
                return False
        for table, rows in self._offered.items():
            present = getattr(self._whole, table)(known).drop(key)
            if name in rows and present.height and not _same(rows[name], present):
                return False
        return True

    @cached_property
    def _offered(self) -> Mapping[str, Mapping[str, pl.DataFrame]]:
        """Rows of the import by table and id."""
        key = f"{self._kind}_id"
        return {
            table: {
                str(name): part
                for (name,), part in rows.lazy()
                .collect()
                .partition_by(key, as_dict=True, include_key=False)
                .items()
            }
            for table, rows in self._frames.items()
        }

    @cached_property
    def _collections(self) -> Mapping[str, str]:
        rows = self._whole.golden_sets(parts=True)
        return dict(rows.select("golden_set_id", "collection_id").iter_rows())


def _decided(shelved: _Found, choice: IfStored | None) -> tuple[str | None, bool, bool]:
    """Return the id to use (None: undecided), whether it is restored, and whether its content is replaced."""
    change = shelved.change
    if change is None or choice is None:
        return None, False, False
    if choice == "new":
        last = shelved.known[-1].removeprefix(change.name).lstrip("-")
        return f"{change.name}-{int(last or 1) + 1}", False, False
    if shelved.again:
        return shelved.again, True, False
    if choice == "restore":
        return None, False, False
    return change.known[-1], change.deleted != "no", True


def _ids(kind: LedgerKind, imported: Import, snapshot: Snapshot) -> list[str]:
    """List collections or golden sets with rows in the import, and deleted collections that it names.

    Parts follow the decision on their whole.
    """
    ids_of_kind: dict[str, None] = {}
    for table in OWNED[kind]:
        if table in imported.frames:
            ids = imported.frames[table].lazy().select(f"{kind}_id").unique().collect().to_series()
            ids_of_kind |= dict.fromkeys(ids.sort().to_list())
    if kind == "collection":
        named = [collection.collection_id for collection in imported.collections]
        named += [golden_set.collection_id for golden_set in imported.golden_sets]
        named += [run.collection_id for run in imported.runs]
        deleted = set(snapshot.collections(removed=True)["collection_id"])
        ids_of_kind |= dict.fromkeys(name for name in named if name in deleted)
    wholes = {getattr(record, f"{kind}_id"): record.part_of for record in getattr(imported, RECORDS[kind])}
    return list(dict.fromkeys(wholes.get(name) or name for name in ids_of_kind))


def _all(snapshot: Snapshot, kind: LedgerKind, *, hidden: bool = False) -> list[str]:
    if kind == "collection":
        return snapshot.collections(parts=True, hidden=hidden)["collection_id"].to_list()
    return snapshot.golden_sets(parts=True, hidden=hidden)["golden_set_id"].to_list()


def _by_version(ids: Sequence[str]) -> Mapping[str, Sequence[tuple[int, str]]]:
    """List number and id of the stored versions of a name, oldest first."""
    versions_of: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for name in ids:
        versions_of[name].append((1, name))
    for name in ids:
        if (later := _LATER.fullmatch(name)) and later[1] in versions_of:
            versions_of[later[1]].append((int(later[2]), name))
    return {name: sorted(versions) for name, versions in versions_of.items()}


def _same(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    order = [name for name, dtype in one.schema.items() if not dtype.is_nested()]
    return one.height == other.height and one.sort(order).equals(other.select(one.columns).sort(order))


def _runs(
    snapshot: Snapshot, offered: tuple[Run, ...], choice: IfStored | None
) -> tuple[list[Run], list[str], list[Changed]]:
    """Return runs under their existing or new names, the replaced ones, and stored runs with the label."""
    # Runs hidden with their collection come back when it is restored.
    live = pl.concat([snapshot.runs(), snapshot.runs(hidden=True)])
    stored = {row["run_id"]: row for row in snapshot.with_deleted().runs().iter_rows(named=True)}
    present = set(live["run_id"])
    ours = {run.run_id for run in offered}
    imported = live.filter(pl.col("origin") == Origin.IMPORT.value, ~pl.col("run_id").is_in(ours))
    versions = _by_label(imported.sort("added_revision", "created_at"))
    named: list[Run] = []
    removed: list[str] = []
    changes: list[Changed] = []
    for run in offered:
        rivals = versions.get((run.collection_id, run.label), ())
        if run.run_id in present or not rivals:
            named.append(_as_stored(run, stored.get(run.run_id)))
            continue
        changes.append(Changed("run", run.label, tuple(run_id for run_id, _ in rivals)))
        label = run.label
        if choice == "replace":
            removed.append(rivals[-1][0])
            label = rivals[-1][1]
        elif choice == "new":
            taken = {other for _, other in rivals}
            label = next(free for number in count(2) if (free := f"{run.label} ({number})") not in taken)
        if label != run.label:
            stack = Stack({"name": label}) if set(run.stack.spec) == {"name"} else run.stack
            run = replace(run, label=label, stack=stack)  # noqa: PLW2901
        named.append(_as_stored(run, stored.get(run.run_id)))
    return named, removed, changes


def _by_label(runs: pl.DataFrame) -> Mapping[tuple[str, str], Sequence[tuple[str, str]]]:
    by_label: defaultdict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for run_id, collection, label in runs.select("run_id", "collection_id", "label").iter_rows():
        by_label[collection, label].append((run_id, label))
        if version := _VERSION.fullmatch(label):
            by_label[collection, version[1]].append((run_id, label))
    return by_label


def is_later_version(label: str, than: str) -> bool:
    """Return whether a run's label is that of a later version of another: ``bm25 (3)`` of ``bm25 (2)``."""
    version, before = _VERSION.fullmatch(label), _VERSION.fullmatch(than)
    if version is None:
        return False
    first = 1 if version[1] == than else None
    if before is not None and before[1] == version[1]:
        first = int(before[2])
    return first is not None and int(version[2]) > first


def _as_stored(run: Run, row: Mapping[str, Any] | None) -> Run:
    if row is None:
        return run
    return replace(run, label=row["label"], stack=Stack(json.loads(row["spec"])))
