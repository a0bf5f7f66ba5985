"""The latency of every run: measured per query where timings exist, else published or imported figures."""

from __future__ import annotations

import polars as pl

from core.clq.latency import summarise
from core.store import Snapshot
from core.views.scope import Latency

COLUMNS = ("latency_ms", "latency_low", "latency_high", "latency_n", "latency_basis", "latency_note")


def latencies(snapshot: Snapshot, runs: pl.DataFrame, latency: Latency) -> pl.DataFrame:
    """One latency per run.

    Args:
        snapshot: Where to read.
        runs: The runs with their `run_id`, `mode` and `reranker`.
        latency: Percentile and scope.

    Returns:
        run_id and `COLUMNS`; latency_ms is null where it is unknown, and latency_note says why.
    """
    ids = runs["run_id"].to_list()
    measured = _measured(snapshot, ids, latency)
    reported = _reported(snapshot, runs, latency)
    both = pl.concat([measured, reported], how="vertical_relaxed").unique("run_id", keep="first")
    return (
        runs.select("run_id", "reranker")
        .join(both, on="run_id", how="left", maintain_order="left")
        .with_columns(
            pl.when(pl.col("latency_ms").is_not_null()).then(pl.col("latency_basis")).alias("latency_basis"),
            pl.when(pl.col("latency_ms").is_null())
            .then(pl.col("latency_note").fill_null(_not_recorded(latency)))
            .otherwise(pl.col("latency_note"))
            .alias("latency_note"),
        )
        .select("run_id", *COLUMNS)
    )


def _measured(snapshot: Snapshot, ids: list[str], latency: Latency) -> pl.DataFrame:
    p = latency.percentile
    table = summarise(snapshot.timings(ids), scope=latency.scope).filter(pl.col("stage") == "total")
    reason = pl.col("p95_reason") if p == "p95" else pl.lit(None, dtype=pl.String)
    return table.select(
        "run_id",
        pl.col(p).alias("latency_ms"),
        pl.col(f"{p}_low").alias("latency_low"),
        pl.col(f"{p}_high").alias("latency_high"),
        pl.col("n").cast(pl.Int32).alias("latency_n"),
        pl.lit("measured").alias("latency_basis"),
        reason.alias("latency_note"),
    )


def _reported(snapshot: Snapshot, runs: pl.DataFrame, latency: Latency) -> pl.DataFrame:
    """Latencies from aggregates: the reported total, else the sum of the medians of the stack's stages.

    95th percentiles of stages do not add up to one of the whole path, so several of them stay unknown.
    """
    figures = (
        snapshot.aggregates(runs["run_id"].to_list())
        .filter(pl.col("measure") == f"latency_{latency.percentile}")
        .unique(["run_id", "stage"], keep="first", maintain_order=True)
    )
    total = figures.filter((pl.col("stage") == "total") & pl.lit(latency.scope == "path"))
    summed = (
        _needed_stages(runs, latency, figures)
        .join(figures.select("run_id", "stage", "value", "n"), on=["run_id", "stage"], how="left")
        .group_by("run_id")
        .agg(
            pl.col("value").sum().alias("sum"),
            pl.col("n").min().alias("n_sum"),
            pl.col("stage").filter(pl.col("value").is_null()).sort().str.join(", ").alias("missing"),
            pl.len().alias("stages"),
        )
        .with_columns(_why_unknown(latency).alias("unknown"))
    )
    there = pl.col("value").is_not_null()
    published = pl.col("origin") == "published"
    return (
        runs.select("run_id", "origin")
        .join(total.select("run_id", "value", "n", "low", "high"), on="run_id", how="left")
        .join(summed, on="run_id", how="left")
        .select(
            "run_id",
            pl.coalesce("value", pl.when(pl.col("unknown").is_null()).then(pl.col("sum"))).alias(
                "latency_ms"
            ),
            pl.col("low").alias("latency_low"),
            pl.col("high").alias("latency_high"),
            pl.when(there).then(pl.col("n")).otherwise(pl.col("n_sum")).alias("latency_n"),
            pl.when(published).then(pl.lit("published")).otherwise(pl.lit("imported")).alias("latency_basis"),
            pl.when(there)
            .then(None)
            .when(pl.col("stages") > 1)
            .then(pl.coalesce("unknown", pl.format("sum of {} stage medians", pl.col("stages"))))
            .otherwise(pl.col("unknown"))
            .alias("latency_note"),
        )
    )


def _not_recorded(latency: Latency) -> pl.Expr:
    """Why a run without any figure has none."""
    needless = pl.lit(latency.scope == "rerank") & (pl.col("reranker").fill_null("none") == "none")
    return (
        pl.when(needless).then(pl.lit("this stack has no reranker")).otherwise(pl.lit("no timings recorded"))
    )


def _why_unknown(latency: Latency) -> pl.Expr:
    missing = pl.format("not reported: {}", pl.col("missing"))
    several = pl.lit(latency.percentile == "p95") & (pl.col("stages") > 1)
    return (
        pl.when(pl.col("missing") != "")
        .then(missing)
        .when(several)
        .then(pl.lit("p95 of single stages do not add up"))
    )


def _needed_stages(runs: pl.DataFrame, latency: Latency, figures: pl.DataFrame) -> pl.DataFrame:
    """The stages that make up the latency of each run: run_id, stage."""
    reranked = pl.col("reranker").fill_null("none") != "none"
    if latency.scope == "rerank":
        return runs.filter(reranked).select("run_id", pl.lit("rerank").alias("stage"))
    dense, sparse = pl.col("mode").is_in(["dense", "hybrid"]), pl.col("mode").is_in(["sparse", "hybrid"])
    # how a run without a mode searched is not known, but it did, so its reranker alone is not the path
    searched = dense | (pl.col("mode").is_null() & pl.col("run_id").is_in(figures["run_id"].to_list()))
    stages = [runs.filter(dense).select("run_id", pl.lit("embed").alias("stage"))]
    stages.append(runs.filter(searched).select("run_id", pl.lit("retrieve").alias("stage")))
    stages.append(runs.filter(sparse).select("run_id", pl.lit("sparse").alias("stage")))
    stages.append(runs.filter(reranked).select("run_id", pl.lit("rerank").alias("stage")))
    return pl.concat(stages)
