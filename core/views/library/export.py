"""What a store holds, or a part of it, as one batch that can be exported and read back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import polars as pl

from core.errors import UnknownNameError
from core.records import Batch, Collection, GoldenSet, Origin, Run, Stack
from core.store import Snapshot
from core.tables import TABLES

Record = TypeVar("Record", Collection, GoldenSet)


def batch_of(
    snapshot: Snapshot, *, run_ids: Sequence[str] | None = None, collection_id: str | None = None
) -> Batch:
    """Gather collections, golden sets and runs with all their rows.

    Collections and golden sets come with their parts (the chunks of each chunker and their grades).

    Args:
        snapshot: The revision.
        run_ids: Only these runs, with their collections and the golden sets of those; None for all.
        collection_id: Only this collection; None for all.

    Raises:
        UnknownNameError: A run or the collection does not exist.
    """
    runs = _chosen_runs(snapshot, run_ids, collection_id)
    collections = _chosen_collections(snapshot, runs if run_ids is not None else None, collection_id)
    names = collections["collection_id"].to_list()
    golden_sets = snapshot.golden_sets(parts=True).filter(pl.col("collection_id").is_in(names))
    judged, chosen = golden_sets["golden_set_id"].to_list(), runs["run_id"].to_list()
    frames = {
        **_each(names, snapshot.queries, "queries"),
        **_each(names, snapshot.passages, "passages"),
        **_each(names, snapshot.chunks, "chunks"),
        **_each(judged, snapshot.judgements, "judgements"),
        **_each(judged, snapshot.spans, "spans"),
        **_each(judged, snapshot.gradings, "gradings"),
        **_each(judged, snapshot.orders, "orders"),
        "rankings": snapshot.rankings(chosen),
        "timings": snapshot.timings(chosen),
        "usage": snapshot.usage(chosen),
        "aggregates": snapshot.aggregates(chosen),
        "signals": snapshot.signals(chosen),
        "answers": snapshot.answers(chosen),
    }
    return Batch(
        collections=tuple(records(Collection, collections)),
        golden_sets=tuple(records(GoldenSet, golden_sets)),
        runs=tuple(_run(row) for row in runs.iter_rows(named=True)),
        frames={table: rows for table, rows in frames.items() if rows.height},
    )


def _chosen_runs(
    snapshot: Snapshot, run_ids: Sequence[str] | None, collection_id: str | None
) -> pl.DataFrame:
    runs = snapshot.runs(collection_id)
    if run_ids is None:
        return runs
    known = set(runs["run_id"])
    for run_id in run_ids:
        if run_id not in known:
            raise UnknownNameError("run", run_id, known)
    return runs.filter(pl.col("run_id").is_in(list(run_ids)))


def _chosen_collections(
    snapshot: Snapshot, runs: pl.DataFrame | None, collection_id: str | None
) -> pl.DataFrame:
    collections = snapshot.collections(parts=True)
    of_whole = pl.coalesce("part_of", "collection_id")
    if collection_id is not None:
        known = snapshot.collections()["collection_id"].to_list()
        if collection_id not in known:
            raise UnknownNameError("collection", collection_id, known)
        collections = collections.filter(of_whole == collection_id)
    if runs is not None:
        collections = collections.filter(of_whole.is_in(runs["collection_id"].to_list()))
    return collections


def _each(ids: Sequence[str], read: Callable[[str], pl.DataFrame], table: str) -> dict[str, pl.DataFrame]:
    parts = [read(each) for each in ids]
    return {table: pl.concat(parts) if parts else pl.DataFrame(schema=TABLES[table])}


def records(kind: type[Record], rows: pl.DataFrame) -> Iterator[Record]:
    """The collections or golden sets of some rows that the store tells."""
    names = [each.name for each in fields(kind)]
    for row in rows.select(names).iter_rows(named=True):
        if "manifest" in row:
            row |= {"manifest": json.loads(row["manifest"]), "parents": tuple(row["parents"])}
        yield kind(**row)


def _run(row: dict[str, Any]) -> Run:
    return Run(
        run_id=row["run_id"],
        collection_id=row["collection_id"],
        stack=Stack(json.loads(row["spec"])),
        label=row["label"],
        origin=Origin(row["origin"]),
        pool=row["pool"],
        environment=json.loads(row["environment"]),
        manifest=json.loads(row["manifest"]),
        created_at=row["created_at"],
        chunking=row["chunking"],
    )
