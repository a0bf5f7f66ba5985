"""Scores that stacks lack among the compared queries, and the possible effect on their means.

Scores are not assumed to be missing at random: a score may be missing because a stack fails. So the share
is shown beside the estimate, and its bound with the missing ones at either end of the measure's range.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from core.analysis.workspace.figures.reported import query_scores, scored_here
from core.analysis.workspace.query_sets import asked_in
from core.analysis.workspace.scope import Quality, Scope
from core.analysis.workspace.scores import at_cutoff, evidence
from core.arrays import Floats, Mask
from core.number_format import count, score
from core.store import Snapshot
from core.tables import schema

COLUMNS = schema("lacks:float lacks_low:float lacks_high:float lacks_n:int32")
"""Share of the queries for which a stack has no score, its mean with these at the low and at the high end of
the range, and the number of queries; null if all stacks have all, the ends also without a range."""


def lacks(snapshot: Snapshot, runs: pl.DataFrame, scope: Scope, quality: Quality) -> pl.DataFrame:
    """Return run_id and `COLUMNS` of the runs of a workspace."""
    found = _scores(snapshot, runs, scope, quality) if scope.shared else None
    if found is None or not (missing := found[2]).any():
        return pl.DataFrame(schema={"run_id": pl.String, **COLUMNS})
    run_ids, values, _ = found
    n, sums = values.shape[1], np.where(missing, 0.0, values).sum(axis=1)
    ends = quality.range
    share = missing.mean(axis=1)
    low, high = (sums / n + share * end for end in ends) if ends else np.full((2, len(run_ids)), np.nan)
    columns = {"run_id": run_ids, "lacks": share, "lacks_low": low, "lacks_high": high, "lacks_n": n}
    return pl.DataFrame(columns, schema_overrides=COLUMNS).with_columns(pl.col(pl.Float64).fill_nan(None))


def _scores(
    snapshot: Snapshot, runs: pl.DataFrame, scope: Scope, quality: Quality
) -> tuple[tuple[str, ...], Floats, Mask] | None:
    """Return runs, their scores on the queries counted before any stack removed one, and the missing ones."""
    of = frozenset((*scope.shared.ids, *scope.lacked.ids))
    ranked = scored_here(snapshot, runs, scope, quality)["run_id"].to_list()
    if not ranked or quality.measure is None:
        scores = query_scores(snapshot, runs["run_id"].to_list(), quality, only=of)
        return None if scores is None else (scores.run_ids, scores.values, ~scores.has)
    graded = evidence(snapshot, ranked, scope.golden_set_id or "", [quality.measure], only=of)
    values = at_cutoff(graded, quality.measure)
    applies = ~np.isnan(values).all(axis=0)
    missing = np.isnan(values) | ~asked_in(graded, snapshot.timings)
    return graded.run_ids, values[:, applies], missing[:, applies]


def bound(row: Mapping[str, Any], quality: Quality) -> str:
    """Describe what a stack lacks and the resulting bounds of its mean, or return "" if it lacks nothing."""
    if not row.get("lacks"):
        return ""
    few = round(row["lacks"] * row["lacks_n"])
    said = f"{row['name']} lacks {few:,} of {count(row['lacks_n'], 'query', 'queries')}"
    if (ends := quality.range) is None:
        return f"{said}; without a declared range no bound is known."
    between = f"{score(row['lacks_low'])} to {score(row['lacks_high'])}"
    return f"{said}: {between} if {'it' if few == 1 else 'each'} were {ends[0]:g} or {ends[1]:g}."
