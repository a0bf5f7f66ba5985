"""What a store holds, or a part of it, as one batch that can be exported and read back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import polars as pl

from core.errors import UnknownNameError
from core.exporters.mlflow import Tracked
from core.metrics import Measure
from core.prices import PriceBook
from core.records import Batch, Collection, GoldenSet, Origin, Run, Stack
from core.store import Snapshot
from core.tables import TABLES
from core.views.scoring_table import score_table
from core.views.workspace.costs import costs
from core.views.workspace.latencies import latencies
from core.views.workspace.scope import Latency, Scope
from core.views.workspace.stacks import runs_in

Record = TypeVar("Record", Collection, GoldenSet)


def batch_of(
    snapshot: Snapshot, *, run_ids: Sequence[str] | None = None, collection_id: str | None = None
) -> Batch:
    """Gather collections, golden sets and runs with all their rows.

    Collections and golden sets come with their parts (the chunks of each chunker and their grades).

    Args:
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
        **_each(names, snapshot.gold_answers, "gold_answers"),
        "diagnostics": snapshot.diagnostics(names),
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
        "answer_scores": snapshot.answer_scores(chosen),
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


MEASURES = "RA-nWG@10,N-Recall4+@10,nDCG@10"


def tracked(snapshot: Snapshot, scope: Scope, measures: Sequence[Measure], book: PriceBook) -> list[Tracked]:
    """Gather parameters and metrics of the runs of a workspace.

    Returns:
        One entry per run, by name: what is unknown or not applicable is not among its metrics.

    Raises:
        InputError: If a measure has no cutoff.
    """
    runs = runs_in(snapshot, scope)
    numbers: dict[str, dict[str, float]] = {run_id: {} for run_id in runs["run_id"]}
    for row in score_table(snapshot, runs, scope.golden_set_id, measures).iter_rows(named=True):
        if row["value"] is not None:
            name = row["measure"]
            ends = {"": row["value"], " low": row["ci_low"], " high": row["ci_high"], " n": row["n"]}
            known = {f"{name}{end}": float(value) for end, value in ends.items() if value is not None}
            numbers[row["run"]] |= known
    for latency in (Latency("p50"), Latency("p95")):
        told = latencies(snapshot, runs, latency)
        _add(numbers, told, "latency_ms", f"latency_{latency.percentile}_ms")
    _add(numbers, costs(snapshot, runs, book), "cost", "usd_per_1k_queries")
    return [
        Tracked(
            name=row["name"],
            created_at=row["created_at"],
            params=_params(row, scope, book),
            metrics=numbers[row["run_id"]],
            tags={"clq.run_id": row["run_id"], "clq.stack_id": row["stack_id"], "clq.origin": row["origin"]},
        )
        for row in runs.iter_rows(named=True)
    ]


def _add(numbers: Mapping[str, dict[str, float]], rows: pl.DataFrame, column: str, name: str) -> None:
    for run_id, value in rows.select("run_id", column).drop_nulls().iter_rows():
        numbers[run_id][name] = float(value)


def _params(row: Mapping[str, str], scope: Scope, book: PriceBook) -> dict[str, str]:
    about = {"collection": scope.collection_id, "golden_set": scope.golden_set_id, "pool": row["pool"]}
    spec = _flat(json.loads(row["spec"]))
    known = {name: value for name, value in about.items() if value is not None}
    return {**known, "prices": book.name, **spec}


def _flat(spec: Mapping[str, object], before: str = "") -> dict[str, str]:
    """Settings within settings under dotted names; what is not set is left out."""
    found: dict[str, str] = {}
    for name, value in spec.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{before}{name}.")
        elif value is not None:
            found[before + name] = value if isinstance(value, str) else json.dumps(value)
    return found
