"""From measured stacks to runs with their rows; those that finish within seconds share one transaction."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.pipeline import environment
from core.pipeline.evaluate import records
from core.pipeline.evaluate.build import Builder
from core.pipeline.evaluate.identity import evaluation_manifest
from core.pipeline.evaluate.job import Job
from core.pipeline.evaluate.measure import Results
from core.pipeline.evaluate.signals import Signals
from core.pipeline.evaluate.steps import Route
from core.records import Batch, JsonMap, Origin, Run, Sink, now

_EVERY_S = 5.0


class Outbox:
    """Collects runs with their rows; a run and all of its rows are always in one batch."""

    def __init__(
        self,
        sink: Sink,
        landed: Callable[[int], None] = lambda _: None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sink, self._landed, self._clock = sink, landed, clock
        self._waiting: list[tuple[Run, Mapping[str, pl.DataFrame]]] = []
        self._sent = clock()
        self.runs: list[Run] = []

    def add(self, run: Run, frames: Mapping[str, pl.DataFrame]) -> None:
        """Take a run; it is handed over now, or with those that follow it soon."""
        self._waiting.append((run, frames))
        if self._clock() - self._sent >= _EVERY_S:
            self.flush()

    def flush(self) -> None:
        """Hand over what is waiting."""
        if not self._waiting:
            return
        batches = [Batch(runs=(run,), frames=frames) for run, frames in self._waiting]
        batch = merged(batches)
        self._sink(batch)
        self._waiting.clear()
        self._sent = self._clock()
        self.runs += batch.runs
        self._landed(len(batch.runs))


def merged(batches: Sequence[Batch]) -> Batch:
    """Runs and rows of several batches in one, tables without rows left out."""
    tables: defaultdict[str, list[pl.LazyFrame]] = defaultdict(list)
    for batch in batches:
        for table, rows in batch.frames.items():
            tables[table].append(rows.lazy())
    frames = {table: pl.concat(parts).collect() for table, parts in tables.items()}
    return Batch(
        runs=tuple(run for batch in batches for run in batch.runs),
        frames={table: rows for table, rows in frames.items() if rows.height},
    )


Rounds = Callable[[], Mapping[int, tuple[datetime, datetime | None]]]


class Writer:
    """Makes the records of routes."""

    def __init__(
        self,
        job: Job,
        results: Results,
        *,
        builder: Builder,
        signals: Signals,
        outbox: Outbox,
        machine: JsonMap,
        rounds: Rounds,
    ) -> None:
        self._job, self._results, self._builder = job, results, builder
        self._signals, self._outbox, self._rounds = signals, outbox, rounds
        self._machine, self._started = machine, now()
        self._about = evaluation_manifest(job, machine)
        self._load = environment.load_average()
        self._lengths = cache(self._count)

    def add(self, route: Route) -> None:
        """Take a route that has been measured."""
        run, corpus, ids = self._run(route), self._job.corpora[route.chunking], self._job.queries["query_id"]
        frames = {
            "rankings": records.rankings(run.run_id, route, self._results, ids, corpus.passage_ids),
            "timings": records.timings(run.run_id, route, self._results, ids),
            "usage": records.usage(run.run_id, route, self._results, ids, self._lengths(route.chunking)),
            "signals": self._signals.frame(run.run_id, route, ids),
        }
        self._outbox.add(run, frames)

    def flush(self) -> None:
        """Hand over what is waiting."""
        self._outbox.flush()

    def _run(self, route: Route) -> Run:
        load = [self._load, environment.load_average()]
        return Run(
            run_id=self._job.run_id(route),
            collection_id=self._job.collection_id,
            stack=route.stack,
            label=route.stack.label,
            origin=Origin.RUN,
            pool=route.pool_name,
            environment={**self._machine, "load_average": load},
            manifest=self._manifest(route),
            created_at=self._started,
            chunking=route.chunking,
        )

    def _manifest(self, route: Route) -> JsonMap:
        corpus = self._job.corpora[route.chunking]
        return {
            **{name: self._about[name] for name in ("evaluation", "sweep", "hashes", "protocol", "versions")},
            "spec": dict(route.stack.spec),
            "corpus": {"hash": corpus.hash, "indexed": len(corpus), "without_text": corpus.without_text},
            "queries": {"hash": self._job.queries_hash, "asked": self._job.queries.height},
            "indexes": self._indexes(route),
            "rounds": [
                {"round": number, "began": began.isoformat(), "hour": began.astimezone().hour}
                for number, (began, _) in self._rounds().items()
            ],
            "waited_ms": self._waited(route),
            **self._notes(route),
        }

    def _indexes(self, route: Route) -> dict[str, JsonMap]:
        """How the indexes of a stack were built and are searched."""
        told: dict[str, JsonMap] = {}
        for step in route.steps:
            if step.kind == "sparse":
                told["bm25"] = self._builder.about(step.built)
            elif step.kind == "search":
                recall = self._signals.mean_recall(route)
                about = self._builder.about(step.built)
                told[step.built.params["name"]] = about if recall is None else {**about, "ann_recall": recall}
        return told

    def _waited(self, route: Route) -> dict[str, float]:
        """Milliseconds per stage that all queries and repeats together waited for their turn or a retry."""
        waited = {
            step.stage: round(sum(b.waited_ms for b in self._results.blocks.get(step, {}).values()), 3)
            for step in route.steps
        }
        return {stage: ms for stage, ms in waited.items() if ms}

    def _notes(self, route: Route) -> dict[str, Any]:
        if route.replayed and route.rerank is not None:
            deep = route.rerank.params["depth"]
            return {"replayed": f"The reranker scored {deep} passages once; this stack has no latency."}
        return {}

    def _count(self, chunking: str | None) -> NDArray[np.int64]:
        return self._job.corpora[chunking].texts.str.len_chars().to_numpy().astype(np.int64)
