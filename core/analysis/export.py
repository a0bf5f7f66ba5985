"""Contents of a store, or a part of it, as one batch: to export, or for work that refers to it by id."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import polars as pl

from core.analysis.scoring.table import score_table
from core.analysis.workspace.figures.costs import costs
from core.analysis.workspace.figures.latencies import latencies
from core.analysis.workspace.scope import Latency, Scope
from core.analysis.workspace.stacks import runs_in
from core.errors import InputError, UnknownNameError
from core.exporters.mlflow import Tracked
from core.golden.pool import RankedSource, SearchKind
from core.metrics import Measure
from core.prices import PriceBook
from core.records import Batch, Collection, GoldenSet, Origin, Run, Stack, part_id
from core.store import Snapshot
from core.store.rules import RULES
from core.tables import frame

Record = TypeVar("Record", Collection, GoldenSet)
MEASURES = "RA-nWG@10,N-Recall4+@10,nDCG@10"


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
    runs = snapshot.runs(collection_id)
    collections = snapshot.collections(parts=True)
    of_whole = pl.coalesce("part_of", "collection_id")
    if collection_id is not None:
        _named("collection", [collection_id], snapshot.collections()["collection_id"])
        collections = collections.filter(of_whole == collection_id)
    if run_ids is not None:
        _named("run", run_ids, runs["run_id"])
        runs = runs.filter(pl.col("run_id").is_in(list(run_ids)))
        collections = collections.filter(of_whole.is_in(runs["collection_id"].to_list()))
    names = collections["collection_id"].to_list()
    golden_sets = snapshot.golden_sets(parts=True).filter(pl.col("collection_id").is_in(names))
    owners = {
        "collection": names,
        "golden_set": golden_sets["golden_set_id"].to_list(),
        "run": runs["run_id"].to_list(),
    }
    frames = {}
    for table, rules in RULES.items():
        read, ids = getattr(snapshot, table), owners[rules.kind]
        several = rules.kind == "run" or table == "diagnostics"  # these are read at once
        parts = [read(ids)] if several else [read(name) for name in ids]
        frames[table] = pl.concat([frame(table, []), *parts])
    return Batch(
        collections=tuple(records(Collection, collections)),
        golden_sets=tuple(records(GoldenSet, golden_sets)),
        runs=tuple(_run(row) for row in runs.iter_rows(named=True)),
        frames={table: rows for table, rows in frames.items() if rows.height},
        incumbents=tuple(
            run_id for name in names if (run_id := snapshot.incumbent(name)) and run_id in runs["run_id"]
        ),
    )


def _named(what: str, names: Iterable[str], known: pl.Series, **where: str) -> None:
    """Refuse names that do not exist."""
    for name in names:
        if name not in known:
            raise UnknownNameError(what, name, known, **where)


def records(kind: type[Record], rows: pl.DataFrame) -> Iterator[Record]:
    """Yield the collections or golden sets in rows of the store."""
    names = [field.name for field in fields(kind)]
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


class StoreShelf:
    """Stored material that work refers to by id; see `core.pipeline.sweep.sources.Shelf`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collection(self, collection_id: str) -> Batch:
        """Return a collection with passages, questions, its golden set if it has only one, and its chunks.

        Raises:
            UnknownNameError: If there is none with this id.
            InputError: If it has no passages with text, as after an import of rankings alone.
        """
        known = self._snapshot.collections()
        _named("collection", [collection_id], known["collection_id"])
        rows = known.filter(collection_id=collection_id)
        if not rows["passages"].item():
            problem = "The collection has no passages in the store."
            raise InputError(problem, where=collection_id, do="Import its corpus, or name a path.")
        golden = self._snapshot.golden_sets(collection_id)["golden_set_id"].to_list()
        judged = self.golden_set(golden[0]) if len(golden) == 1 else Batch()
        return Batch(
            collections=tuple(records(Collection, rows)),
            golden_sets=judged.golden_sets,
            frames={
                "passages": self._snapshot.passages(collection_id),
                "queries": self._snapshot.queries(collection_id),
                "passage_metadata": self._snapshot.passage_metadata(collection_id),
                "query_filters": self._snapshot.query_filters(collection_id),
                "fields": self._snapshot.fields(collection_id),
                **judged.frames,
                **self.chunks(collection_id),
            },
        )

    def chunks(self, collection_id: str) -> dict[str, pl.DataFrame]:
        """Return the positions of the chunks of all chunkings of a collection, by the name of their table.

        It is empty if its passages are not documents: nobody chunked them, or judged places in them.
        """
        parts = self._snapshot.collections(parts=True).filter(part_of=collection_id)["collection_id"]
        if parts.is_empty() and not self._snapshot.golden_sets(collection_id)["spans"].sum():
            return {}
        places = [self._snapshot.chunks(part) for part in parts]
        return {"chunks": pl.concat([frame("chunks", []), *places])}

    def part(self, collection_id: str, chunking: str) -> Batch:
        """Return the passages and chunks of a chunking, in the documents' order; no rows if there is none."""
        part = part_id(collection_id, chunking)
        chunks = self._snapshot.chunks(part)
        ordered = chunks.sort("source", "start_char").select("passage_id")
        passages = self._snapshot.passages(part)
        rows = ordered.join(passages, on="passage_id", maintain_order="left").select(passages.columns)
        return Batch(frames={"passages": rows, "chunks": chunks})

    def golden_set(self, golden_set_id: str) -> Batch:
        """Return a golden set with its judgements and spans.

        Raises:
            UnknownNameError: If there is none with this id.
        """
        known = self._snapshot.golden_sets()
        _named("golden set", [golden_set_id], known["golden_set_id"])
        rows = known.filter(golden_set_id=golden_set_id)
        frames = {
            "judgements": self._snapshot.judgements(golden_set_id),
            "spans": self._snapshot.spans(golden_set_id),
            "nuggets": self._snapshot.nuggets(golden_set_id),
        }
        return Batch(
            golden_sets=tuple(records(GoldenSet, rows)),
            frames={table: some for table, some in frames.items() if some.height},
        )

    def gradings(self, golden_set_id: str) -> pl.DataFrame:
        """Return the acts of judging behind a golden set."""
        return self._snapshot.gradings(golden_set_id)

    def ranked(self, collection_id: str, names: Sequence[str] | None, depth: int) -> list[RankedSource]:
        """Return the first ranks of runs on the collection's own passages; all runs if none is named.

        Raises:
            UnknownNameError: If a named run isn't one of these.
        """
        runs = self._snapshot.runs(collection_id).filter(
            pl.col("has_rankings") & pl.col("chunking").is_null()
        )
        _named("run", names or (), runs["run_id"], where=collection_id)
        chosen = runs if names is None else runs.filter(pl.col("run_id").is_in(list(names)))
        rankings = []
        for row in chosen.sort("run_id").iter_rows(named=True):
            rows = self._snapshot.rankings([row["run_id"]], stage="final").filter(pl.col("rank") <= depth)
            mode = json.loads(row["spec"]).get("mode")
            kind: SearchKind = mode if mode in ("dense", "sparse") else "hybrid"
            rankings.append(RankedSource(row["label"], kind, rows.select("query_id", "passage_id", "rank")))
        return rankings


def tracked(snapshot: Snapshot, scope: Scope, measures: Sequence[Measure], book: PriceBook) -> list[Tracked]:
    """Gather parameters and metrics of the runs of a workspace.

    Returns:
        One entry per run, by name; unknown and inapplicable metrics are left out.

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
        values = latencies(snapshot, runs, latency)
        _add(numbers, values, "latency_ms", f"latency_{latency.percentile}_ms")
    _add(numbers, costs(snapshot, runs, book), "cost", "usd_per_1k_queries")
    about = {"collection": scope.collection_id, "golden_set": scope.golden_set_id}
    return [
        Tracked(
            name=row["name"],
            created_at=row["created_at"],
            params=_flat({**about, "pool": row["pool"], "prices": book.name, **json.loads(row["spec"])}),
            metrics=numbers[row["run_id"]],
            tags={"clq.run_id": row["run_id"], "clq.stack_id": row["stack_id"], "clq.origin": row["origin"]},
        )
        for row in runs.iter_rows(named=True)
    ]


def _add(numbers: Mapping[str, dict[str, float]], rows: pl.DataFrame, column: str, name: str) -> None:
    for run_id, value in rows.select("run_id", column).drop_nulls().iter_rows():
        numbers[run_id][name] = float(value)


def _flat(spec: Mapping[str, object], before: str = "") -> dict[str, str]:
    """Return nested settings under dotted names; unset ones are left out."""
    flat: dict[str, str] = {}
    for name, value in spec.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{before}{name}.")
        elif value is not None:
            flat[before + name] = value if isinstance(value, str) else json.dumps(value)
    return flat
