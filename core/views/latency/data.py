"""Percentiles of every stack and of its stages, and the generator's times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import polars as pl

from core.analysis.workspace.comparable import at_machine
from core.analysis.workspace.figures.costs import basis
from core.analysis.workspace.figures.latencies import latencies, sample
from core.analysis.workspace.scope import MEAN, Latency, Percentile, Scope
from core.analysis.workspace.stacks import runs_in
from core.answers import TOP_K
from core.axes import QUERY_STAGES
from core.decide.rules import Decision
from core.stats.latency import AFTER_RETRIEVAL, TOTAL, Fit, answers, fit, per_repeat, sampled, summary
from core.store import Snapshot
from core.tables import FIRST_TOKEN, GENERATE

PERCENTILES: tuple[Percentile, ...] = tuple(name for name in get_args(Percentile) if name != MEAN)
STAGES = (*dict.fromkeys(QUERY_STAGES.values()), "generate", TOTAL)
"""The stages in their order; others follow by name, before the total."""


def percentile_table(snapshot: Snapshot, table: pl.DataFrame, latency: Latency) -> pl.DataFrame:
    """Return p50, p95 and p99 of every stack in the sidebar's scope.

    Args:
        latency: Its scope, machine and generation model; all percentiles are shown.

    Returns:
        One row per stack, the fastest first: run_id, name, n, basis, and per percentile p50, p50_low,
        p50_high, p50_note (ms; null with the reason in the note).
    """
    stacks = table.select("run_id", "name", "environment", "origin")
    for percentile in PERCENTILES:
        one = latencies(snapshot, table, replace(latency, percentile=percentile))
        here = at_machine(stacks.join(one, on="run_id", how="left", maintain_order="left"), latency.machine)
        stacks = stacks.with_columns(
            here[f"latency_{of}"].alias(percentile if of == "ms" else f"{percentile}_{of}")
            for of in ("ms", "low", "high", "note", "n", "basis")
        )
    counts, bases = ([f"{percentile}_{of}" for percentile in PERCENTILES] for of in ("n", "basis"))
    return (
        stacks.with_columns(n=pl.coalesce(counts), basis=pl.coalesce(bases))
        .drop(*counts, *bases, "environment", "origin")
        .sort("p50", "name", nulls_last=True)
    )


def stage_samples(snapshot: Snapshot, runs: pl.DataFrame, latency: Latency) -> pl.DataFrame:
    """Return the time of every query in every stage of some stacks.

    Args:
        runs: run_id, name and spec of the stacks.
        latency: The scope of the total.

    Returns:
        run_id, name, stage, query_id, ms (median over its repeats), serial (see `sampled`), modelled (whether
        a part of it is); the total follows the sidebar's settings.
    """
    timings = snapshot.timings(runs["run_id"].to_list())
    parts = timings.filter(pl.col("stage") != TOTAL)["stage"].unique().to_list()
    columns = ["run_id", "stage", "query_id", "ms", "serial", "modelled"]
    rows = sampled(per_repeat(timings, stages=parts).filter(pl.col("stage") != TOTAL))
    rows = rows.with_columns(modelled=pl.lit(False)).select(columns)
    whole = sample(snapshot, runs, latency).with_columns(stage=pl.lit(TOTAL)).select(columns)
    return pl.concat([rows, whole]).join(runs.select("run_id", "name"), on="run_id").sort(
        _order(), "name", "query_id"
    )  # fmt: skip


def path_stages(stages: pl.DataFrame, latency: Latency) -> pl.DataFrame:
    """Return the rows of `stage_table` that add up to the total."""
    inside = pl.col("stage") == "rerank"
    if latency.scope == "end-to-end":
        inside = pl.col("stage") != FIRST_TOKEN  # included in the stage generate
    elif latency.scope == "path":
        inside = ~pl.col("stage").is_in(AFTER_RETRIEVAL)
    return stages.filter(inside & (pl.col("stage") != TOTAL) & pl.col("p50").is_not_null())


def _order() -> pl.Expr:
    places = {stage: place for place, stage in enumerate(STAGES)}
    last = len(STAGES) - 1.5  # unknown stages come before the total
    return pl.col("stage").replace_strict(places, default=last, return_dtype=pl.Float64)


def stage_table(snapshot: Snapshot, runs: pl.DataFrame, samples: pl.DataFrame) -> pl.DataFrame:
    """Return percentiles of every stage of some stacks, measured or reported.

    Args:
        runs: run_id, name and origin of the stacks.
        samples: From `stage_samples`.

    Returns:
        name, stage, n, p50, p95 and p99 with their bounds and reasons (ms), basis.
    """
    guessed = samples.group_by("run_id", "stage").agg(pl.col("modelled").any())
    stages = summary(samples).join(guessed, on=["run_id", "stage"], how="left")
    stages = stages.join(runs.select("run_id", basis()), on="run_id", how="left")
    stages = stages.with_columns(basis=pl.when("modelled").then(pl.lit("modelled")).otherwise("basis"))
    stages = stages.drop("modelled")
    reported = _reported(snapshot, runs).join(stages, on=["run_id", "stage"], how="anti")
    return (
        pl.concat([stages, reported], how="diagonal_relaxed")
        .join(runs.select("run_id", "name"), on="run_id")
        .sort("name", _order(), "stage")
        .drop("run_id")
    )


def _reported(snapshot: Snapshot, runs: pl.DataFrame) -> pl.DataFrame:
    """Return run_id, stage, n, p50, p95, p99, basis of figures imported without results per query."""
    measures = [f"latency_{percentile}" for percentile in PERCENTILES]
    rows = snapshot.aggregates(runs["run_id"].to_list()).filter(pl.col("measure").is_in(measures))
    rows = rows.unique(["run_id", "stage", "measure"], keep="first", maintain_order=True)
    schema = {"run_id": pl.String, "stage": pl.String, "n": pl.Int64}
    empty = pl.DataFrame(schema={**schema, **dict.fromkeys(PERCENTILES, pl.Float64), "basis": pl.String})
    wide = rows.with_columns(pl.col("measure").str.strip_prefix("latency_")).pivot(
        "measure", index=["run_id", "stage"], values="value", aggregate_function="first"
    )
    counts = rows.group_by("run_id", "stage").agg(pl.col("n").min().cast(pl.Int64))
    figures = wide.join(counts, on=["run_id", "stage"]).join(runs.select("run_id", basis()), on="run_id")
    return pl.concat([empty, figures], how="diagonal_relaxed").with_columns(
        pl.when(pl.col("p95").is_null()).then(pl.lit("not reported")).alias("p95_reason"),
        pl.when(pl.col("p99").is_null()).then(pl.lit("not reported")).alias("p99_reason"),
    )


def usual(rows: pl.DataFrame, table: pl.DataFrame, decision: Decision) -> list[str]:
    """Return the stacks selected by default: the chosen one and the runner-up, if their latency is known.

    If the chosen stack's latency is unknown, use the best stack whose latency is known.
    """
    known = rows.filter(pl.col("p50").is_not_null())
    asked = [table["name"][row] for row in (decision.chosen, decision.runner_up) if row is not None]
    there = [name for name in asked if name in set(known["name"])]
    if asked and asked[:1] == there[:1]:
        return there
    scored = known.join(table.select("run_id", "quality"), on="run_id", how="left")
    down = [decision.quality.higher_is_better, False]
    best = scored.sort("quality", "p50", descending=down, nulls_last=True)["name"].head(1)
    return [*best, *(name for name in there if name not in best)] or asked or table["name"].head(1).to_list()


def shown_stages(samples: pl.DataFrame) -> Sequence[str]:
    """Return the stages that have times, in order, the total last."""
    return samples.select("stage").unique().sort(_order(), "stage")["stage"].to_list()


def timed_answers(snapshot: Snapshot, scope: Scope) -> pl.DataFrame:
    """Return every timed answer of a workspace with its tokens.

    They come from timings, or from the answers if a run has none.

    Returns:
        The columns of `core.stats.latency.answers`, and stage.
    """
    ids = runs_in(snapshot, scope)["run_id"].to_list()
    timings = snapshot.timings(ids).filter(pl.col("stage").is_in(AFTER_RETRIEVAL))
    usage = snapshot.usage(ids).filter(pl.col("stage") == GENERATE)
    answered = snapshot.answers(ids).filter(pl.col("mode").is_null() | (pl.col("mode") == TOP_K))
    answered = answered.join(timings, on="run_id", how="anti").with_columns(
        pl.col("input_tokens", "output_tokens").cast(pl.Float64)
    )
    parts = []
    for stage, column in {GENERATE: "ms", FIRST_TOKEN: "first_token_ms"}.items():
        recorded = answers(timings, usage, stage)
        own = answered.drop_nulls(column).select(pl.col(column).alias("ms"), pl.exclude("ms", column))
        parts.append(pl.concat([recorded, own.select(recorded.columns)]).with_columns(stage=pl.lit(stage)))
    return pl.concat(parts)


def fitted(timed: pl.DataFrame, stage: str = GENERATE) -> Fit:
    """Return the speed fitted to the timed answers of a stage, assuming one generator."""
    return fit(timed.filter(pl.col("stage") == stage))
