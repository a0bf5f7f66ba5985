"""A store with as many stacks as a bench asks for, each with its three numbers and nothing per query."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from core.records import Batch, Collection, Origin, Run, Stack
from core.store import Store
from core.tables import frame

COLLECTION = "many"
TOP_MS = 1000.0
"""Latencies lie below this, so the SLA slider runs from 0 to it in 200 steps."""
_EMBEDDERS = ("embed-small", "embed-large", "embed-code")
_DIMS = (256, 512, 1024)
_INDEXES = ("flat", "hnsw-f32", "hnsw-int8")
_RERANKERS = ("none", "rerank-lite", "rerank-full")


def seed(path: Path, count: int) -> None:
    """Write `count` stacks in one batch: RA-nWG@10, the p50 of the whole path, and $ per 1,000 queries."""
    rng = np.random.default_rng(11)
    latency = np.minimum(np.exp(rng.normal(5.0, 0.8, count)), TOP_MS)
    cost = rng.gamma(2.0, 0.6, count)
    gain = 0.12 * np.log10(latency) + 0.08 * np.log1p(cost)
    quality = np.clip(0.25 + gain + rng.normal(0, 0.06, count), 0, 1)
    runs = tuple(_run(number, rng) for number in range(count))
    figures = [
        _figures(runs, "RA-nWG", quality, k=10),
        _figures(runs, "latency_p50", latency, stage="total"),
        _figures(runs, "usd_per_1k", cost, stage="total"),
    ]
    batch = Batch(
        collections=(Collection(collection_id=COLLECTION, name="Many stacks"),),
        runs=runs,
        frames={"aggregates": pl.concat(figures)},
    )
    with Store.open(path).write("bench") as writer:
        writer.add(batch)


def _run(number: int, rng: np.random.Generator) -> Run:
    spec = {
        "mode": "dense",
        "embedder": str(rng.choice(_EMBEDDERS)),
        "dim": int(rng.choice(_DIMS)),
        "index": str(rng.choice(_INDEXES)),
        "reranker": str(rng.choice(_RERANKERS)),
        "candidates": int(rng.integers(10, 200)),
        "variant": number,
    }
    stack = Stack(spec)
    return Run(
        run_id=f"r-{number:05d}",
        collection_id=COLLECTION,
        stack=stack,
        label=f"{stack.label}, variant {number}",
        origin=Origin.IMPORT,
    )


def _figures(
    runs: tuple[Run, ...], measure: str, values: np.ndarray, *, k: int | None = None, stage: str | None = None
) -> pl.DataFrame:
    return frame(
        "aggregates",
        {
            "run_id": [run.run_id for run in runs],
            "measure": [measure] * len(runs),
            "k": pl.Series([k] * len(runs), dtype=pl.Int32),
            "stage": pl.Series([stage] * len(runs), dtype=pl.String),
            "value": values,
            "n": [50] * len(runs),
        },
    )
