"""Reach of a golden set's judgements: what they support, and what they don't."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from core.analysis.workspace.query_sets import among
from core.analysis.workspace.scope import Quality, Scope
from core.analysis.workspace.scores import at_cutoff, evidence
from core.analysis.workspace.stacks import runs_in
from core.metrics import Measure
from core.records import part_id
from core.store import Snapshot
from core.tables import TABLES
from core.views.golden import soundness

SPANS = "spans, as they were graded"
_RETRIEVERS = ("mode", "sparse", "embedder")
"""Axes that make a system; its index, dimensions, reranker and depth make variants of it."""
FILTERS: Mapping[str, pl.Expr] = {
    "all": pl.lit(value=True),
    "nothing good": pl.col("prevalence") == 0,
    "no grade 5": pl.col("fallback"),
    "one grade 5": pl.col("grade 5") == 1,
    "half unjudged": pl.col("unjudged") >= 0.5,
    "copies apart": pl.col("apart") > 0,
    "judges differ": pl.col("differ") > 0,
}
"""Filters of the rows of `every_query`, by the word that selects them."""


@dataclass(frozen=True)
class AnchoredView:
    """View of a golden set whose grades are anchored to characters of documents."""

    name: str  # the chunking, or `SPANS`
    # The part with the grades of this chunking's passages; for `SPANS` the golden set itself
    golden_set_id: str
    collection_id: str  # the collection with these passages


@dataclass(frozen=True)
class GoldenContent:
    """Content of a golden set."""

    unit: str  # what has grades: "judged passage" or "span"
    queries: pl.DataFrame  # from `soundness.per_query`
    mix: pl.DataFrame  # from `soundness.summary`
    copies: pl.DataFrame  # from `soundness.duplicates` for the collection's passages
    apart: pl.DataFrame  # from `soundness.graded_apart`
    disagreements: pl.DataFrame  # from `soundness.disagreements`


def parts(snapshot: Snapshot, scope: Scope) -> tuple[AnchoredView, ...]:
    """Return the parts of a workspace's golden set whose grades are anchored to documents.

    Returns:
        The chunkings that it has grades for, then the spans themselves; empty for a golden set whose grades
        are on passages.
    """
    golden = scope.golden_set_id
    if golden is None or snapshot.spans(golden).is_empty():
        return ()
    known = snapshot.golden_sets(parts=True).filter(part_of=golden).sort("golden_set_id")
    graded = known.filter(pl.col("judgements") > 0).select("golden_set_id", "collection_id").iter_rows()
    chunkings = [AnchoredView(name.removeprefix(part_id(golden, "")), name, of) for name, of in graded]
    return (*chunkings, AnchoredView(SPANS, golden, scope.collection_id))


def judged(snapshot: Snapshot, scope: Scope, part: AnchoredView | None = None) -> GoldenContent | None:
    """Read the golden set of a workspace.

    Args:
        part: One of `parts`, if there are any; None for the first.

    Returns:
        None if the workspace has no golden set, or an empty one.
    """
    if scope.golden_set_id is None:
        return None
    part = part or next(iter(parts(snapshot, scope)), None)
    nothing = pl.DataFrame(schema=TABLES["judgements"])
    if part is not None and part.name == SPANS:  # no passages, and so no copies
        spans, passages = snapshot.spans(part.golden_set_id), pl.DataFrame(schema=TABLES["passages"])
        return _judged("span", spans, passages, nothing, nothing)
    golden, collection = scope.golden_set_id, scope.collection_id
    if part is not None:
        golden, collection = part.golden_set_id, part.collection_id
    judgements = snapshot.within(golden)
    if judgements.is_empty():
        return None
    others = soundness.others_of(snapshot, collection, golden, judgements)
    return _judged("judged passage", judgements, snapshot.passages(collection), judgements, others)


def _judged(
    unit: str, graded: pl.DataFrame, passages: pl.DataFrame, judgements: pl.DataFrame, others: pl.DataFrame
) -> GoldenContent:
    queries, copies = soundness.per_query(graded), soundness.duplicates(passages)
    return GoldenContent(
        unit=unit,
        queries=queries,
        mix=soundness.summary(queries),
        copies=copies,
        apart=soundness.graded_apart(copies, judgements),
        disagreements=soundness.disagreements(judgements, others),
    )


def pool_bias(snapshot: Snapshot, scope: Scope, quality: Quality) -> pl.DataFrame:
    """Leave one system out for the workspace's runs, with their names; see `soundness.leave_one_out`.

    A system is the set of runs with the same retrievers; if there is only one, each run is a system.

    Returns:
        The columns of `leave_one_out` preceded by `name`; runs of one chunking among themselves. No rows
        for fewer than two ranked runs of a chunking or more than `soundness.MAX_RUNS`, without grades of
        passages, or for a measure that isn't computed here.
    """
    runs = runs_in(snapshot, scope).filter("has_rankings")
    schema = {"name": pl.String, "run_id": pl.String, "unique": pl.Int64}
    schema |= dict.fromkeys(("score", "without", "bias"), pl.Float64)
    if quality.measure is None or scope.golden_set_id is None or runs.is_empty():
        return pl.DataFrame(schema=schema)
    # A passage of one chunking isn't a passage of another: runs are compared within their chunking.
    judges = snapshot.judging(runs["run_id"].to_list(), scope.golden_set_id)
    together: dict[str, list[str]] = {}
    for run_id, golden in judges.items():
        together.setdefault(golden, []).append(run_id)
    parts = [
        _left_out(snapshot, scope, quality.measure, golden, runs.filter(pl.col("run_id").is_in(ids)))
        for golden, ids in together.items()
        if 2 <= len(ids) <= soundness.MAX_RUNS and not snapshot.within(golden).is_empty()
    ]
    rows = pl.concat(parts) if parts else pl.DataFrame(schema=schema).drop("name")
    return (
        rows.join(runs.select("name", "run_id"), on="run_id", maintain_order="left")
        .select(list(schema))
        .sort("bias", "run_id", descending=[True, False], nulls_last=True)
    )


def _left_out(
    snapshot: Snapshot, scope: Scope, measure: Measure, golden_set_id: str, runs: pl.DataFrame
) -> pl.DataFrame:
    """Leave one system out among runs judged by one golden set."""
    run_ids = runs["run_id"].to_list()
    made_of = pl.concat_str(_RETRIEVERS, separator=" + ", ignore_nulls=True)
    systems = runs.select("run_id", system=pl.when(made_of != "").then(made_of).otherwise("run_id"))
    if systems["system"].n_unique() < 2:
        systems = runs.select("run_id", system="run_id")
    graded = evidence(
        snapshot, run_ids, scope.golden_set_id or golden_set_id, (measure,), only=among(snapshot, scope)
    )
    counted = snapshot.within(golden_set_id).filter(pl.col("query_id").is_in(list(graded.query_ids)))
    return soundness.leave_one_out(graded, snapshot.rankings(run_ids), counted, measure, systems)


def every_query(
    snapshot: Snapshot, scope: Scope, quality: Quality, part: AnchoredView | None = None
) -> pl.DataFrame:
    """Return the queries of a golden set with their weaknesses, for `FILTERS`; takes what `judged` takes.

    Returns:
        The columns of `soundness.per_query` with prevalence (share of grade 4 or 5), unjudged (share of the
        Top-K, mean over the stacks; null if none is scored), apart (passages whose copies got different
        grades) and differ (judgements on which another golden set differs).
    """
    judged_set = judged(snapshot, scope, part)
    if judged_set is None:
        return pl.DataFrame()
    good = pl.col("grade 5") + pl.col("grade 4")
    rows = judged_set.queries.with_columns(prevalence=good / pl.col("judged"))
    for name, frame in (("apart", judged_set.apart), ("differ", judged_set.disagreements)):
        counts = frame.group_by("query_id").agg(pl.len().cast(pl.Int64).alias(name))
        rows = rows.join(counts, on="query_id", how="left", maintain_order="left").with_columns(
            pl.col(name).fill_null(0)
        )
    ranked = runs_in(snapshot, scope).filter("has_rankings")["run_id"].to_list()
    holes = pl.DataFrame(schema={"query_id": pl.String, "unjudged": pl.Float64})
    if ranked and scope.golden_set_id is not None and judged_set.unit != "span":
        seen = evidence(snapshot, ranked, scope.golden_set_id, only=among(snapshot, scope))
        share = at_cutoff(seen, Measure("Hole", quality.k)).mean(axis=0)
        holes = pl.DataFrame({"query_id": seen.query_ids, "unjudged": share}, schema=holes.schema)
    return rows.join(holes.fill_nan(None), on="query_id", how="left", maintain_order="left")


def with_bounds(table: pl.DataFrame, *, higher_is_better: bool = True) -> pl.DataFrame:
    """Return the stacks with known bounds, best first: name, quality, hole_low, hole_high, hole, n."""
    known = table.filter(pl.col("hole_low").is_not_null() & pl.col("quality").is_not_null())
    return known.sort("quality", "name", descending=[higher_is_better, False]).select(
        "name", "quality", "hole_low", "hole_high", "hole", "n"
    )
