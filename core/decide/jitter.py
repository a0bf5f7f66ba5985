"""Below which difference two latencies are the same: measured where passes over the queries were repeated."""

from __future__ import annotations

import polars as pl

from core.stats.latency import TOTAL

JITTER_MS = 75.0
"""Differences under this are noise where nothing else is known (CLQ paper §3.2.2)."""
SHARE = 0.95
"""Percentile of the differences between passes that is their jitter."""


def pass_differences(timings: pl.DataFrame) -> pl.DataFrame:
    """By how much the medians of two passes of the same stack differ.

    Args:
        timings: run_id, stage, query_id, repeat, ms, as `latency.per_repeat` returns them; only the
            totals are looked at. A query that a pass of its run lacks does not count.

    Returns:
        run_id, ms: the absolute difference of the p50 over queries, a row per pair of passes of a run; none
        for a run with one pass.
    """
    totals = timings.filter(pl.col("stage") == TOTAL)
    passes = totals.group_by("run_id").agg(pl.col("repeat").n_unique().alias("passes"))
    whole = totals.join(passes, on="run_id").filter(
        pl.col("repeat").n_unique().over("run_id", "query_id") == pl.col("passes")
    )
    medians = whole.group_by("run_id", "repeat").agg(pl.col("ms").median())
    return (
        medians.join(medians, on="run_id", suffix="_other")
        .filter(pl.col("repeat") < pl.col("repeat_other"))
        .select("run_id", (pl.col("ms") - pl.col("ms_other")).abs())
    )


def jitter(differences: pl.Series) -> float | None:
    """The 95th percentile of differences between passes; ms. None without any."""
    return differences.quantile(SHARE, interpolation="linear")
