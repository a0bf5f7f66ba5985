"""Turns what was measured into the records of the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.pipeline.hits import Hits
from core.pipeline.retriever import Retriever
from core.pipeline.spec import pool_name
from core.pipeline.workbench import Workbench
from core.records import Basis, Batch, JsonMap, Origin, Run, Stack, frame, short_hash


@dataclass(slots=True)
class Measured:
    """One stack under measurement.

    Attributes:
        stack: What runs.
        retriever: What answers for it.
        hits: One ranking per query.
        ns: Per stage, int64 [repeats, queries] nanoseconds.
    """

    stack: Stack
    retriever: Retriever
    hits: list[Hits] = field(default_factory=list)
    ns: dict[str, NDArray[np.int64]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What all runs of one call share.

    Attributes:
        collection_id: What was searched.
        queries: Frame of `TABLES["queries"]`, in the order in which they were asked.
        bench: The corpus and its indexes.
        environment: Where it ran.
        protocol: How it was measured.
        seed: Of the order of the rounds.
        started: When, with zone.
    """

    collection_id: str
    queries: pl.DataFrame
    bench: Workbench
    environment: JsonMap
    protocol: JsonMap
    seed: int
    started: datetime


def batch(session: Session, measured: Sequence[Measured]) -> Batch:
    """One batch with the runs, their final rankings, timings and usage."""
    queries_hash = short_hash(*session.queries["query_id"], *session.queries["text"])
    runs = tuple(_run(session, each.stack, queries_hash) for each in measured)
    pairs = list(zip(runs, measured, strict=True))
    ids = session.queries["query_id"]
    passages = session.bench.passage_ids
    return Batch(
        runs=runs,
        frames={
            "rankings": pl.concat([_rankings(run, each.hits, ids, passages) for run, each in pairs]),
            "timings": pl.concat([_timings(run, each.ns, ids) for run, each in pairs]),
            "usage": pl.concat([_usage(run, each.ns, ids) for run, each in pairs]),
        },
    )


def _run(session: Session, stack: Stack, queries_hash: str) -> Run:
    bench = session.bench
    identity = (stack.stack_id, bench.corpus_hash, queries_hash, session.started.isoformat())
    return Run(
        run_id=f"r-{short_hash(*identity)}",
        collection_id=session.collection_id,
        stack=stack,
        label=stack.label,
        origin=Origin.RUN,
        pool=pool_name(stack.spec),
        environment=session.environment,
        manifest={
            "spec": dict(stack.spec),
            "indexes": bench.indexes(stack.spec),
            "corpus": {
                "hash": bench.corpus_hash,
                "indexed": len(bench.passage_ids),
                "without_text": bench.without_text,
            },
            "queries": {"hash": queries_hash, "asked": session.queries.height},
            "protocol": dict(session.protocol),
            "seed": session.seed,
            "versions": dict(session.environment["packages"]),
        },
        created_at=session.started,
    )


def _rankings(run: Run, hits: Sequence[Hits], query_ids: pl.Series, passage_ids: pl.Series) -> pl.DataFrame:
    lengths = np.array([len(found.passages) for found in hits])
    found = np.concatenate([found.passages for found in hits])
    columns = pl.DataFrame(
        {
            "query_id": query_ids.gather(np.repeat(np.arange(len(hits)), lengths)),
            "rank": np.concatenate([np.arange(1, length + 1) for length in lengths]),
            "passage_id": passage_ids.gather(found),
            "score": np.concatenate([found.scores for found in hits]),
        }
    )
    return _declared("rankings", columns, run_id=run.run_id, stage="final")


def _timings(run: Run, ns: dict[str, NDArray[np.int64]], query_ids: pl.Series) -> pl.DataFrame:
    return pl.concat(
        _declared(
            "timings",
            pl.DataFrame(
                {
                    "query_id": query_ids.gather(np.tile(np.arange(taken.shape[1]), len(taken))),
                    "repeat": np.repeat(np.arange(1, len(taken) + 1), taken.shape[1]),
                    "ms": taken.ravel() / 1e6,
                }
            ),
            run_id=run.run_id,
            stage=stage,
        )
        for stage, taken in ns.items()
    )


def _usage(run: Run, ns: dict[str, NDArray[np.int64]], query_ids: pl.Series) -> pl.DataFrame:
    # One thread that never waits for anything: its elapsed time is its processor time.
    return pl.concat(
        _declared(
            "usage",
            pl.DataFrame({"query_id": query_ids, "amount": np.median(taken, axis=0) / 1e6}),
            run_id=run.run_id,
            stage=stage,
            item="local-cpu",
            unit="cpu_ms",
            basis=str(Basis.MEASURED),
        )
        for stage, taken in ns.items()
    )


def _declared(table: str, columns: pl.DataFrame, **constants: str) -> pl.DataFrame:
    return frame(
        table, columns.with_columns(**{name: pl.lit(text) for name, text in constants.items()}).to_dict()
    )
