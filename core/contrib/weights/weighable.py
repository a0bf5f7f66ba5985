"""Ratings of a stored run as arrays, so that trying other weights of its criteria costs nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from core.analysis.cache import cached
from core.analysis.workspace.clusters import groups
from core.analysis.workspace.query_sets import among
from core.analysis.workspace.scores import Evidence, evidence, places
from core.analysis.workspace.view import View
from core.arrays import Floats, Grades
from core.decide.weighing import EQUAL, Ratings, ranked
from core.metrics.measure import Measure
from core.providers.rerank.criteria import AUTHORITY, THRESHOLD
from core.stats.intervals import Labels
from core.store import Snapshot

AS_INFERRED, ALL_EQUAL = "inferred weights", "equal weights"


@dataclass(frozen=True, slots=True, eq=False)
class Weighable:
    """Ratings of one run with their weights."""

    names: tuple[str, ...]  # names of the criteria; `AS_INFERRED` and `ALL_EQUAL` if each query has its own
    used: Floats  # [C], the weights of the run
    equal: Floats  # [C], the paper's equal weights
    ratings: Ratings
    retrieved: Ratings  # the same candidates, scored by retrieval order
    measure: Measure
    graded: Evidence  # for the run
    trail: pl.DataFrame  # its rows of the table "criteria"
    rows: pl.DataFrame  # its rows of the table "ratings", with rank and grade
    clusters: Labels | None = None  # [Q], equal for queries of a group; None = each alone

    @property
    def inferred(self) -> bool:
        """Whether each query has its own criteria and weights."""
        return AS_INFERRED in self.names

    def scored(self, weights: Floats, threshold: float = THRESHOLD) -> Floats:
        """Return the measure of every query [W, Q] under weights [W, C]."""
        return self._measured(ranked(self.ratings, np.atleast_2d(weights), threshold, self.measure.k))

    def unranked(self) -> Floats:
        """Return the measure of the candidates in retrieval order [1, Q]."""
        return self._measured(ranked(self.retrieved, np.zeros((1, 1)), -np.inf, self.measure.k))

    def _measured(self, grades: Grades) -> Floats:
        counts = self.graded.counts_of(0)
        return self.graded.rescored(
            self.measure, grades, np.broadcast_to(counts, (len(grades), *counts.shape))
        )


@cached("Looking which stacks were rated…", entries=16)
def rated_runs(snapshot: Snapshot, run_ids: tuple[str, ...]) -> list[str]:
    """Return the runs whose ratings are stored, in order."""
    rated = set(snapshot.criteria(run_ids)["run_id"])
    return [run for run in run_ids if run in rated]


@cached("Reading the ratings…", entries=16)
def weighable(view: View, run_id: str) -> Weighable | str:
    """Return the ratings of a run, or why its criteria cannot be reweighted."""
    measure, golden = view.quality.measure, view.scope.golden_set_id
    if measure is None or golden is None:
        return "Weighing needs a measure and judgements."
    if not measure.info.needs <= {"answers"}:
        return f"{view.quality.name} looks at more than the ranking, and is not replayed."
    graded = evidence(view.snapshot, [run_id], golden, [measure], only=among(view.snapshot, view.scope))
    pool = view.snapshot.rankings([run_id], stage="pool").filter(pl.col("query_id").is_in(graded.query_ids))
    if pool.is_empty():
        return "The candidates of this run are not stored."
    judged = view.snapshot.within(view.snapshot.judging([run_id], golden)[run_id])
    keys = ["query_id", "passage_id"]
    pool = pool.join(judged.unique(keys).select(*keys, "grade"), on=keys, how="left").sort("query_id", "rank")
    trail = view.snapshot.criteria([run_id])
    rows = view.snapshot.ratings([run_id]).join(pool.select(*keys, "rank", "grade"), on=keys)
    rows, depth = _weighed(rows, trail), int(pool["rank"].to_numpy().max())
    values, relevance, ties = _arrays(rows, graded.query_ids, depth)
    grades = np.full((len(graded.query_ids), depth), -1, dtype=np.int8)
    (query,) = places(pool, query_id=graded.query_ids)
    grades[query, pool["rank"].to_numpy() - 1] = pool["grade"].fill_null(0).to_numpy()
    place = np.broadcast_to(-np.arange(grades.shape[1], dtype=np.float64), grades.shape)
    retrieved = Ratings(place, np.zeros((*grades.shape, 1)), grades)
    inferred = bool(trail["query_id"].is_not_null().any())
    if inferred:
        names: tuple[str, ...] = (AS_INFERRED, ALL_EQUAL)
        used, equal = np.array([1.0, 0.0]), np.array([0.0, 1.0])
        values = np.stack(
            (values.sum(axis=2), EQUAL * _plain(rows, graded.query_ids, values).sum(axis=2)), axis=2
        )
    else:
        ordered = trail.sort("position")
        names, used = tuple(ordered["criterion"]), ordered["weight"].to_numpy().astype(np.float64)
        values, equal = _plain(rows, graded.query_ids, values), np.full(len(names), EQUAL)
    order = np.argsort(-ties, axis=1, kind="stable")
    ratings = Ratings(
        np.take_along_axis(relevance, order, 1),
        np.take_along_axis(values, order[..., None], 1),
        np.take_along_axis(grades, order, 1),
    )
    alike = groups(view.snapshot, view.scope).labels(graded.query_ids)
    return Weighable(names, used, equal, ratings, retrieved, measure, graded, trail, rows, alike)


def _weighed(rows: pl.DataFrame, trail: pl.DataFrame) -> pl.DataFrame:
    """Add to every rating its criterion and weight, and whether it decides ties (authority or first)."""
    of = trail.select("query_id", "position", "criterion", "weight")
    by_query = rows.join(of, on=["query_id", "position"], how="left")
    shared = of.filter(pl.col("query_id").is_null()).drop("query_id")
    every = by_query.join(shared, on="position", how="left", suffix="_shared").with_columns(
        pl.coalesce("criterion", "criterion_shared").alias("criterion"),
        pl.coalesce("weight", "weight_shared").alias("weight"),
    )
    speaks = pl.col("criterion") == AUTHORITY
    decides = pl.when(speaks.any().over("query_id")).then(speaks).otherwise(pl.col("position") == 1)
    return every.drop("criterion_shared", "weight_shared").with_columns(
        decides=decides.fill_null(value=False)
    )


def _arrays(rows: pl.DataFrame, query_ids: tuple[str, ...], depth: int) -> tuple[Floats, Floats, Floats]:
    """Return weight · rating [Q, P, C], relevance [Q, P], and the tie-breaker [Q, P]."""
    last = int(rows["position"].to_numpy().max(initial=1))
    values = np.zeros((len(query_ids), depth, last))
    relevance, ties = np.full(values.shape[:2], np.nan), np.zeros(values.shape[:2])
    (query,) = places(rows, query_id=query_ids)
    rank, position = rows["rank"].to_numpy() - 1, rows["position"].to_numpy().astype(np.int64)
    rating, weight = rows["rating"].to_numpy(), rows["weight"].fill_null(0.0).to_numpy()
    own = position == 0
    relevance[query[own], rank[own]] = rating[own]
    values[query[~own], rank[~own], position[~own] - 1] = (rating * weight)[~own]
    decides = rows["decides"].to_numpy()
    ties[query[decides], rank[decides]] = rating[decides]
    return values, relevance, ties


def _plain(rows: pl.DataFrame, query_ids: tuple[str, ...], like: Floats) -> Floats:
    """Return unweighted ratings, in the shape of the weighted ones."""
    return _arrays(rows.with_columns(weight=pl.lit(1.0)), query_ids, like.shape[1])[0]
