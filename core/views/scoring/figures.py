"""Several measures of every run at once: computed where rankings are there, else as reported."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from core.store import Snapshot
from core.views.workspace.query_sets import among
from core.views.workspace.scope import Quality, Scope
from core.views.workspace.scores import at_cutoff, evidence, mean
from core.views.workspace.stacks import runs_in


def figures(snapshot: Snapshot, scope: Scope, measures: Sequence[Quality]) -> pl.DataFrame:
    """One column per measure."""
    runs = runs_in(snapshot, scope)
    computed = runs.filter(pl.col("has_rankings") & pl.lit(scope.golden_set_id is not None))
    known = [_reported(snapshot, runs.join(computed, on="run_id", how="anti"), measures)]
    if scope.golden_set_id is not None and not computed.is_empty():
        known.append(_computed(snapshot, computed, scope, measures))
    found = pl.concat(known, how="vertical_relaxed")
    return runs.join(found, on="run_id", how="left", maintain_order="left")


def _reported(snapshot: Snapshot, runs: pl.DataFrame, measures: Sequence[Quality]) -> pl.DataFrame:
    printed = snapshot.aggregates(runs["run_id"].to_list())
    made = runs.select("run_id")
    for quality in measures:
        same = (pl.col("measure") == quality.bare) & (pl.col("k") == quality.k)
        one = printed.filter(same).unique("run_id", keep="first")
        column = one.select("run_id", pl.col("value").alias(quality.name))
        made = made.join(column, on="run_id", how="left", maintain_order="left")
    return made


def _computed(
    snapshot: Snapshot, runs: pl.DataFrame, scope: Scope, measures: Sequence[Quality]
) -> pl.DataFrame:
    parsed = [quality.measure for quality in measures]
    only, golden = among(snapshot, scope), scope.golden_set_id or ""
    found = evidence(snapshot, runs["run_id"].to_list(), golden, parsed, only=only)
    made = pl.DataFrame({"run_id": found.run_ids})
    return made.with_columns(
        pl.lit(None, pl.Float64).alias(quality.name)
        if measure is None
        else pl.Series(quality.name, mean(at_cutoff(found, measure))[0]).fill_nan(None)
        for quality, measure in zip(measures, parsed, strict=True)
    )
