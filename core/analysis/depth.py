"""Reranker latency by the depth of its candidate pool."""

from __future__ import annotations

import polars as pl

from core.analysis.workspace.figures.latencies import latencies
from core.analysis.workspace.scope import Latency, Scope
from core.analysis.workspace.stacks import runs_in
from core.decide.marginal import reranker_scaling
from core.decide.ties import JITTER_MS
from core.store import Snapshot


def latency_by_depth(snapshot: Snapshot, scope: Scope, *, jitter_ms: float = JITTER_MS) -> pl.DataFrame:
    """Return reranker medians against K, fitted per reranker and embedder, with the depths off the line.

    Returns:
        As returned by `core.decide.marginal.reranker_scaling`.
    """
    runs = runs_in(snapshot, scope)
    took = latencies(snapshot, runs, Latency("p50", "rerank")).select("run_id", "latency_ms")
    return reranker_scaling(runs.join(took, on="run_id"), jitter_ms=jitter_ms)
