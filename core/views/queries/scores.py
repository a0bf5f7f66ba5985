"""Scores of single queries: 0 where a run was asked and found nothing, unknown where it was never asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from core.metrics import Measure, na_reason, to_depth
from core.store import Snapshot
from core.views.workspace.query_sets import among, asked_in
from core.views.workspace.scope import Quality, Scope
from core.views.workspace.scores import Evidence, at_cutoff, evidence

FOUND_NOTHING = "The stack was asked this query and ranks nothing, so it scores 0."
NOT_RANKED = "Not ranked: nothing says that the stack was asked this query, so its score is unknown."
OTHER_NOT_RANKED = "The second stack does not rank this query, so its score is unknown."
AS_ZERO = "Not ranked; counts as 0 in this comparison."
OUTSIDE = "Left out: outside the queries that the stacks of the workspace are compared on."

_SCORES = {
    "query_id": pl.String(),
    "score": pl.Float64(),
    "other": pl.Float64(),
    "best": pl.Float64(),
    "holes": pl.Int32(),
    "judged": pl.Int32(),
    "counts": pl.Boolean(),
    "note": pl.String(),
}


def query_scores(
    snapshot: Snapshot, scope: Scope, quality: Quality, run_ids: Sequence[str], *, as_zero: bool
) -> pl.DataFrame:
    """Score the judged queries of one run, or of two."""
    if scope.golden_set_id is None:
        return pl.DataFrame(schema=_SCORES)
    measure, ceiling = quality.measure, quality.ceiling
    found = evidence(snapshot, run_ids, scope.golden_set_id, (measure, ceiling))
    only = among(snapshot, scope)
    counts = np.array([only is None or query_id in only for query_id in found.query_ids], dtype=np.bool_)
    asked = asked_in(found, snapshot.timings)
    known = counts & (asked | as_zero)
    columns: dict[str, Any] = {
        "query_id": found.query_ids,
        "holes": _where(known[0], (to_depth(found.grades[0], quality.k) == 0).sum(axis=-1)),
        "judged": found.counts_of(0).sum(axis=1),
        "counts": counts,
    }
    if measure is not None:
        values = at_cutoff(found, measure)
        columns["score"] = _where(known[0], values[0])
        columns["note"] = _notes(found, measure, values[0], known, asked)
        columns |= {"other": _where(known[1], values[1])} if len(run_ids) > 1 else {}
    else:
        columns["note"] = f"{quality.bare} is known from aggregates only."
    if ceiling is not None:
        columns["best"] = _where(known[0], at_cutoff(found, ceiling)[0])
    made = pl.DataFrame(columns).cast({name: _SCORES[name] for name in columns})
    return pl.concat([pl.DataFrame(schema=_SCORES), made], how="diagonal").with_columns(
        pl.when("counts").then("note").otherwise(pl.lit(OUTSIDE)).alias("note")
    )


def _where(known: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> pl.Series:
    """Values that are known, the others null; as is what does not apply."""
    return pl.Series(np.where(known, values, np.nan), dtype=pl.Float64).fill_nan(None)


def _notes(
    found: Evidence,
    measure: Measure,
    scores: np.ndarray[Any, Any],
    known: np.ndarray[Any, Any],
    asked: np.ndarray[Any, Any],
) -> pl.Series:
    """Why a query has no score, or a score of 0; of a measure on one ranking the first is always the same."""
    missing, counts = np.isnan(scores), found.counts_of(0)
    reason = na_reason(measure, counts[(missing & counts.any(axis=-1)).argmax()]) if missing.any() else None
    nothing = ~(found.grades[0] >= 0).any(axis=-1)
    notes = pl.Series(pl.repeat(None, len(scores), dtype=pl.String, eager=True))
    for rows, words in (
        (nothing & asked[0], FOUND_NOTHING),
        (~known[-1], OTHER_NOT_RANKED),
        (~asked[0], AS_ZERO),
        (~known[0], NOT_RANKED),
        (missing, reason),
    ):
        notes = notes.scatter(np.flatnonzero(rows), words) if rows.any() else notes
    return notes
