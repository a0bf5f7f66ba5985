"""Further axes, besides the requested quality, that can be limited: harm, robust quality, refusals.

An axis of `core.decide.axes.BESIDE` has a column of the stack table, and another with `OF` after its name
for its measure. A new axis needs a row there and a source here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl

from core.analysis.workspace.answers import as_word, scored_too
from core.analysis.workspace.clusters import groups
from core.analysis.workspace.figures.reported import QueryScores, computed
from core.analysis.workspace.figures.robust import endured
from core.analysis.workspace.filters import no_leaks, per_query
from core.analysis.workspace.query_sets import among, scores_by_query
from core.analysis.workspace.scope import Quality, Scope
from core.analysis.workspace.scores import at_cutoff, evidence, mean, places
from core.arrays import Floats
from core.decide.axes import ANSWERING, BESIDE, HARM, LEAK, REFUSING, ROBUST, Axis
from core.decide.rules import Constraints
from core.errors import cut
from core.metrics import Measure
from core.metrics.access import LEAK as LEAK_RATE
from core.metrics.rates import ANSWER, HOLES
from core.number_format import interval, sample, score
from core.stats.means import mean_interval
from core.store import Snapshot
from core.store.read.memory import Memory
from core.tables import remembered

OF, EXAMPLE, USUAL = "_of", "_example", "_usual_limit"
ENDS = ("_low", "_high", "_n")
"""Suffixes of a column's name: the ends of its 95 % interval, and the number of its queries."""
_TINY = 1e-9
_KEPT = Memory(64 * 2**20)


class _Known(NamedTuple):
    """The known values of an axis in a workspace."""

    measure: Measure
    scores: QueryScores
    # Ends of the 95 % intervals of the means [runs]; None if they would have to be drawn for every measure
    ends: tuple[Floats, Floats] | None = None
    examples: Mapping[str, str] | None = None  # run → a query that breaks a limit, if the axis names any
    usual: float | None = None  # the limit that holds unless another is set


_Found = _Known | None


def _robust(snapshot: Snapshot, runs: pl.DataFrame, scope: Scope, quality: Quality) -> _Found:
    """Return the worst of clean and perturbed queries."""
    measure, ranked = endured(snapshot, scope, quality.measure), computed(runs, scope, quality)
    if measure is None or not ranked:
        return None
    judged = evidence(snapshot, ranked, scope.golden_set_id or "", (measure,), only=among(snapshot, scope))
    return _Known(measure, QueryScores(judged.run_ids, judged.query_ids, at_cutoff(judged, measure)))


def _answers(scorer: str, snapshot: Snapshot, runs: pl.DataFrame, scope: Scope, quality: Quality) -> _Found:
    """Return a scorer's scores of the answers, whatever the measure."""
    run_ids = tuple(runs["run_id"])
    key = (str(snapshot.catalogue.path), snapshot.revision, scope, run_ids, scorer, quality.k)
    return _KEPT.once(
        key,
        lambda: _scored(snapshot, run_ids, scope, scorer, quality.k),
        lambda found: 100 * len(run_ids) + (found.scores.values.nbytes if found else 0),
    )


def _scored(snapshot: Snapshot, among_runs: Sequence[str], scope: Scope, scorer: str, k: int) -> _Found:
    """Return a scorer's scores of answers to the judged questions, or to all if none is judged."""
    rows = scored_too(snapshot, among_runs, scope.answering, scorer, k)
    if scope.golden_set_id is not None and rows.height:
        judged = rows.join(snapshot.within(scope.golden_set_id), on="query_id", how="semi")
        shared = among(snapshot, scope) if judged.height else None
        rows = judged if judged.height else rows
        rows = rows if shared is None else rows.filter(pl.col("query_id").is_in(list(shared)))
    if rows.is_empty():
        return None
    readers = rows["reader"].unique().to_list()
    said = [("reader", as_word(readers[0]))] if len(readers) == 1 and readers[0] else []
    scores = _matrix(rows, "value")
    measure = Measure(ANSWER.name, k, (*said, ("scorer", scorer)))
    ends = mean_interval(scores.values, "shares", clusters=groups(snapshot, scope).labels(scores.query_ids))
    return _Known(measure, scores, ends)


def _matrix(rows: pl.DataFrame, column: str) -> QueryScores:
    run_ids, query_ids = (rows[name].unique().sort().to_list() for name in ("run_id", "query_id"))
    values = np.full((len(run_ids), len(query_ids)), np.nan)
    run, query = places(rows, run_id=run_ids, query_id=query_ids)
    values[run, query] = rows[column].to_numpy()
    return QueryScores(tuple(run_ids), tuple(query_ids), values)


def _leaks(snapshot: Snapshot, runs: pl.DataFrame, scope: Scope, quality: Quality) -> _Found:
    """Return whether rankings show what filters forbid, for all questions with a filter, judged or not."""
    ranked = runs.filter("has_rankings")["run_id"].to_list()
    rows = per_query(snapshot, ranked, quality.k)
    if rows.is_empty():
        return None
    scores = _matrix(rows, "leak")
    ends = mean_interval(scores.values, "shares", clusters=groups(snapshot, scope).labels(scores.query_ids))
    shown = rows.filter(pl.col("leak") > 0).group_by("run_id").agg(pl.col("query_id").min())
    examples = {run_id: cut(query_id, 40) for run_id, query_id in shown.iter_rows()}
    usual = 0.0 if no_leaks(snapshot, scope.collection_id) else None
    return _Known(Measure(LEAK_RATE.name, quality.k), scores, ends, examples, usual)


_SOURCES: Mapping[str, Callable[[Snapshot, pl.DataFrame, Scope, Quality], _Found]] = {
    ROBUST.column: _robust,
    REFUSING.column: partial(_answers, "right_refusal"),
    ANSWERING.column: partial(_answers, "no_wrong_refusal"),
    LEAK.column: _leaks,
}
"""Measure and values of each axis in a workspace, by its column; None if nothing is known there. Harm comes
with the quality (`with_harm`)."""


def beside(snapshot: Snapshot, runs: pl.DataFrame, scope: Scope, quality: Quality) -> pl.DataFrame:
    """Return every run's values on the further axes, as far as known.

    Returns:
        run_id and, for every axis but harm, its column and the one with `OF`, null = unknown; with `ENDS`, if
        known for any.
    """
    table = runs.select("run_id")
    for name, source in _SOURCES.items():
        found = source(snapshot, runs, scope, quality)
        if found is None or np.isnan(found.scores.values).all():
            nothing = {name: pl.lit(None, pl.Float64), name + OF: pl.lit(None, pl.String)}
            table = table.with_columns(**nothing)
            continue
        means, n = mean(found.scores.values)
        ends = found.ends or (np.full(len(n), np.nan), np.full(len(n), np.nan))
        columns = dict(zip((name + end for end in ENDS), (*ends, n), strict=True))
        known = pl.DataFrame({"run_id": found.scores.run_ids, name: means, **columns})
        known = known.with_columns(pl.col(pl.Float64).fill_nan(None)).drop_nulls(name)
        known = known.with_columns(pl.lit(str(found.measure)).alias(name + OF))
        if found.examples is not None:
            named = pl.col("run_id").replace_strict(found.examples, default=None, return_dtype=pl.String)
            usual = pl.lit(found.usual, pl.Float64).alias(name + USUAL)
            known = known.with_columns(named.alias(name + EXAMPLE), usual)
        table = table.join(known, on="run_id", how="left", maintain_order="left")
    return table


def with_harm(table: pl.DataFrame, k: int) -> pl.DataFrame:
    """Choose the form of harm that a workspace uses.

    It is the same for all stacks, because Harm of one does not compare with an upper bound of another.
    """
    holes = table.select((pl.col("harm_upper") - pl.col("harm")).max()).item()
    upper = holes is not None and holes > HOLES + _TINY
    measure = Measure("HarmUpper" if upper else "Harm", k)
    known = table["harm_upper" if upper else "harm"]
    name = None if known.is_null().all() else str(measure)
    return table.with_columns(known.alias("harm"), pl.lit(name, pl.String).alias("harm_of")).drop(
        "harm_upper"
    )


def usual_limit(table: pl.DataFrame, axis: Axis) -> float | None:
    """Return the limit on an axis that holds in a workspace unless another is set, or None."""
    known = table.get_column(axis.column + USUAL, default=pl.Series(dtype=pl.Float64)).drop_nulls()
    return None if known.is_empty() else float(known[0])


@remembered
def measure_of(table: pl.DataFrame, axis: Axis) -> str | None:
    """Return the measure behind an axis in a stack table, or None if nothing is known about it."""
    names = table.get_column(axis.column + OF, default=pl.Series(dtype=pl.String)).drop_nulls()
    return None if names.is_empty() else str(names[0])


def by_query(
    snapshot: Snapshot, table: pl.DataFrame, scope: Scope, quality: Quality, axis: Axis
) -> QueryScores | None:
    """Return an axis's values per query for the stacks of a table, or None if nothing is known about it."""
    name = measure_of(table, axis)
    if name is None:
        return None
    if axis.column in _SOURCES:
        found = _SOURCES[axis.column](snapshot, table, scope, quality)
        return found and found.scores
    return scores_by_query(snapshot, table, scope, Quality(str(Measure.parse(name).at(None)), quality.k))


def limit_words(table: pl.DataFrame, limits: Constraints, row: int | None = None) -> dict[str, str]:
    """Describe each limit beside the quality, by its word; unknown ones are left out.

    Args:
        row: The stack whose number, interval and n are given, if known.
    """
    said = {}
    for axis in BESIDE:
        limit, name = limits.of(axis), measure_of(table, axis)
        if limit is not None and name is not None:
            more = _why_harm(name) if axis == HARM else _number(table, axis.column, row)
            said[axis.limit_word] = f"The {axis.limit_word} of {score(limit)} is about {name}{more}."
    return said


def _number(table: pl.DataFrame, column: str, row: int | None) -> str:
    """Format a stack's value on an axis."""
    if row is None or column + ENDS[0] not in table.columns:
        return ""
    value, low, high, n = (table[column + end][row] for end in ("", *ENDS))
    return f"; {table['name'][row]} has {score(value)}{interval(low, high)}, {sample(n)}"


def _why_harm(name: str) -> str:
    few = f"{HOLES:.0%}".replace("%", " %")
    if name.startswith("HarmUpper"):
        return f" (Harm + Hole): more than {few} of a Top-K is unjudged"
    return f": at most {few} of any Top-K is unjudged"
