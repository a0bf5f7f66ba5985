"""Other names for what an import brings, wherever it names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import polars as pl

from core.importers import Import
from core.records import Collection, GoldenSet, Run, short_hash
from core.store import Kind, Snapshot
from core.tables import TABLES, altered

Named = TypeVar("Named", Collection, GoldenSet, Run)
RECORDS: Mapping[Kind, str] = {"collection": "collections", "golden_set": "golden_sets"}
OWNED: Mapping[Kind, tuple[str, ...]] = {
    "collection": ("queries", "passages", "chunks"),
    "golden_set": ("judgements", "spans", "gradings", "orders"),
}
"""Tables whose rows belong to a collection or a golden set."""


def renamed(made: Import, kind: Kind, name: str, chosen: str, *, known: bool) -> Import:
    """The import with another id for a collection or golden set and its parts, wherever they are named."""
    if name == chosen:
        return made
    for part in parts_of(made, kind, name):
        made = _with_id(made, kind, part, chosen + part.removeprefix(name), known=False)
    return _with_id(made, kind, name, chosen, known=known)


def parts_of(made: Import, kind: Kind, name: str) -> list[str]:
    """Ids of the records of an import that are parts of a collection or golden set."""
    records = getattr(made, RECORDS[kind])
    return [getattr(each, f"{kind}_id") for each in records if each.part_of == name]


def _with_id(made: Import, kind: Kind, name: str, chosen: str, *, known: bool) -> Import:
    key = f"{kind}_id"
    frames = {
        table: altered(rows, pl.col(key).replace(name, chosen)) if table in OWNED[kind] else rows
        for table, rows in made.frames.items()
    }

    def moved(record: Named) -> Named:
        own = Collection if kind == "collection" else GoldenSet
        if isinstance(record, GoldenSet) and kind == "golden_set" and name in record.parents:
            record = replace(
                record, parents=tuple(chosen if each == name else each for each in record.parents)
            )
        if isinstance(record, own) and record.part_of == name:
            return replace(record, part_of=chosen)
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


def with_own_runs(made: Import, snapshot: Snapshot) -> Import:
    """The import with other ids for runs that the store, deleted ones included, has in another collection.

    A run's id is that of its content; the same run of a new version of its collection is another one.
    """
    stored = dict(snapshot.with_deleted().runs().select("run_id", "collection_id").iter_rows())
    ids = {
        run.run_id: f"r-{short_hash(run.run_id, run.collection_id)}"
        for run in made.runs
        if stored.get(run.run_id, run.collection_id) != run.collection_id
    }
    if not ids:
        return made
    moved = pl.col("run_id").replace(ids)
    frames = {
        table: altered(rows, moved) if "run_id" in TABLES[table] else rows
        for table, rows in made.frames.items()
    }
    runs = tuple(replace(run, run_id=ids.get(run.run_id, run.run_id)) for run in made.runs)
    return replace(made, frames=frames, runs=runs)
