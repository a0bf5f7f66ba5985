"""Bias of the pool: what a run loses when the judgements that only it brought are taken away.

A passage is judged because some run found it. A run that helped to fill the pool is judged on all that it
finds, a new one is not; leaving out one run at a time shows how much that is worth (leave-one-run-out).
"""

from __future__ import annotations

import numpy as np
import polars as pl

from core.metrics import Measure
from core.views.workspace.scores import Evidence, at_cutoff, mean

MAX_RUNS = 200
"""Runs that are compared at most; every further one makes the judgements of the others less unique."""


def leave_one_out(
    found: Evidence, rankings: pl.DataFrame, judgements: pl.DataFrame, measure: Measure
) -> pl.DataFrame:
    """Score every run without the judgements of passages that no other run ranks."""
    unique = _unique(rankings, judgements)
    grades = found.grades[:, :, : measure.k].copy()
    counts = np.broadcast_to(found.pool_counts, (*grades.shape[:2], 5)).copy()
    run, query = _places(unique["run_id"], found.run_ids), _places(unique["query_id"], found.query_ids)
    np.subtract.at(counts, (run, query, unique["grade"].to_numpy() - 1), 1)
    shown = (unique["rank"] <= grades.shape[2]).fill_null(False).to_numpy()
    grades[run[shown], query[shown], unique["rank"].to_numpy()[shown].astype(np.int64) - 1] = 0
    without = mean(found.rescored(measure, grades, counts))[0]
    score = mean(at_cutoff(found, measure))[0]
    return (
        pl.DataFrame(
            {
                "run_id": found.run_ids,
                "unique": np.bincount(run, minlength=len(found.run_ids)),
                "score": score,
                "without": without,
            }
        )
        .with_columns(pl.col("score", "without").fill_nan(None))
        .with_columns((pl.col("score") - pl.col("without")).alias("bias"))
        .sort("bias", "run_id", descending=[True, False], nulls_last=True)
    )


def _unique(rankings: pl.DataFrame, judgements: pl.DataFrame) -> pl.DataFrame:
    """run_id, query_id, passage_id, grade and final rank (or null) of what one run alone brings."""
    pair = ["query_id", "passage_id"]
    alone = (
        rankings.group_by(pair)
        .agg(pl.col("run_id").n_unique().alias("runs"), pl.col("run_id").first())
        .filter(pl.col("runs") == 1)
        .join(judgements.select(*pair, "grade"), on=pair)
    )
    final = rankings.filter(pl.col("stage") == "final").select("run_id", *pair, "rank")
    return alone.join(final, on=["run_id", *pair], how="left")


def _places(names: pl.Series, known: tuple[str, ...]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    places = {name: place for place, name in enumerate(known)}
    return np.array([places[name] for name in names], dtype=np.int64)
