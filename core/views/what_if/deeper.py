"""What a deeper K costs and buys: the line of reranker latency, and the steps between consecutive K."""

from __future__ import annotations

import json

import numpy as np
import polars as pl

from core.decide.axes import quality_axis
from core.decide.jitter import JITTER_MS
from core.decide.marginal import GAIN, marginal
from core.decide.scaling import reranker_scaling
from core.stats.intervals import SEED
from core.stats.significance import Sample, interval, paired_rows, resampled, weights
from core.store import Snapshot
from core.views.confidence.hold import joint_sample
from core.views.workspace.latencies import latencies
from core.views.workspace.scope import Latency, Quality, Scope
from core.views.workspace.stacks import runs_in


def latency_by_depth(snapshot: Snapshot, scope: Scope, *, jitter_ms: float = JITTER_MS) -> pl.DataFrame:
    """Reranker medians against K, fitted per reranker and embedder, with the depths that leave the line.

    Args:
        snapshot: Where to read.
        scope: The workspace.
        jitter_ms: Distance from the line that is noise; ms.

    Returns:
        As `core.decide.scaling.reranker_scaling`.
    """
    runs = runs_in(snapshot, scope)
    took = latencies(snapshot, runs, Latency("p50", "rerank")).select("run_id", "latency_ms")
    return reranker_scaling(runs.join(took, on="run_id"), jitter_ms=jitter_ms)


def steps(
    snapshot: Snapshot,
    table: pl.DataFrame,
    scope: Scope,
    *,
    quality: Quality,
    latency: Latency,
    seed: int = SEED,
) -> pl.DataFrame:
    """What each step to the next K of the same stack buys, by the table's quality, latency and cost.

    Args:
        snapshot: Where to read.
        table: The stack table.
        scope: The workspace.
        quality: The table's measure.
        latency: The table's latency.
        seed: Of the paired bootstrap behind "the gain may be chance".

    Returns:
        As `core.decide.marginal.marginal`; series is the specification without K.
    """
    axis = quality_axis(higher_is_better=quality.higher_is_better)
    series = [_without_depth(spec) for spec in table["spec"]]
    rows = table.with_columns(pl.Series("series", series, dtype=pl.String), pl.col("candidates"))
    rows = rows.with_row_index("row").sort("series", "candidates", "cost", "run_id")
    rows = rows.unique(["series", "candidates"], keep="first", maintain_order=True)
    rows = rows.with_columns(pl.col("row").cast(pl.Int64).shift(1).over("series").alias("before"))
    sample = joint_sample(snapshot, table, scope, quality=quality, latency=latency)
    pairs = rows.filter(pl.col("before").is_not_null()).select("run_id", "row", "before")
    if sample is None or pairs.is_empty():
        return marginal(rows, quality=axis)
    one, other = paired_rows(Sample.means(sample.quality), pairs["row"], pairs["before"])
    drawn = weights(sample.quality.shape[1], seed=seed)
    gain = axis.merit(one.estimate() - other.estimate())
    replicates = axis.merit(resampled(one, drawn) - resampled(other, drawn))
    bounds = np.column_stack(interval(gain, replicates))
    gains = pairs.select("run_id").with_columns(
        pl.Series(name, bounds[:, end]).fill_nan(None) for end, name in enumerate(GAIN)
    )
    return marginal(rows.join(gains, on="run_id", how="left", maintain_order="left"), quality=axis)


def _without_depth(spec: str) -> str:
    parts = {name: value for name, value in json.loads(spec).items() if name != "candidates"}
    return json.dumps(parts, sort_keys=True, ensure_ascii=False)
