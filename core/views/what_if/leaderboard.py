"""Efficiency leaderboards (CLQ paper §3.3, §5.4, Table 9): for shortlisting only, they favour small K."""

from __future__ import annotations

import json

import numpy as np
import polars as pl

from core.decide.efficiency import COMPONENTS, efficiency
from core.store import Snapshot
from core.views.scoring.figures import figures
from core.views.workspace.latencies import latencies
from core.views.workspace.scope import Latency, Quality, Scope

LABEL = "For shortlisting only: a ratio favours small K and knows no latency target."
PARTS = tuple(Quality(name, k) for name, k in COMPONENTS)


def leaderboard(snapshot: Snapshot, scope: Scope, *, end_to_end: bool = False) -> pl.DataFrame:
    """Stacks by average quality per second of median latency.

    Args:
        snapshot: Where to read.
        scope: The workspace.
        end_to_end: Divide by the whole retrieval path rather than by the reranker alone.

    Returns:
        One row per run, the best first and those of unknown efficiency last: rank (null where unknown),
        run_id, name, efficiency (quality per second), average (0..1), average_basis ("four measures", or
        "as reported" where the source gives only their mean), latency_ms, latency_note, reason (why the
        efficiency is unknown).
    """
    rows = figures(snapshot, scope, PARTS)
    parts = rows.select(quality.name for quality in PARTS).cast(pl.Float64).fill_null(np.nan).to_numpy()
    own = pl.Series("own", parts.mean(axis=1), dtype=pl.Float64).fill_nan(None)
    reported = pl.Series("reported", [_reported(text) for text in rows["manifest"]], dtype=pl.Float64)
    took = latencies(snapshot, rows, Latency("p50", "path" if end_to_end else "rerank"))
    table = (
        rows.select("run_id", "name")
        .with_columns(own, reported)
        .join(took.select("run_id", "latency_ms", "latency_note"), on="run_id", how="left")
        .with_columns(
            pl.coalesce("own", "reported").alias("average"),
            pl.when(pl.col("own").is_not_null())
            .then(pl.lit("four measures"))
            .when(pl.col("reported").is_not_null())
            .then(pl.lit("as reported"))
            .alias("average_basis"),
        )
    )
    return _ranked(table)


def _reported(manifest: str) -> float | None:
    """The average that a source printed without all of its four parts."""
    printed = json.loads(manifest).get("printed")
    value = printed.get("avg_quality") if isinstance(printed, dict) else None
    return float(value) if isinstance(value, (int, float)) else None


def _ranked(table: pl.DataFrame) -> pl.DataFrame:
    per_second = [
        efficiency(average, ms) if average is not None and ms is not None and ms > 0 else None
        for average, ms in table.select("average", "latency_ms").iter_rows()
    ]
    reason = (
        pl.when(pl.col("latency_ms").is_null())
        .then(pl.coalesce("latency_note", pl.lit("unknown latency")))
        .when(pl.col("average").is_null())
        .then(pl.lit("not all of its four measures are known"))
    )
    return (
        table.with_columns(pl.Series("efficiency", per_second, dtype=pl.Float64), reason.alias("reason"))
        .with_columns(pl.col("efficiency").rank("min", descending=True).cast(pl.Int64).alias("rank"))
        .sort(["efficiency", "name"], descending=[True, False], nulls_last=True)
        .select(
            "rank",
            "run_id",
            "name",
            "efficiency",
            "average",
            "average_basis",
            "latency_ms",
            "latency_note",
            "reason",
        )
    )
