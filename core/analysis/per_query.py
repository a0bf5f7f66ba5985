"""Queries: the weak points of a stack, query by query, alone or against a second stack.

A score is 0 if a stack ran the query and found nothing, unknown if it never ran it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from core.analysis.cache import cached
from core.analysis.workspace.figures.reported import QueryScores, computed, query_scores
from core.analysis.workspace.query_sets import among, asked_in
from core.analysis.workspace.scope import Quality, Scope
from core.analysis.workspace.scores import Evidence, at_cutoff, evidence
from core.analysis.workspace.unanswerable import with_slice
from core.analysis.workspace.view import View
from core.metrics import Measure, na_reason, to_depth
from core.store import Snapshot
from core.tables import schema

WEAK = 0.5  # A query is weak if the ranking reaches less than this share of its candidate pool's ceiling

UNJUDGED = "No passage of this query is judged."

FOUND_NOTHING = "The stack was asked this query and ranks nothing, so it scores 0."

NOT_RANKED = "Not ranked: nothing says that the stack was asked this query, so its score is unknown."

OTHER_NOT_RANKED = "The second stack does not rank this query, so its score is unknown."

AS_ZERO = "Not ranked; counts as 0 in this comparison."

NOT_REPORTED = "The import has no score of this query."

OUTSIDE = "Left out: outside the queries that the stacks of the workspace are compared on."

_SCORES = schema("query_id score:float other:float best:float holes:int32 judged:int32 counts:bool note")

_TIES = ("best", "query_id")

SORTS: Mapping[str, tuple[str, bool]] = {
    "worst first": ("score", False),
    "best first": ("score", True),
    "most unjudged": ("holes", True),
    "id": ("query_id", False),
}
"""The orders of the table: column, and whether the largest comes first."""

SORTS_AGAINST: Mapping[str, tuple[str, bool]] = {
    "largest loss": ("delta", False),
    "largest gain": ("delta", True),
    **SORTS,
}
"""The same with a second stack."""


def query_table(
    snapshot: Snapshot,
    scope: Scope,
    quality: Quality,
    run_id: str,
    other: str | None = None,
    *,
    as_zero: bool = False,
) -> pl.DataFrame:
    """Return every query of the workspace with one stack's results.

    Args:
        other: Another run with rankings, to compare with.
        as_zero: Count a judged query that a stack was not run on as 0, as averages over all queries and over
            shared ones; otherwise its score is unknown. One that it was run on and ranks nothing for scores 0
            either way.

    Returns:
        One row per query that is stored, judged or ranked, by id: query_id, text (null = not stored), tags
        (also `core.analysis.workspace.unanswerable.WITHOUT`),
        score (null = not applicable or not known), other (the second stack's score), delta = score − other,
        best (PROC of the query), share = score / best, holes (unjudged passages in the Top-K), judged
        (passages judged for the query), counts (whether it is among the judged queries that the workspace is
        compared on), note (why the score is missing, or 0).

    Raises:
        UnknownNameError: If the collection, the golden set or a run does not exist.
    """
    stored = snapshot.queries(scope.collection_id).select("query_id", "text", "tags")
    texts = with_slice(stored, snapshot, scope)
    run_ids = [run_id] if other is None else [run_id, other]
    if reports := _reports(snapshot, scope, quality, run_ids):
        only = among(snapshot, scope)
        own = _as_reported(reports, run_ids)
        if only is not None:
            own = own.with_columns(counts=pl.col("query_id").is_in(list(only)))
        rows = texts.join(own, on="query_id", how="full", coalesce=True)
        rows = rows.with_columns(pl.col("tags").fill_null([]), pl.col("counts").fill_null(value=False))
        missing, out = pl.lit(NOT_REPORTED), pl.lit(OUTSIDE)
        rows = rows.with_columns(
            pl.when(pl.col("score").is_null()).then(missing).when(~pl.col("counts")).then(out).alias("note"),
            *(pl.when("counts").then(name).alias(name) for name in ("score", "other")),
        )
        return rows.with_columns(
            (pl.col("score") - pl.col("other")).alias("delta"), pl.lit(None, pl.Float64).alias("share")
        ).sort("query_id")
    scores = _scores(snapshot, scope, quality, run_ids, as_zero=as_zero)
    return (
        texts.join(scores, on="query_id", how="full", coalesce=True)
        .join(_ranked(snapshot, texts, run_id), on="query_id", how="full", coalesce=True)
        .with_columns(
            pl.col("tags").fill_null([]),
            pl.col("judged").fill_null(0),
            pl.col("counts").fill_null(value=False),
            (pl.col("score") - pl.col("other")).alias("delta"),
            pl.when(pl.col("best") > 0).then(pl.col("score") / pl.col("best")).alias("share"),
        )
        .with_columns(pl.when(pl.col("judged") == 0).then(pl.lit(UNJUDGED)).otherwise("note").alias("note"))
        .sort("query_id")
    )


def _reports(
    snapshot: Snapshot, scope: Scope, quality: Quality, run_ids: Sequence[str]
) -> QueryScores | None:
    """Read the per-query scores that runs report, if their rankings are not scored here."""
    runs = snapshot.runs(scope.collection_id).filter(pl.col("run_id").is_in(run_ids))
    return None if computed(runs, scope, quality) else query_scores(snapshot, run_ids, quality)


def _as_reported(reports: QueryScores, run_ids: Sequence[str]) -> pl.DataFrame:
    """Return scores in the columns of `_SCORES`; nothing is known about passages."""
    values = {"query_id": reports.query_ids, "counts": [True] * len(reports.query_ids)}
    rows = pl.DataFrame(values, schema={"query_id": pl.String, "counts": pl.Boolean})
    for column, run_id in zip(("score", "other"), run_ids, strict=False):
        if run_id in reports.run_ids:
            own = reports.values[reports.run_ids.index(run_id)]
            rows = rows.with_columns(pl.Series(column, own).fill_nan(None))
    return pl.concat([pl.DataFrame(schema=_SCORES), rows], how="diagonal")


def _scores(
    snapshot: Snapshot, scope: Scope, quality: Quality, run_ids: Sequence[str], *, as_zero: bool
) -> pl.DataFrame:
    if scope.golden_set_id is None:
        return pl.DataFrame(schema=_SCORES)
    measure, ceiling = quality.measure, quality.ceiling
    graded = evidence(snapshot, run_ids, scope.golden_set_id, (measure, ceiling))
    only = among(snapshot, scope)
    counts = np.array([only is None or query_id in only for query_id in graded.query_ids], dtype=np.bool_)
    asked = asked_in(graded, snapshot.timings)
    known = counts & (asked | as_zero | bool(scope.shared))
    columns: dict[str, Any] = {
        "query_id": graded.query_ids,
        "holes": _where(known[0], (to_depth(graded.grades[0], quality.k) == 0).sum(axis=-1)),
        "judged": graded.counts_of(0).sum(axis=1),
        "counts": counts,
    }
    if measure is not None:
        values = at_cutoff(graded, measure)
        columns["score"] = _where(known[0], values[0])
        columns["note"] = _notes(graded, measure, values[0], known, asked)
        columns |= {"other": _where(known[1], values[1])} if len(run_ids) > 1 else {}
    else:
        columns["note"] = f"{quality.bare} is known from aggregates only."
    if ceiling is not None:
        columns["best"] = _where(known[0], at_cutoff(graded, ceiling)[0])
    scores = pl.DataFrame(columns).cast({name: _SCORES[name] for name in columns})
    return pl.concat([pl.DataFrame(schema=_SCORES), scores], how="diagonal").with_columns(
        pl.when("counts").then("note").otherwise(pl.lit(OUTSIDE)).alias("note")
    )


def _where(known: np.ndarray, values: np.ndarray) -> pl.Series:
    """Return known values, and null for unknown and inapplicable ones."""
    return pl.Series(np.where(known, values, np.nan), dtype=pl.Float64).fill_nan(None)


def _notes(
    graded: Evidence,
    measure: Measure,
    scores: np.ndarray,
    known: np.ndarray,
    asked: np.ndarray,
) -> pl.Series:
    """Explain why a query has no score, or a score of 0.

    For a measure on one ranking the first reason is always the same.
    """
    missing, counts = np.isnan(scores), graded.counts_of(0)
    reason = na_reason(measure, counts[(missing & counts.any(axis=-1)).argmax()]) if missing.any() else None
    nothing = ~(graded.grades[0] >= 0).any(axis=-1)
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


def _ranked(snapshot: Snapshot, texts: pl.DataFrame, run_id: str) -> pl.DataFrame:
    """Return ids of the ranked queries if no query texts are stored.

    They are the only list of queries then.
    """
    if texts.height:
        return texts.select("query_id").clear()
    return snapshot.rankings([run_id], stage="final").select("query_id").unique()


def tags_of(table: pl.DataFrame) -> list[str]:
    """Return the tags of the table's queries, sorted."""
    return table["tags"].explode().drop_nulls().unique().sort().to_list()


def narrowed(table: pl.DataFrame, tags: Sequence[str], words: str) -> pl.DataFrame:
    """Return the queries that match.

    Args:
        tags: Tags to look for: any of those with the same name (``package=numpy`` or ``package=polars``), and
            one for every name.
        words: Every word must occur in the question, the id or a tag, ignoring case.

    Returns:
        The rows, in their order.
    """
    facets: dict[str, list[str]] = {}
    for tag in tags:
        facets.setdefault(tag.split("=", 1)[0], []).append(tag)
    for wanted in facets.values():
        table = table.filter(pl.col("tags").list.set_intersection(wanted).list.len() > 0)
    haystack = pl.concat_str(
        "query_id", pl.col("text"), pl.col("tags").list.join(" "), separator="\n", ignore_nulls=True
    ).str.to_lowercase()
    matching = (haystack.str.contains(word, literal=True) for word in words.lower().split())
    return table.filter(pl.all_horizontal(pl.lit(value=True), *matching))


def ordered(table: pl.DataFrame, sort: str, *, higher_is_better: bool = True) -> pl.DataFrame:
    """Return the table in one of the orders of `SORTS_AGAINST`; rows without a value come last.

    Ties go to the query whose pool holds more: more was lost there.
    """
    column, largest_first = SORTS_AGAINST[sort]
    if column in ("score", "delta"):
        largest_first = largest_first == higher_is_better
    descending = {column: largest_first, **{name: name == "best" for name in _TIES if name != column}}
    return table.sort(list(descending), descending=list(descending.values()), nulls_last=True)


@cached("Scoring every query…", entries=64)
def queries(view: View, run_id: str, other: str | None = None) -> pl.DataFrame:
    """Return the query table of one stack, or of two."""
    return query_table(view.snapshot, view.scope, view.quality.by_query, run_id, other)


def useless(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the scored queries on which a stack finds nothing useful; none if the measure has no ceiling."""
    scored = rows.filter(pl.col("score").is_not_null())
    return scored.clear() if scored["best"].is_null().all() else scored.filter(pl.col("score") == 0)
