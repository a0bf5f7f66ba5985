"""Answers with grades beside what every retrieval measure says about the passages they were written from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from core.metrics import Measure
from core.store import Snapshot
from core.views.workspace.query_sets import asked_in
from core.views.workspace.scope import Scope
from core.views.workspace.scores import Evidence, Floats, evidence
from core.views.workspace.stacks import runs_in

REFERENCE = "F"
MEASURES = ("F", "F_e", "T", "T_u", "nDCG-found", "nDCG", "P", "R", "RR", "RA-nWG")
"""What is correlated; the paper's own first (its nDCG takes its ideal from what was found)."""
RELEVANT_FROM = 4
"""Grade from which a passage is relevant; the measures' default."""


@dataclass(frozen=True)
class Samples:
    """Graded answers of a workspace.

    Attributes:
        rows: run_id, name, query_id, tags, k, grade, relevant (Np), ratio (K / Np, one decimal), width
            ("narrow" where K < Np, else "wide"), and a column per measure (null = not applicable).
        scale: The scale of the grades; where several occur, the most frequent one, which alone is kept.
        left_out: Reason → how many answers.
        found: The grades behind it, to score other parameters.
        places: Position of each row in `found`: int64 [n, 3] run, query, K − 1.
    """

    rows: pl.DataFrame
    scale: str
    left_out: Mapping[str, int]
    found: Evidence
    places: np.ndarray[tuple[int, int], np.dtype[np.int64]]

    def values(self, measure: Measure) -> Floats:
        """A measure at each answer's own K: float64 [n], NaN where not applicable."""
        scored = self.found.score([measure])[measure]
        run, query, k = self.places.T
        values: Floats = scored[run, query, k]
        return values

    def curve(self, name: str, alphas: Sequence[float]) -> Floats:
        """A measure with a parameter alpha at every value of it: float64 [alphas, n]."""
        return np.array([self.values(Measure(name, None, (("alpha", alpha),))) for alpha in alphas])


def samples(snapshot: Snapshot, scope: Scope) -> Samples | None:
    """Read the graded answers of a workspace and score what they were written from.

    Args:
        snapshot: Where to read.
        scope: The workspace; needs a golden set.

    Returns:
        The samples; None when no run with rankings has graded answers to judged queries.
    """
    runs = runs_in(snapshot, scope).filter("has_rankings")
    if scope.golden_set_id is None or runs.is_empty():
        return None
    answers = snapshot.answers(runs["run_id"].to_list()).with_columns(pl.col("scale").fill_null("unknown"))
    graded = answers.filter(pl.col("grade").is_not_null() & (pl.col("k") >= 1))
    if graded.is_empty():
        return None
    ids = [run_id for run_id in runs["run_id"] if run_id in set(graded["run_id"])]
    found = evidence(snapshot, ids, scope.golden_set_id)
    scale = str(graded["scale"].value_counts().sort("count", "scale", descending=True)["scale"][0])
    placed = _placed(graded.filter(pl.col("scale") == scale), found)
    judged = placed.filter(pl.col("query").is_not_null() & (pl.col("k") <= found.depth))
    asked = asked_in(found, snapshot.timings)
    known = judged.filter(asked[tuple(judged.select("run", "query").to_numpy().astype(np.int64).T)])
    if known.is_empty():
        return None
    left_out = {
        "no grade, or no K": answers.height - graded.height,
        "graded on another scale": graded.height - placed.height,
        "query without judgements, or K deeper than the ranking": placed.height - judged.height,
        "query that the run does not rank": judged.height - known.height,
    }
    places = known.select("run", "query", (pl.col("k") - 1).cast(pl.Int64)).to_numpy().astype(np.int64)
    made = Samples(
        rows=_rows(snapshot, scope, runs, known, found),
        scale=scale,
        left_out={reason: count for reason, count in left_out.items() if count},
        found=found,
        places=places,
    )
    scored = [pl.Series(name, made.values(Measure(name)), nan_to_null=True) for name in MEASURES]
    return Samples(made.rows.with_columns(scored), made.scale, made.left_out, found, places)


def _placed(graded: pl.DataFrame, found: Evidence) -> pl.DataFrame:
    run, query = (
        pl.DataFrame({name: ids, place: range(len(ids))}, schema={name: pl.String, place: pl.Int64})
        for name, place, ids in (("run_id", "run", found.run_ids), ("query_id", "query", found.query_ids))
    )
    return (
        graded.join(run, on="run_id")
        .join(query, on="query_id", how="left", maintain_order="left")
        .sort("run", "query", "k")
    )


def _rows(
    snapshot: Snapshot, scope: Scope, runs: pl.DataFrame, known: pl.DataFrame, found: Evidence
) -> pl.DataFrame:
    run, query = known["run"].to_numpy(), known["query"].to_numpy()
    counts = np.broadcast_to(found.pool_counts, (len(found.run_ids), len(found.query_ids), 5))
    relevant = counts[run, query, RELEVANT_FROM - 1 :].sum(axis=-1)
    tags = snapshot.queries(scope.collection_id).select("query_id", "tags")
    k, total = pl.col("k"), pl.col("relevant")
    return (
        known.select("run_id", "query_id", "k", "grade")
        .with_columns(pl.Series("relevant", relevant))
        .join(runs.select("run_id", "name"), on="run_id", how="left", maintain_order="left")
        .join(tags, on="query_id", how="left", maintain_order="left")
        .with_columns(
            pl.when(total > 0).then((k / total).round(1)).alias("ratio"),
            pl.when(k < total).then(pl.lit("narrow")).otherwise(pl.lit("wide")).alias("width"),
        )
    )
