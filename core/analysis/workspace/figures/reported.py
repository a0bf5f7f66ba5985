"""Scores of single queries that runs report, for measures that are not computed here from rankings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from core.analysis.workspace.answers import graded, means
from core.analysis.workspace.clusters import EACH, Groups
from core.analysis.workspace.people import corrected_means
from core.analysis.workspace.scope import Quality, Scope
from core.analysis.workspace.scores import mean, places
from core.arrays import Floats, Mask
from core.metrics.rates import ANSWER, CORRECTED
from core.stats.means import mean_interval
from core.store import Snapshot

_ROUNDED = 1e-4  # Tolerance for a mean given with few digits


@dataclass(frozen=True)
class QueryScores:
    """Scores that some runs report for every query."""

    run_ids: tuple[str, ...]  # the runs, in the requested order
    query_ids: tuple[str, ...]  # every query with a score from any of them, sorted
    values: Floats  # [runs, queries]; NaN = not scored

    @property
    def has(self) -> Mask:
        """Which run has which query [runs, queries]."""
        return np.asarray(~np.isnan(self.values))


def query_scores(
    snapshot: Snapshot, run_ids: Sequence[str], quality: Quality, *, only: Collection[str] | None = None
) -> QueryScores | None:
    """Read the per-query scores that runs report, or None if none reports any.

    A run counts if its mean over the queries equals its reported figure for all of them, so that a score
    without a cutoff belongs to the measure at the figure's cutoff.

    Args:
        only: The queries that count; None = all.
    """
    single = _single(snapshot, run_ids, quality)
    known = set(single["run_id"])
    kept = [run_id for run_id in run_ids if run_id in known]
    if not kept:
        return None
    rows = single if only is None else single.filter(pl.col("query_id").is_in(list(only)))
    query_ids = rows["query_id"].unique().sort().to_list()
    values = np.full((len(kept), len(query_ids)), np.nan)
    run, query = places(rows, run_id=kept, query_id=query_ids)
    values[run, query] = rows["value"].to_numpy()
    return QueryScores(tuple(kept), tuple(query_ids), values)


def _single(snapshot: Snapshot, run_ids: Sequence[str], quality: Quality) -> pl.DataFrame:
    """Return run_id, query_id and value of the scores that count, one per row."""
    columns, measure = ("run_id", "query_id", "value"), quality.measure
    if measure is not None and measure.name == ANSWER.name:
        as_scored = measure.values["people"] != CORRECTED
        rows = graded(snapshot, run_ids, measure).filter(pl.col("k") == quality.k, pl.lit(as_scored))
        rows = rows.drop_nulls("correct").rename({"correct": "value"})
        return rows.select(columns).unique(columns[:2], keep="first", maintain_order=True)
    figures = snapshot.aggregates(run_ids).filter(measure=quality.bare, k=quality.k).unique("run_id")
    single = snapshot.signals(figures["run_id"].to_list(), signal=quality.bare)
    single = single.filter((pl.col("k") == quality.k) | pl.col("k").is_null(), pl.col("value").is_finite())
    whole = figures.select("run_id", whole="value")
    means = single.group_by("run_id").agg(pl.col("value").mean()).join(whole, on="run_id")
    same = means.filter((pl.col("value") - pl.col("whole")).abs() <= _ROUNDED * pl.col("whole").abs().clip(1))
    rows = single.filter(pl.col("run_id").is_in(same["run_id"].implode()))
    return rows.select(columns).unique(columns[:2], keep="first")


def as_reported(
    snapshot: Snapshot,
    run_ids: Sequence[str],
    quality: Quality,
    *,
    only: Collection[str] | None = None,
    alike: Groups = EACH,
) -> pl.DataFrame:
    """Return the values that runs report for a measure, or the mean score of their imported answers.

    Args:
        alike: Groups of the queries.

    Returns:
        run_id, value, n, clusters, low and high of the runs that have it.
    """
    measure = quality.measure
    if measure is not None and measure.name == ANSWER.name:
        read = corrected_means if measure.values["people"] == CORRECTED else means
        answered = read(snapshot, run_ids, measure, only, alike.labels).filter(pl.col("k") == quality.k)
        figures = answered.with_columns(pl.col("queries").cast(pl.Int32).alias("n"))
    else:
        figures = snapshot.aggregates(run_ids).filter(measure=quality.bare, k=quality.k)
        figures = figures.unique("run_id", keep="first")
    figures = figures.select("run_id", "value", "n", "low", "high", clusters=pl.lit(None, pl.Int32))
    return _with_intervals(snapshot, figures, quality, only, alike)


def _with_intervals(
    snapshot: Snapshot, figures: pl.DataFrame, quality: Quality, only: Collection[str] | None, alike: Groups
) -> pl.DataFrame:
    """Add n and 95 % interval to figures without them, from the queries behind their means.

    Args:
        figures: run_id, value, n, clusters, low and high.
        only: The queries that count, over which the mean is then computed; None = all.
    """
    open_ = pl.col("value").is_not_null() & (pl.col("low").is_null() | (only is not None))
    ids = figures.filter(open_)["run_id"].to_list()
    scores = query_scores(snapshot, ids, quality, only=only) if ids else None
    if scores is None:
        return figures
    low, high = mean_interval(scores.values, "shares", clusters=alike.labels(scores.query_ids))
    means, counts = mean(scores.values)
    units = alike.counts(scores.values, scores.query_ids)
    columns = {"run_id": scores.run_ids, "own": means, "own_n": counts, "own_low": low, "own_high": high}
    columns["own_clusters"] = units
    own = pl.DataFrame(columns).with_columns(pl.col(pl.Float64).fill_nan(None))
    rows = figures.join(own, on="run_id", how="left", maintain_order="left")
    counted = pl.col("own_n").is_not_null()
    return rows.select(
        pl.exclude("value", "n", "clusters", "low", "high", *own.columns[1:]),
        pl.when(counted & (only is not None)).then("own").otherwise("value").alias("value"),
        pl.coalesce("own_n", "n").cast(pl.Int32).alias("n"),
        pl.col("own_clusters").alias("clusters"),
        *(pl.when(counted).then(f"own_{end}").otherwise(end).alias(end) for end in ("low", "high")),
    )


def scored_here(snapshot: Snapshot, runs: pl.DataFrame, scope: Scope, quality: Quality) -> pl.DataFrame:
    """Return the runs whose rankings are scored here; for a measure of answers, those with such answers."""
    ranked = runs.filter(pl.col("run_id").is_in(computed(runs, scope, quality)))
    measure = quality.measure
    if measure and measure.name == ANSWER.name and ranked.height:
        single = graded(snapshot, ranked["run_id"].to_list(), measure).drop_nulls("correct")
        # Answers to questions that nobody judged are averaged unchanged
        single = single.join(snapshot.within(scope.golden_set_id or ""), on="query_id", how="semi")
        ranked = ranked.filter(pl.col("run_id").is_in(single["run_id"].unique().to_list()))
    return ranked


def computed(rows: pl.DataFrame, scope: Scope, quality: Quality) -> list[str]:
    """Return the run ids of those stacks of a table whose rankings are scored here."""
    if quality.measure is None or scope.golden_set_id is None or "has_rankings" not in rows.columns:
        return []
    return rows.filter("has_rankings")["run_id"].to_list()


def with_queries(snapshot: Snapshot, rows: pl.DataFrame, scope: Scope, quality: Quality) -> list[str]:
    """Return the run ids of stacks with quality per query from the same source as the first of them.

    Scores computed here do not compare with scores from elsewhere, so that all are of one kind: that
    of the first row that has any.
    """
    here = computed(rows, scope, quality)
    others = [run_id for run_id in rows["run_id"] if run_id not in set(here)]
    reports = query_scores(snapshot, others, quality) if others else None
    there = list(reports.run_ids) if reports else []
    first = next((run_id for run_id in rows["run_id"] if run_id in {*here, *there}), None)
    return there if first in there else here
