"""Imports of what the store has, or had: nothing new, a new version, in its place, or restored."""

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
from core.store import Kind, Snapshot
from core.views.add.background import OWNED, RECORDS, Changed, Choice, parts_of, renamed, with_own_runs

_KINDS: tuple[Kind, ...] = ("collection", "golden_set")
_VERSION = re.compile(r"(.*) \(\d+\)", re.DOTALL)  # Label of a later version of a run
_LATER = re.compile(r"(.+)-(\d+)", re.DOTALL)  # Id of a later version of a collection or a golden set


@dataclass(frozen=True, slots=True)
class Settled:
    """An import as it can be written."""

    made: Import  # with the names under which it is, or will be, in the store
    replacing: frozenset[str] = frozenset()  # collections and golden sets whose rows give way
    removed: tuple[str, ...] = ()  # runs that give way
    # Deleted collections and golden sets that come back, by kind and id
    restored: tuple[tuple[Kind, str], ...] = ()
    changes: tuple[Changed, ...] = ()  # what is in the store with other content, or was deleted
    undecided: tuple[Changed, ...] = ()  # those of the changes that the choice says nothing about


def settle(snapshot: Snapshot, made: Import, choice: Choice | None = None) -> Settled:
    """Find out what an import would change, and make it so that it can be written.

    What the store has under a later version of the name counts as there: importing it again is nothing new.

    Args:
        choice: What to do where there is something else under the same name; None leaves it as it is.
    """
    changes: list[Changed] = []
    replacing: set[str] = set()
    restored: list[tuple[Kind, str]] = []
    for kind in _KINDS:
        shelf = _Shelf(snapshot, kind, made)
        for name in _ids(kind, made, snapshot):
            found = shelf.find(name, made)
            chosen = found.same
            if chosen is None and found.change:
                changes.append(found.change)
                chosen, back, gives_way = _decided(found, choice)
                restored += [(kind, chosen)] if back and chosen else []
                if gives_way and chosen:
                    parts = parts_of(made, kind, name)
                    replacing |= {chosen, *(chosen + part.removeprefix(name) for part in parts)}
                if back and not gives_way and kind == "collection":  # restored as it was
                    others = tuple(
                        collection for collection in made.collections if collection.collection_id != name
                    )
                    made = replace(made, collections=others)
            chosen = chosen or name
            made = renamed(made, kind, name, chosen, known=chosen in found.known)
    made = with_own_runs(made, snapshot)
    runs, removed, rivals = _runs(snapshot, made.runs, choice)
    made, changes = replace(made, runs=tuple(runs)), [*changes, *rivals]
    undecided = [] if choice in ("new", "replace") else changes
    if choice == "restore":
        undecided = [change for change in changes if change.deleted != "same"]
    return Settled(
        made,
        replacing=frozenset(replacing),
        removed=tuple(dict.fromkeys(removed)),
        restored=tuple(restored),
        changes=tuple(changes),
        undecided=tuple(undecided),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """What the store has under a name and its later versions."""

    known: list[str]  # their ids, oldest first, deleted ones too
    same: str | None = None  # the one that has the content already and is not deleted
    again: str | None = None  # the deleted one that has it
    change: Changed | None = None  # what must be decided; None if nothing


class _Shelf:
    """What the store has of a kind, beside the rows of that kind that an import brings; both read once."""

    def __init__(self, snapshot: Snapshot, kind: Kind, made: Import) -> None:
        self._whole = snapshot.with_deleted()
        self._kind: Kind = kind
        # What is hidden with its collection comes back when that is restored.
        self._seen = {*_all(snapshot, kind), *_all(snapshot, kind, hidden=True)}
        present = _all(self._whole, kind)
        self._present = frozenset(present)
        self._versions = _by_version(present)
        self._frames = {table: made.frames[table] for table in OWNED[kind] if table in made.frames}

    def find(self, name: str, made: Import) -> _Found:
        """What there is under a name and its later versions."""
        known = [each for _, each in self._versions.get(name, ())]
        there = [each for each in known if each in self._seen]
        same = next((each for each in there if self._equal(each, name, made)), None)
        if same or not known:
            return _Found(known, same)
        gone = [each for each in known if each not in self._seen]
        again = next((each for each in gone if self._equal(each, name, made)), None)
        deleted: Literal["no", "same", "other"] = "same" if again else "no" if there else "other"
        return _Found(known, None, again, Changed(self._kind, name, tuple(there or gone), deleted))

    def _equal(self, known: str, name: str, made: Import) -> bool:
        """Whether the store has the rows of `name` and its parts under the id `known`.

        What it lacks may be added: tables, and parts.
        """
        moved = {part: known + part.removeprefix(name) for part in parts_of(made, self._kind, name)}
        held = {part: there for part, there in moved.items() if there in self._present}
        return all(self._equal_rows(there, own, made) for own, there in {name: known, **held}.items())

    def _equal_rows(self, known: str, name: str, made: Import) -> bool:
        key = f"{self._kind}_id"
        if self._kind == "golden_set":
            of = {golden_set.golden_set_id: golden_set.collection_id for golden_set in made.golden_sets}
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
        """Golden set → its collection."""
        rows = self._whole.golden_sets(parts=True)
        return dict(rows.select("golden_set_id", "collection_id").iter_rows())


def _decided(found: _Found, choice: Choice | None) -> tuple[str | None, bool, bool]:
    """The id to use (None: not decided), whether that is restored, whether what it holds gives way."""
    change = found.change
    if change is None or choice is None:
        return None, False, False
    if choice == "new":
        last = found.known[-1].removeprefix(change.name).lstrip("-")
        return f"{change.name}-{int(last or 1) + 1}", False, False
    if found.again:
        return found.again, True, False
    if choice == "restore":
        return None, False, False
    return change.known[-1], change.deleted != "no", True


def _ids(kind: Kind, made: Import, snapshot: Snapshot) -> list[str]:
    """Collections or golden sets of which the import has rows, and collections it names that are deleted.

    Parts go with their whole: what is done about that is done about them.
    """
    found: dict[str, None] = {}
    for table in OWNED[kind]:
        if table in made.frames:
            ids = made.frames[table].lazy().select(f"{kind}_id").unique().collect().to_series()
            found |= dict.fromkeys(ids.sort().to_list())
    if kind == "collection":
        named = [collection.collection_id for collection in made.collections]
        named += [golden_set.collection_id for golden_set in made.golden_sets]
        named += [run.collection_id for run in made.runs]
        deleted = set(snapshot.collections(removed=True)["collection_id"])
        found |= dict.fromkeys(name for name in named if name in deleted)
    wholes = {getattr(each, f"{kind}_id"): each.part_of for each in getattr(made, RECORDS[kind])}
    return list(dict.fromkeys(wholes.get(name) or name for name in found))


def _all(snapshot: Snapshot, kind: Kind, *, hidden: bool = False) -> list[str]:
    if kind == "collection":
        return snapshot.collections(parts=True, hidden=hidden)["collection_id"].to_list()
    return snapshot.golden_sets(parts=True, hidden=hidden)["golden_set_id"].to_list()


def _by_version(ids: Sequence[str]) -> Mapping[str, Sequence[tuple[int, str]]]:
    """Number and id of what the store has under a name and its later versions, oldest first."""
    found: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for each in ids:
        found[each].append((1, each))
    for each in ids:
        if (later := _LATER.fullmatch(each)) and later[1] in found:
            found[later[1]].append((int(later[2]), each))
    return {name: sorted(versions) for name, versions in found.items()}


def _same(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    order = [name for name, dtype in one.schema.items() if not dtype.is_nested()]
    return one.height == other.height and one.sort(order).equals(other.select(one.columns).sort(order))


def _runs(
    snapshot: Snapshot, offered: tuple[Run, ...], choice: Choice | None
) -> tuple[list[Run], list[str], list[Changed]]:
    """Runs with the names they have or get, those that give way, and what is there under the same label."""
    # Runs that are hidden with their collection come back when that is restored.
    live = pl.concat([snapshot.runs(), snapshot.runs(hidden=True)])
    stored = {row["run_id"]: row for row in snapshot.with_deleted().runs().iter_rows(named=True)}
    present = set(live["run_id"])
    ours = {run.run_id for run in offered}
    imported = live.filter(pl.col("origin") == Origin.IMPORT.value, ~pl.col("run_id").is_in(ours))
    versions = _by_label(imported.sort("added_revision", "created_at"))
    made: list[Run] = []
    removed: list[str] = []
    changes: list[Changed] = []
    for run in offered:
        rivals = versions.get((run.collection_id, run.label), ())
        if run.run_id in present or not rivals:
            made.append(_as_stored(run, stored.get(run.run_id)))
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
        made.append(_as_stored(run, stored.get(run.run_id)))
    return made, removed, changes


def _by_label(runs: pl.DataFrame) -> Mapping[tuple[str, str], Sequence[tuple[str, str]]]:
    """Ids and labels of runs, by their collection and the label that they carry or are a version of."""
    found: defaultdict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for run_id, collection, label in runs.select("run_id", "collection_id", "label").iter_rows():
        found[collection, label].append((run_id, label))
        if version := _VERSION.fullmatch(label):
            found[collection, version[1]].append((run_id, label))
    return found


def _as_stored(run: Run, row: Mapping[str, Any] | None) -> Run:
    """The run under the label that the store has it under, if it has it."""
    if row is None:
        return run
    return replace(run, label=row["label"], stack=Stack(json.loads(row["spec"])))
