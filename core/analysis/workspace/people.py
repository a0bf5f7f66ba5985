"""Grades of answers by people, which correct a judge's scores if the measure asks for it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import polars as pl

from core.analysis.workspace.answers import graded
from core.answers import BY_PEOPLE, TOP_K, share
from core.arrays import Floats
from core.metrics import Measure
from core.metrics.rates import CORRECTED
from core.stats.corrected import ScoredLabels, by_question, correct
from core.stats.intervals import Alike, singly
from core.store import Snapshot

_ANSWER = ("run_id", "reader", "prompt", "temperature", "k")


def by_people(snapshot: Snapshot, run_ids: Sequence[str], answers: pl.DataFrame) -> pl.DataFrame:
    """Return people's grades of answers.

    Args:
        answers: The answers: run_id, reader, prompt, temperature and k.

    Returns:
        run_id, query_id, k and correct (0..1, the mean of several people).
    """
    top = pl.col("mode").is_null() | (pl.col("mode") == TOP_K)
    rows = snapshot.answer_scores(run_ids).filter(top, pl.col("query_id").is_not_null(), source=BY_PEOPLE)
    same = rows.join(answers.select(_ANSWER).unique(), on=_ANSWER, how="semi", nulls_equal=True)
    scaled = same.with_columns(share().alias("correct")).drop_nulls("correct")
    return scaled.group_by("run_id", "query_id", "k").agg(pl.col("correct").mean())


def set_right(judged: Floats, people: Floats) -> Floats:
    """Correct a judge's scores [runs, queries, K] by people's, run by run and k by k.

    The sums of groups of questions scatter as the mean is uncertain, so that they need not be known here.
    """
    right = np.full_like(judged, np.nan)
    graded_any = (~np.isnan(people)).any(axis=1)
    for run, k in np.argwhere(graded_any):
        right[run, :, k] = by_question(ScoredLabels(people[run, :, k], judged[run, :, k]))
    return right


def corrected_means(
    snapshot: Snapshot,
    run_ids: Sequence[str],
    measure: Measure,
    only: Collection[str] | None = None,
    alike: Alike = singly,
) -> pl.DataFrame:
    """Correct the mean score of answers if no rankings are scored.

    Args:
        only: The queries that count; None = all.
        alike: As in `core.readers.curves.points`.

    Returns:
        run_id, k, value, low, high and queries, for runs and k with enough grades.
    """
    rows = graded(snapshot, run_ids, measure).drop_nulls("correct")
    rows = rows if only is None else rows.filter(pl.col("query_id").is_in(list(only)))
    own = by_people(snapshot, run_ids, rows).rename({"correct": "own"})
    both = rows.join(own, on=["run_id", "query_id", "k"], how="full", coalesce=True)
    found = []
    for (run_id, k), some in both.group_by("run_id", "k", maintain_order=True):
        columns = some.select(pl.col("own", "correct").cast(pl.Float64).fill_null(np.nan))
        own_scores, judged = columns.to_numpy().T
        told = correct(ScoredLabels(own_scores, judged, alike(some["query_id"].to_list())))
        if not np.isnan(told.low):
            found.append((run_id, k, told.value, told.low, told.high, told.questions))
    kinds = {"run_id": pl.String(), "k": pl.Int32(), "value": pl.Float64(), "low": pl.Float64()}
    return pl.DataFrame(found, schema={**kinds, "high": pl.Float64(), "queries": pl.Int64()}, orient="row")


def unused(snapshot: Snapshot, run_ids: Sequence[str], measure: Measure | None) -> int:
    """Count the grades by people that a measure of answers does not use."""
    if measure is None or "people" not in measure.values or measure.values["people"] == CORRECTED:
        return 0
    return by_people(snapshot, run_ids, graded(snapshot, run_ids, measure)).height
