"""Imports of what is in the store already with other content: nothing new, a new version, or in its place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal, TypeVar

import polars as pl

from core.errors import InputError
from core.importers import Import
from core.records import Collection, GoldenSet, Origin, Run, Stack
from core.store import Snapshot

Choice = Literal["new", "replace"]
CHOICES: Mapping[Choice, str] = {
    "new": "Keep both: what comes now is a new version",
    "replace": "Replace: what comes now takes its place (earlier revisions still show the old)",
}
_Record = TypeVar("_Record", Collection, GoldenSet, Run)
_TABLES = {"collection": ("queries", "passages", "chunks"), "golden_set": ("judgements", "spans")}


@dataclass(frozen=True, slots=True)
class Changed:
    """Something that is in the store under the same name with other content.

    Attributes:
        kind: "run", "golden_set" or "collection".
        name: Label of a run, id of the others.
        known: Ids in the store that carry the name, or a later version of it; newest last.
    """

    kind: str
    name: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        """In words."""
        return f"{self.kind.replace('_', ' ')} {self.name!r}"


class ChangedError(InputError):
    """An import would change what is there, and nobody has said how.

    Attributes:
        changes: What it would change.
    """

    def __init__(self, changes: tuple[Changed, ...]) -> None:
        some = ", ".join(map(str, changes[:3])) + (f" and {len(changes) - 3} more" if changes[3:] else "")
        super().__init__(
            f"In the store already with other content: {some}. Nothing was written.",
            do="Say whether to keep both as a new version (--if-changed new) or to replace what is there "
            "(--if-changed replace).",
        )
        self.changes = changes


@dataclass(frozen=True, slots=True)
class Settled:
    """An import as it can be written.

    Attributes:
        made: With the names under which it is, or will be, in the store.
        replacing: Collections and golden sets whose rows give way.
        removed: Runs that give way.
        changes: What is in the store with other content.
    """

    made: Import
    replacing: frozenset[str] = frozenset()
    removed: tuple[str, ...] = ()
    changes: tuple[Changed, ...] = ()


def settle(snapshot: Snapshot, made: Import, choice: Choice | None = None) -> Settled:
    """Find out what an import would change, and make it so that it can be written.

    What the store has under a later version of the name counts as there: importing it again is nothing new.

    Args:
        snapshot: What is there.
        made: What was read.
        choice: What to do where there is something else under the same name; None leaves it as it is.
    """
    changes: list[Changed] = []
    replacing: set[str] = set()
    for kind in ("collection", "golden_set"):
        for name in _ids(kind, made):
            known = _versions(snapshot, kind, name)
            chosen = next((each for each in known if _equal(snapshot, kind, each, name, made)), None)
            if chosen is None and known:
                changes.append(Changed(kind, name, tuple(known)))
                chosen = {"replace": known[-1], "new": _next(name, known)}.get(choice or "")
                replacing |= {known[-1]} if choice == "replace" else set()
            chosen = chosen or name
            made = _renamed(made, kind, name, chosen, known=chosen in known)
    runs, removed, found = _runs(snapshot, made.runs, choice)
    made = replace(made, runs=tuple(runs))
    return Settled(made, frozenset(replacing), tuple(dict.fromkeys(removed)), (*changes, *found))


def _ids(kind: str, made: Import) -> list[str]:
    """Collections or golden sets of which the import has rows."""
    found: dict[str, None] = {}
    for table in _TABLES[kind]:
        if table in made.frames:
            ids = made.frames[table].lazy().select(f"{kind}_id").unique().collect().to_series()
            found |= dict.fromkeys(ids.sort().to_list())
    return list(found)


def _versions(snapshot: Snapshot, kind: str, name: str) -> list[str]:
    """The id and its later versions as far as the store has them, oldest first."""
    held = snapshot.collections(parts=True) if kind == "collection" else snapshot.golden_sets(parts=True)
    pattern = re.compile(re.escape(name) + r"(?:-(\d+))?")
    found = [(match, each) for each in held[f"{kind}_id"] if (match := pattern.fullmatch(each))]
    if name not in (each for _, each in found):
        return []
    return [each for _, each in sorted(found, key=lambda pair: int(pair[0][1] or 1))]


def _next(name: str, known: list[str]) -> str:
    last = known[-1].removeprefix(name).lstrip("-")
    return f"{name}-{int(last or 1) + 1}"


def _equal(snapshot: Snapshot, kind: str, known: str, name: str, made: Import) -> bool:
    """Whether the store has the rows of `name` under the id `known`; tables that it lacks may be added."""
    key = f"{kind}_id"
    if kind == "golden_set":
        of = {each.golden_set_id: each.collection_id for each in made.golden_sets}
        stored = snapshot.golden_sets(parts=True).filter(pl.col(key) == known)
        if name in of and stored["collection_id"][0] != of[name]:
            return False
    for table in _TABLES[kind]:
        if table not in made.frames:
            continue
        offered = made.frames[table].lazy().filter(pl.col(key) == name).drop(key).collect()
        present = getattr(snapshot, table)(known).drop(key)
        if offered.height and present.height and not _same(offered, present):
            return False
    return True


def _same(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    order = [name for name, dtype in one.schema.items() if not dtype.is_nested()]
    return one.height == other.height and one.sort(order).equals(other.select(one.columns).sort(order))


def _renamed(made: Import, kind: str, name: str, chosen: str, *, known: bool) -> Import:
    """The import with another id for a collection or golden set, wherever it is named.

    Args:
        made: The import.
        kind: "collection" or "golden_set".
        name: Id in the import.
        chosen: Id to use.
        known: Whether the store has a record of that id.
    """
    if name == chosen:
        return made
    key = f"{kind}_id"
    frames = {
        table: rows.lazy().with_columns(pl.col(key).replace(name, chosen)) if table in _TABLES[kind] else rows
        for table, rows in made.frames.items()
    }

    def moved(record: _Record) -> _Record:
        if getattr(record, key, None) != name:
            return record
        changes: dict[str, Any] = {key: chosen} | _name(record, key, name, chosen)
        return replace(record, **changes)

    collections = [moved(each) for each in made.collections]
    if kind == "collection" and known:
        collections = [each for each in collections if each.collection_id != chosen]
    elif kind == "collection" and chosen not in {each.collection_id for each in collections}:
        collections.append(Collection(collection_id=chosen, name=chosen, source=f"another version of {name}"))
    return replace(
        made,
        frames=frames,
        collections=tuple(collections),
        golden_sets=tuple(moved(each) for each in made.golden_sets),
        runs=tuple(moved(each) for each in made.runs),
    )


def _name(record: Run | Collection | GoldenSet, key: str, name: str, chosen: str) -> dict[str, str]:
    """What a record is called when its own id changes; nothing when it only refers to that id."""
    own = Collection if key == "collection_id" else GoldenSet
    if isinstance(record, Run) or not isinstance(record, own):
        return {}
    return {"name": chosen if record.name == name else f"{record.name} ({chosen})"}


def _runs(
    snapshot: Snapshot, offered: tuple[Run, ...], choice: Choice | None
) -> tuple[list[Run], list[str], list[Changed]]:
    """Runs with the names they have or get, those that give way, and what is there under the same label."""
    live = snapshot.runs()
    everything = pl.concat([live, snapshot.runs(removed=True)])
    stored = {row["run_id"]: row for row in everything.iter_rows(named=True)}
    present = set(live["run_id"])
    imported = live.filter(pl.col("origin") == Origin.IMPORT.value).sort("added_revision", "created_at")
    made: list[Run] = []
    removed: list[str] = []
    changes: list[Changed] = []
    ours = {run.run_id for run in offered}
    for run in offered:
        same = imported.filter((pl.col("collection_id") == run.collection_id) & ~pl.col("run_id").is_in(ours))
        rivals = same.filter(pl.col("label").map_elements(_is_version(run.label), pl.Boolean))
        if run.run_id in present or rivals.is_empty():
            made.append(_as_stored(run, stored.get(run.run_id)))
            continue
        changes.append(Changed("run", run.label, tuple(rivals["run_id"])))
        label = run.label
        if choice == "replace":
            removed.append(rivals["run_id"][-1])
            label = rivals["label"][-1]
        elif choice == "new":
            label = _free_label(run.label, set(same["label"]))
        made.append(_as_stored(_labelled(run, label), stored.get(run.run_id)))
    return made, removed, changes


def _is_version(label: str) -> Callable[[str], bool]:
    pattern = re.compile(re.escape(label) + r"( \(\d+\))?")
    return lambda other: pattern.fullmatch(other) is not None


def _free_label(label: str, taken: set[str]) -> str:
    return next(each for number in count(2) if (each := f"{label} ({number})") not in taken)


def _labelled(run: Run, label: str) -> Run:
    if label == run.label:
        return run
    stack = Stack({"name": label}) if set(run.stack.spec) == {"name"} else run.stack
    return replace(run, label=label, stack=stack)


def _as_stored(run: Run, row: Mapping[str, Any] | None) -> Run:
    """The run under the label that the store has it under, if it has it."""
    if row is None:
        return run
    return replace(run, label=row["label"], stack=Stack(json.loads(row["spec"])))
