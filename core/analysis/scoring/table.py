"""Scores as a long table: one row per run and measure, or per query, with n, interval and reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import numpy as np
import polars as pl

from core.analysis.workspace.clusters import EACH, Groups, groups
from core.analysis.workspace.comparable import about_figures, about_queries
from core.analysis.workspace.figures.reported import as_reported, query_scores, scored_here
from core.analysis.workspace.pools import EMPTY_SLOT
from core.analysis.workspace.query_sets import among, asked_in, out_of_reach, overlap
from core.analysis.workspace.scope import Quality, Scope
from core.analysis.workspace.scores import (
    Evidence,
    applies_to_none,
    at_cutoff,
    evidence,
    furthest,
    mean,
    unperturbed,
)
from core.analysis.workspace.stacks import runs_in
from core.analysis.workspace.units import other_units
from core.arrays import Mask
from core.errors import InputError
from core.metrics import Measure, na_reason
from core.number_format import count
from core.stats.means import mean_interval
from core.store import Snapshot
from core.tables import schema

NOT_ASKED = "not ranked: nothing says that the run was asked this query"
COLUMNS = schema(
    "run stack measure k:int32 query_id value:float reason n:int32 clusters:int32 ci_low:float ci_high:float"
)
"""Columns of `score_table`; query_id only if scores per query are requested."""
# No frame at import: its operations start threads, which a server forked from a warm process would await.
_UNLABELLED = {name: dtype for name, dtype in COLUMNS.items() if name != "stack"}
_NAMED = 5  # Maximum number of runs named in a sentence
_UNJUDGED = "No passage of the query is judged."
_NO_JUDGEMENTS = "no golden set: its rankings cannot be scored"
_NOT_REPORTED = "not among the figures of this run"
_NOT_SCORED = "the run came without a score of this query"


class Over(StrEnum):
    """Which judged queries count."""

    SHARED = "shared"
    OWN = "own"
    ALL = "all"


@dataclass(frozen=True)
class Counted:
    """Rankings on the queries that count."""

    found: Evidence  # their grades
    hidden: Mask  # [runs, queries], values that are unknown although present
    why: tuple[str, ...]  # the reason per run
    said: str  # the note on the choice; "" if every run was run on every judged query


def counted(graded: Evidence, timings: Callable[[Sequence[str]], pl.DataFrame], over: Over | None) -> Counted:
    """Leave out the queries that the runs were not run on."""
    asked = asked_in(graded, timings)
    sets = overlap(graded.run_ids, graded.query_ids, asked, np.zeros_like(asked))
    over = over or (Over.SHARED if sets.differ else Over.ALL)
    nothing = ("",) * len(graded.run_ids)
    if not sets.differ and not sets.unasked:
        return Counted(graded, np.zeros_like(asked), nothing, "")
    if over is Over.ALL:
        words = f"{about_queries(sets, shared=False, offer=False)} {_otherwise(over)}"
        return Counted(graded, np.zeros_like(asked), nothing, words)
    if over is Over.OWN:
        words = (
            f"Of {sets.judged} judged queries the runs were asked {sets.fewest} to {sets.most}; each is "
            f"scored on its own, so their values do not compare. {_otherwise(over)}"
        )
        return Counted(graded, ~asked, (NOT_ASKED,) * len(graded.run_ids), words)
    apart = np.array([run_id in sets.apart for run_id in graded.run_ids])
    why = out_of_reach(sets)
    words = f"{about_queries(sets, shared=True, offer=False)} {_otherwise(over)}"
    shared = graded.among(frozenset(sets.shared.ids))
    hidden = np.repeat(apart[:, None], len(shared.query_ids), axis=1)
    return Counted(shared, hidden, tuple(why.get(name, "") for name in graded.run_ids), words)


_WORDS = {
    Over.SHARED: "shared compares the runs on what all were asked",
    Over.OWN: "own scores each on what it was asked",
    Over.ALL: "all counts a query not ranked as 0",
}


def _otherwise(over: Over) -> str:
    """Describe the other ways as options of the command line."""
    return f"(--queries: {'; '.join(words for other, words in _WORDS.items() if other is not over)})"


def score_table(
    snapshot: Snapshot,
    runs: pl.DataFrame,
    golden_set_id: str | None,
    measures: Sequence[Measure],
    *,
    reported: Sequence[Quality] = (),
    per_query: bool = False,
    over: Over | None = Over.ALL,
    tell: Callable[[str], None] | None = None,
) -> pl.DataFrame:
    """Score runs of one collection.

    Args:
        runs: Rows of `Snapshot.runs`.
        golden_set_id: The judgements; None scores nothing but shows imported aggregates.
        reported: Measures that are not computed: use each run's reported value.
        per_query: One row per query instead of the mean.
        over: Which judged queries count; see `core.analysis.scoring.table.counted`.
        tell: Receives a note on what is not comparable, and how it was handled.

    Returns:
        `COLUMNS`. value is null if the measure is inapplicable or unknown, and reason says why; ci_low
        and ci_high are the 95 % interval of the mean over the n queries.

    Raises:
        InputError: If a measure has no cutoff, or isn't computed although scores per query are requested.
    """
    require_cutoffs(measures)
    ranked = runs.filter(pl.col("has_rankings")) if golden_set_id else runs.clear()
    parts = [pl.DataFrame(schema=_UNLABELLED)]
    alike = groups(snapshot, _scope(runs, golden_set_id)) if runs.height else EACH
    if measures and golden_set_id and not ranked.is_empty():
        graded = evidence(snapshot, ranked["run_id"].to_list(), golden_set_id, measures)
        seen = counted(graded, snapshot.timings, over)
        called = dict(ranked.select("run_id", "label").iter_rows())
        units = about_figures(other_units(snapshot, ranked)[1], odd=True, together=True, offer=False)
        for words in (units, seen.said, unjudged(graded, measures, called)):
            if tell and words:
                tell(words)
        parts.append(scored_rows(seen, measures, per_query=per_query, alike=alike))
    asked = [Quality(str(measure.at(None)), measure.k or 1) for measure in measures]
    rest = [(_not_here(snapshot, runs, golden_set_id, name), name) for name in asked]
    for without, name in rest:  # answers to questions that nobody judged are averaged unchanged
        parts[1:] = [
            part.filter(
                ~(pl.col("run").is_in(without["run_id"].to_list()) & (pl.col("measure") == name.name))
            )
            for part in parts[1:]
        ]
    if per_query:
        parts += _reported_queries(snapshot, [*rest, *((runs, name) for name in reported)])
    elif some := [
        _reported(snapshot, without, name, alike) for without, name in rest if not without.is_empty()
    ]:
        figures = pl.concat(some)
        came = figures.filter(pl.col("value").is_not_null())["run"].n_unique()
        if tell and came and len(parts) > 1:
            what = f"{count(came, 'run comes', 'runs come')} as averages of an evaluation elsewhere"
            tell(f"{what}, which do not compare with scores made here.")
        parts.append(figures)
    parts += [] if per_query else [_reported(snapshot, runs, name, alike) for name in reported]
    labels = runs.select(pl.col("run_id").alias("run"), pl.col("label").alias("stack"))
    return labelled(pl.concat(parts, how="diagonal"), labels, per_query=per_query)


def _scope(runs: pl.DataFrame, golden_set_id: str | None) -> Scope:
    return Scope(str(runs["collection_id"][0]) if runs.height else "", golden_set_id)


def _not_here(
    snapshot: Snapshot, runs: pl.DataFrame, golden_set_id: str | None, quality: Quality
) -> pl.DataFrame:
    """Return the runs that report a measure instead of being scored on it here."""
    scope = _scope(runs, golden_set_id)
    return runs.join(scored_here(snapshot, runs, scope, quality), on="run_id", how="anti")


def labelled(rows: pl.DataFrame, labels: pl.DataFrame, *, per_query: bool) -> pl.DataFrame:
    """Return rows of scores in the form of `score_table`; labels give the stack name of every run."""
    table = rows.join(labels, on="run", maintain_order="left")
    return table.select(name for name in COLUMNS if per_query or name != "query_id")


def require_cutoffs(measures: Sequence[Measure]) -> None:
    """Refuse a measure without a cutoff."""
    for measure in measures:
        if measure.k is None:
            raise InputError(f"{measure} has no cutoff.", do=f"Write {measure.at(10)}, for example.")


def unjudged(graded: Evidence, measures: Sequence[Measure], labels: Mapping[str, str]) -> str:
    """Return a note on runs without a judged passage within the largest cutoff, or "" if there are none."""
    k = max(measure.k or 1 for measure in measures)
    top = graded.grades[:, :, :k]
    most = top.max(axis=(1, 2), initial=EMPTY_SLOT)  # each run's best grade; 0 = it ranks unjudged only
    names = [labels[graded.run_ids[run]] for run in np.flatnonzero(most == 0)]
    if not names:
        return ""
    listed = ", ".join(names[:_NAMED]) + (f" (+{len(names) - _NAMED})" if names[_NAMED:] else "")
    return f"No passage of the Top-{k} is judged, so that a score says nothing: {listed}."


def scored_rows(
    seen: Counted, measures: Sequence[Measure], *, per_query: bool, alike: Groups = EACH
) -> pl.DataFrame:
    """Return the rows of `score_table` for runs with rankings, without labels; measures share counts."""
    if per_query:
        measures = [measure.by_query for measure in measures]
    deepest = max(measure.k or 1 for measure in measures)
    scored = seen.found.score(measures, deepest, hidden=seen.hidden)
    make = _queries if per_query else partial(_means, alike=alike)
    parts = [make(seen, measure, values[..., (measure.k or 1) - 1]) for measure, values in scored.items()]
    return pl.concat([pl.DataFrame(schema=_UNLABELLED), *parts], how="diagonal")


def _means(seen: Counted, measure: Measure, values: np.ndarray, alike: Groups) -> pl.DataFrame:
    graded = seen.found
    means, n = mean(values)
    low, high = mean_interval(values, "shares", clusters=alike.labels(graded.query_ids))
    usual = applies_to_none(graded, measure)
    reasons = [
        (why if none else "") or lacking or usual
        for why, none, lacking in zip(
            seen.why, [bool(row.all()) for row in seen.hidden], unperturbed(graded, measure), strict=True
        )
    ]
    return pl.DataFrame(
        {"run": graded.run_ids, "value": means, "n": n.astype(np.int32), "ci_low": low, "ci_high": high}
    ).with_columns(
        alike.counts(values, graded.query_ids).alias("clusters"),
        pl.col("value", "ci_low", "ci_high").fill_nan(None),
        pl.when(pl.col("n") == 0).then(pl.Series(reasons, dtype=pl.String)).alias("reason"),
        *_named(str(measure), measure.k),
    )


def _queries(seen: Counted, measure: Measure, values: np.ndarray) -> pl.DataFrame:
    graded, hidden = seen.found, seen.hidden
    runs, queries = values.shape
    empty = np.isnan(values)
    reasons = np.full(values.shape, None, dtype=object)
    for run, query in np.argwhere(empty):  # few: only if a measure does not apply
        if hidden[run, query]:
            reasons[run, query] = seen.why[run]
            continue
        counts, pool = graded.counts_of(run)[query], graded.pool_grades[run, query]
        reasons[run, query] = na_reason(measure, counts, pool) or _UNJUDGED
    return pl.DataFrame(
        {
            "run": np.repeat(graded.run_ids, queries),
            "query_id": np.tile(graded.query_ids, runs),
            "value": values.ravel(),
            "reason": pl.Series(reasons.ravel().tolist(), dtype=pl.String),
            "n": np.where(empty, 0, 1).astype(np.int32).ravel(),
        }
    ).with_columns(pl.col("value").fill_nan(None), *_named(str(measure), measure.k))


def _named(name: str, k: int | None) -> tuple[pl.Expr, pl.Expr]:
    return pl.lit(name).alias("measure"), pl.lit(k, dtype=pl.Int32).alias("k")


def _reported_queries(
    snapshot: Snapshot, asked: Sequence[tuple[pl.DataFrame, Quality]]
) -> Iterator[pl.DataFrame]:
    """Read the per-query scores that runs report, measure by measure.

    Raises:
        InputError: If none of them reports any for a measure that isn't computed.
    """
    for runs, quality in asked:
        scores = query_scores(snapshot, runs["run_id"].to_list(), quality)
        if scores is None and quality.measure is None:
            raise InputError(f"{quality.name} is known as an average only.", do="Ask for the mean.")
        if scores is not None:
            columns = {
                "run": np.repeat(scores.run_ids, len(scores.query_ids)),
                "query_id": np.tile(scores.query_ids, len(scores.run_ids)),
                "value": scores.values.ravel(),
            }
            missing = pl.col("value").is_null()
            yield (
                pl.DataFrame(columns)
                .with_columns(pl.col("value").fill_nan(None))
                .with_columns(
                    pl.when(missing).then(pl.lit(_NOT_SCORED)).alias("reason"),
                    (~missing).cast(pl.Int32).alias("n"),
                    *_named(quality.name, quality.k),
                )
            )


def _reported(snapshot: Snapshot, runs: pl.DataFrame, quality: Quality, alike: Groups) -> pl.DataFrame:
    """Read the values that runs report, with their n and interval if given."""
    figures = as_reported(snapshot, runs["run_id"].to_list(), quality, alike=alike)
    figures = figures.rename({"low": "ci_low", "high": "ci_high"})
    computed = pl.col("has_rankings") & (quality.measure is not None)
    why = pl.when(computed).then(pl.lit(_NO_JUDGEMENTS)).otherwise(pl.lit(_NOT_REPORTED))
    return (
        runs.select("run_id", "has_rankings")
        .join(figures, on="run_id", how="left", maintain_order="left")
        .select(
            pl.col("run_id").alias("run"),
            "value",
            pl.when(pl.col("value").is_null()).then(why).alias("reason"),
            "n",
            "clusters",
            "ci_low",
            "ci_high",
            *_named(quality.name, quality.k),
        )
    )


def figures(snapshot: Snapshot, scope: Scope, measures: Sequence[Quality]) -> pl.DataFrame:
    """Return one column per measure, using each stack's longest ranking kept by any run."""
    runs = runs_in(snapshot, scope)
    computed = runs.filter(pl.col("has_rankings") & pl.lit(scope.golden_set_id is not None))
    known = [_printed(snapshot, runs.join(computed, on="run_id", how="anti"), measures)]
    if scope.golden_set_id is not None and not computed.is_empty():
        known.append(_computed(snapshot, computed, scope, measures))
    values = pl.concat(known, how="vertical_relaxed")
    return runs.join(values, on="run_id", how="left", maintain_order="left")


def _printed(snapshot: Snapshot, runs: pl.DataFrame, measures: Sequence[Quality]) -> pl.DataFrame:
    printed = snapshot.aggregates(runs["run_id"].to_list())
    columns = runs.select("run_id")
    for quality in measures:
        same = (pl.col("measure") == quality.bare) & (pl.col("k") == quality.k)
        one = printed.filter(same).unique("run_id", keep="first")
        column = one.select("run_id", pl.col("value").alias(quality.name))
        columns = columns.join(column, on="run_id", how="left", maintain_order="left")
    return columns


def _computed(
    snapshot: Snapshot, runs: pl.DataFrame, scope: Scope, measures: Sequence[Quality]
) -> pl.DataFrame:
    parsed = [quality.measure for quality in measures]
    only, golden = among(snapshot, scope), scope.golden_set_id or ""
    deep = furthest(snapshot, runs["run_id"].to_list(), golden)
    graded = evidence(snapshot, list(dict.fromkeys(deep.values())), golden, parsed, only=only)
    scores = pl.DataFrame({"deep": graded.run_ids}).with_columns(
        pl.lit(None, pl.Float64).alias(quality.name)
        if measure is None
        else pl.Series(quality.name, mean(at_cutoff(graded, measure))[0]).fill_nan(None)
        for quality, measure in zip(measures, parsed, strict=True)
    )
    kept = pl.DataFrame(list(deep.items()), schema=schema("run_id deep"), orient="row")
    return kept.join(scores, on="deep", maintain_order="left").drop("deep")
