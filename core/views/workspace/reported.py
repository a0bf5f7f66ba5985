"""Scores of single queries that runs came with, for measures that are not computed here from rankings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from core.stats.intervals import bootstrap_means
from core.store import Snapshot
from core.views.workspace.scope import Quality, Scope
from core.views.workspace.scores import Floats, places

_ROUNDED = 1e-4  # A mean that was given with few digits is still that of its queries


@dataclass(frozen=True)
class QueryScores:
    """Scores that some runs report of every query."""

    run_ids: tuple[str, ...]  # the runs, in the order asked
    query_ids: tuple[str, ...]  # every query that one of them has a score of, sorted
    values: Floats  # [runs, queries]; NaN = not scored


def query_scores(snapshot: Snapshot, run_ids: Sequence[str], quality: Quality) -> QueryScores | None:
    """Read what runs report of every query; None where none reports any.

    A run counts whose mean over the queries is the figure that it reports for all of them, so that a score
    without a cutoff is of the measure at that of the figure.
    """
    figures = snapshot.aggregates(run_ids).filter(measure=quality.bare, k=quality.k).unique("run_id")
    if figures.is_empty():
        return None
    single = snapshot.signals(figures["run_id"].to_list(), signal=quality.bare)
    single = single.filter((pl.col("k") == quality.k) | pl.col("k").is_null(), pl.col("value").is_finite())
    whole = figures.select("run_id", whole="value")
    means = single.group_by("run_id").agg(pl.col("value").mean()).join(whole, on="run_id")
    same = means.filter((pl.col("value") - pl.col("whole")).abs() <= _ROUNDED * pl.col("whole").abs().clip(1))
    kept = [run_id for run_id in run_ids if run_id in set(same["run_id"])]
    if not kept:
        return None
    rows = single.filter(pl.col("run_id").is_in(kept)).unique(["run_id", "query_id"], keep="first")
    query_ids = rows["query_id"].unique().sort().to_list()
    values = np.full((len(kept), len(query_ids)), np.nan)
    run, query = places(rows, run_id=kept, query_id=query_ids)
    values[run, query] = rows["value"].to_numpy()
    return QueryScores(tuple(kept), tuple(query_ids), values)


def with_intervals(snapshot: Snapshot, figures: pl.DataFrame, quality: Quality) -> pl.DataFrame:
    """Give figures that have no interval the n and 95 % interval of the queries that they are the mean of.

    Args:
        figures: run_id, value, n, low and high.
    """
    bare = figures.filter(pl.col("value").is_not_null() & pl.col("low").is_null())
    scores = query_scores(snapshot, bare["run_id"].to_list(), quality) if bare.height else None
    if scores is None:
        return figures
    low, high = bootstrap_means(scores.values)
    counts = (~np.isnan(scores.values)).sum(axis=1)
    columns = {"run_id": scores.run_ids, "own_n": counts, "own_low": low, "own_high": high}
    rows = figures.join(pl.DataFrame(columns), on="run_id", how="left", maintain_order="left")
    return rows.select(
        pl.exclude("n", "low", "high", "own_n", "own_low", "own_high"),
        pl.coalesce("own_n", "n").cast(pl.Int32).alias("n"),
        pl.coalesce("low", pl.col("own_low").fill_nan(None)).alias("low"),
        pl.coalesce("high", pl.col("own_high").fill_nan(None)).alias("high"),
    )


def computed(rows: pl.DataFrame, scope: Scope, quality: Quality) -> list[str]:
    """Return the run ids of those stacks of a table whose rankings are scored here."""
    if quality.measure is None or scope.golden_set_id is None or "has_rankings" not in rows.columns:
        return []
    return rows.filter("has_rankings")["run_id"].to_list()


def with_queries(snapshot: Snapshot, rows: pl.DataFrame, scope: Scope, quality: Quality) -> list[str]:
    """Return the run ids of stacks whose quality is known query by query, as it is of the first of them.

    What is scored here does not compare with what was scored elsewhere, so that it is all of one kind: that
    of the first row which has any.
    """
    here = computed(rows, scope, quality)
    others = [run_id for run_id in rows["run_id"] if run_id not in set(here)]
    reports = query_scores(snapshot, others, quality) if others else None
    there = list(reports.run_ids) if reports else []
    first = next((run_id for run_id in rows["run_id"] if run_id in {*here, *there}), None)
    return there if first in there else here
