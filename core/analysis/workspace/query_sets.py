"""The queries that each stack has: estimates, ties and chances use those that all compared ones share.

A stack that lacks more than a tenth of them is excluded, by name (metrics.md §9). An empty cell of a table
is missing. A judged query for which a run ranks nothing isn't: it counts as 0 (§1), as long as the run was
run on nearly all queries of the others; one that ranks far fewer was not run on the rest.

A hole (an unjudged passage in the Top-K) counts as 0, so that a stack whose passages nobody judged looks
worse than it may be. Queries without holes avoid this. They are not a random sample though: judged ones are
those that some stack brought to the judges, so that similar stacks fare better on them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import polars as pl

from core.analysis.workspace.clusters import groups
from core.analysis.workspace.figures.reported import QueryScores, query_scores, scored_here
from core.analysis.workspace.pools import begun
from core.analysis.workspace.scope import Ids, Quality, Scope, audits
from core.analysis.workspace.scores import Evidence, at_cutoff, evidence, places
from core.arrays import Ints, Mask
from core.axes import stack_key
from core.decide.ties import Paired
from core.diagnostics.noise import perturbed_runs
from core.errors import UnknownNameError
from core.records import Origin
from core.stats.intervals import SEED
from core.store import Snapshot
from core.store.read.memory import Memory
from core.tables import remembered

ENOUGH = 10  # Queries from which on a comparison restricted to well judged ones is offered
COSTS = 0.1
"""Share of the queries that a stack may remove from the comparison; one that removes more is excluded."""
_STAY = 0.5  # Share of the queries that stay, even if many stacks lack a few of them each

_HOLE = 0
_NONE = Ids()
ANY = "any"
LeastJudged = Literal["any", "half", "most", "all"]
LEAST: Mapping[str, float] = {"half": 0.5, "most": 0.8, "all": 1.0}
"""Minimum judged share of a Top-K, by the word for it in Settings, the link and the commands."""
WORDS: Mapping[float, str] = {share: word for word, share in LEAST.items()}
ONE_SET, EVERY_SET = "this set", "every set"
_KEPT = Memory(16 * 2**20)


@dataclass(frozen=True)
class QuerySets:
    """How the queries of a workspace's stacks overlap."""

    judged: int = 0  # queries of the golden set, or with a score for any stack
    fewest: int = 0  # number that the stack with the fewest has
    most: int = 0  # number that the stack with the most has
    shared: Ids = _NONE  # the queries that count in a comparison on shared ones
    lacked: Ids = _NONE  # queries that most have but that do not count, because a compared stack lacks them
    every: Ids = _NONE  # queries that all have, including excluded stacks
    unasked: int = 0  # number of queries that no stack has
    apart: Mapping[str, int] = field(default_factory=dict)  # run_id → query count of excluded stacks
    differ: bool = False  # whether any two stacks have different ones
    ranked: bool = True  # whether rankings are compared, so that a missing one counts as 0


def query_sets(snapshot: Snapshot, scope: Scope, quality: Quality) -> QuerySets:
    """Find out whether the stacks of a workspace have the same queries, and how to handle it if not.

    Args:
        scope: The workspace, all of its queries.
    """
    runs = chosen_runs(snapshot, scope)
    ranked = scored_here(snapshot, runs, scope, quality)["run_id"].to_list()
    if not ranked:
        scores = query_scores(snapshot, runs["run_id"].to_list(), quality)
        return QuerySets() if scores is None else overlap(scores.run_ids, scores.query_ids, scores.has)
    graded = evidence(snapshot, ranked, scope.golden_set_id or "", [quality.measure])
    has, void = asked_in(graded, snapshot.timings), _void(graded, quality)
    return overlap(ranked, graded.query_ids, has & ~void, void)


def _void(graded: Evidence, quality: Quality) -> Mask:
    """Return the queries on which a ranked run cannot have a score, whatever it ranks.

    These have no judged chunk of its chunker, or no answer.
    """
    void = np.zeros(graded.grades.shape[:2], dtype=np.bool_)
    if graded.pool_counts.ndim == 3:
        void |= ~graded.pool_counts.any(axis=2)
    if quality.measure and "answers" in quality.measure.info.needs:
        unknown = np.isnan(at_cutoff(graded, quality.measure))
        void |= unknown & ~unknown.all(axis=0)
    return void


def overlap(
    run_ids: Sequence[str], query_ids: Sequence[str], has: Mask, void: Mask | None = None
) -> QuerySets:
    """Return how the queries of some stacks overlap; see `query_sets`.

    Args:
        has: Which stack has which query [S, Q].
        void: For rankings, what is missing; anything else that isn't there counts as 0.
    """
    if not len(has):
        return QuerySets()
    counts, every = has.sum(axis=1), np.asarray(has.all(axis=0))
    common, base, apart = together(has, has if void is None else ~void)

    def named(mask: Mask) -> Ids:
        return Ids.of(query_ids[place] for place in np.flatnonzero(mask).tolist())

    return QuerySets(
        judged=has.shape[1],
        fewest=int(counts.min()),
        most=int(counts.max()),
        shared=named(common),
        lacked=named(base & ~common),
        every=named(every),
        unasked=int((~has.any(axis=0)).sum()),
        apart={run_ids[row]: int(counts[row]) for row in np.flatnonzero(apart).tolist()},
        differ=bool((every != has.any(axis=0)).any()),
        ranked=void is not None,
    )


def together(has: Mask, scored: Mask) -> tuple[Mask, Mask, Mask]:
    """Choose the queries that count and the stacks that are compared on them.

    Starting with the queries that at least half of the stacks have, and with the stack that has most of
    these, the others are added in order of how few they lack: each may remove a tenth of the queries so far.

    Args:
        has: Which stack has which query [S, Q].
        scored: Queries that stay when a stack is added.

    Returns:
        The queries that count [Q], those before any stack removed one, and the excluded stacks [S].
    """
    usual = has.mean(axis=0) >= 0.5
    order = np.argsort((usual & ~has).sum(axis=1), kind="stable").tolist()
    first = order[0]
    base = usual if _few(usual & ~has[first], usual) else usual & has[first]
    common, apart = base & scored[first], np.zeros(len(has), dtype=np.bool_)
    for row in order[1:]:
        smaller = common & scored[row]
        apart[row] = not _few(common & ~has[row], base) or smaller.sum() < _STAY * base.sum()
        common = common if apart[row] else smaller
    return common, base, apart


def _few(lost: Mask, of: Mask) -> bool:
    """Return whether the others can do without some queries."""
    return bool(lost.sum() <= COSTS * of.sum())


def out_of_reach(sets: QuerySets) -> dict[str, str]:
    """Return why stacks that lack too many queries are excluded, by run_id."""
    why = "was asked {} of {} judged queries" if sets.ranked else "has scores of {} of {} queries"
    return {run_id: why.format(has, sets.judged) for run_id, has in sets.apart.items()}


def asked_in(graded: Evidence, timings: Callable[[Sequence[str]], pl.DataFrame]) -> Mask:
    """Return which judged queries each run was run on.

    These are the queries that it ranks, has candidates for, or spent time on.
    """
    mask = begun(graded.grades) | begun(graded.pool_grades)
    missing = [graded.run_ids[row] for row in np.flatnonzero(~mask.all(axis=1)).tolist()]
    if missing:
        timed = timings(missing).select("run_id", "query_id").unique()
        timed = timed.filter(pl.col("query_id").is_in(list(graded.query_ids)))
        run, query = places(timed, run_id=graded.run_ids, query_id=graded.query_ids)
        mask[run, query] = True
    if graded.pool_counts.ndim == 3:  # chunks of a chunker: unjudged queries cannot be compared there
        mask &= graded.pool_counts.any(axis=2)
    return mask


def among(snapshot: Snapshot, scope: Scope) -> frozenset[str] | None:
    """Return the queries that a workspace is scored on; None = all.

    If they must be well judged, only those that are, and that all runs were run on: a
    missing ranking has no holes.
    """
    golden, wanted = scope.golden_set_id, scope.judging
    if golden is None or not wanted:
        return frozenset(scope.shared.ids) or None

    def counted() -> frozenset[str]:
        run_ids = chosen_runs(snapshot, scope).filter("has_rankings")["run_id"].to_list()
        if not run_ids:
            return frozenset()
        graded = evidence(snapshot, run_ids, golden)
        mask = np.ones(len(graded.query_ids), dtype=np.bool_)
        if scope.shared:
            mask &= np.isin(graded.query_ids, scope.shared.ids)
        if wanted.least:
            mask &= asked_in(graded, snapshot.timings).all(axis=0)
            mask &= well_judged(graded, wanted.k, wanted.least)
        kept = frozenset(graded.query_ids[place] for place in np.flatnonzero(mask).tolist())
        return kept & judged_everywhere(snapshot, scope.collection_id) if wanted.everywhere else kept

    key = (str(snapshot.catalogue.path), snapshot.revision, scope)
    return _KEPT.once(key, counted, lambda kept_ids: 100 * len(kept_ids))


def chosen_runs(snapshot: Snapshot, scope: Scope) -> pl.DataFrame:
    """Return the runs that a workspace shows: the chosen ones, or all that were run on unchanged queries.

    A run on perturbed queries shows how robust its clean stack is; it isn't a candidate to ship.
    """
    runs = snapshot.runs(scope.collection_id)
    if scope.run_ids:
        absent = set(scope.run_ids) - set(runs["run_id"])
        if absent:
            raise UnknownNameError("run", min(absent), runs["run_id"])
        runs = runs.filter(pl.col("run_id").is_in(list(scope.run_ids)))
    else:
        runs = one_a_stack(unperturbed(runs), scope.cutoff)
    if scope.apart:
        runs = runs.filter(~pl.col("run_id").is_in(list(scope.apart.ids)))
    return runs


@remembered
def one_a_stack(runs: pl.DataFrame, cutoff: int = 0) -> pl.DataFrame:
    """Return the runs without duplicates of stacks that differ only in a K that nothing reads.

    The lowest K at or above the cutoff stays, because it ends no ranking before it; if there is none,
    the highest.
    """
    deep = runs.filter((pl.col("origin") == Origin.RUN.value) & pl.col("spec").str.contains('"candidates"'))
    if deep.height < 2:
        return runs
    specs = [json.loads(spec) for spec in deep["spec"]]
    others = (
        deep.select("run_id", "chunking")
        .with_columns(
            key=pl.Series([stack_key(spec) for spec in specs], dtype=pl.String),
            k=pl.Series([spec["candidates"] for spec in specs], dtype=pl.Int64, strict=False),
        )
        .with_columns(enough=pl.when(pl.col("k") >= cutoff).then("k").min().over("key", "chunking"))
        .filter(pl.col("k") != pl.coalesce("enough", pl.col("k").max().over("key", "chunking")))
    )
    return runs.filter(~pl.col("run_id").is_in(others["run_id"].implode()))


@remembered
def unperturbed(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the runs on unchanged queries."""
    noisy = perturbed_runs(runs)["run_id"]
    return runs if noisy.is_empty() else runs.filter(~pl.col("run_id").is_in(noisy.implode()))


def holes(graded: Evidence, k: int) -> Ints:
    """Count unjudged passages in the Top-K: [runs, queries]."""
    return np.asarray((graded.grades[:, :, :k] == _HOLE).sum(axis=2, dtype=np.int64))


def well_judged(graded: Evidence, k: int, least: float) -> Mask:
    """Return queries on which no run has more holes than allowed."""
    return np.asarray((holes(graded, k) <= k * (1 - least) + 1e-9).all(axis=0))


def judged_everywhere(snapshot: Snapshot, collection_id: str) -> frozenset[str]:
    """Return queries judged by every golden set of a collection, excluding audits; empty if none are."""
    sets = snapshot.golden_sets(collection_id).filter(pl.col("judgements") + pl.col("spans") > 0)
    audited = audits(snapshot, collection_id)
    judged = [
        frozenset((*snapshot.within(name)["query_id"], *snapshot.spans(name)["query_id"]))
        for name in sets["golden_set_id"]
        if name not in audited
    ]
    return frozenset.intersection(*judged) if judged else frozenset()


def paired(
    snapshot: Snapshot, table: pl.DataFrame, scope: Scope, quality: Quality, *, seed: int = SEED
) -> Paired | None:
    """Return quality per query of a workspace's stacks, to distinguish ties from differences.

    Returns:
        The values of `scores_by_query`, or None if there are none.
    """
    scores = scores_by_query(snapshot, table, scope, quality)
    if not scores or not scores.query_ids:
        return None
    clusters = groups(snapshot, scope).labels(scores.query_ids)
    return Paired(scores.run_ids, scores.values, seed, clusters)


def scores_by_query(
    snapshot: Snapshot, table: pl.DataFrame, scope: Scope, quality: Quality
) -> QueryScores | None:
    """Return quality per query of the stacks of a table.

    They are scored here, otherwise as reported.
    """
    ranked = scored_here(snapshot, table, scope, quality)["run_id"].to_list()
    only = among(snapshot, scope)
    if quality.measure is None or not ranked:
        return query_scores(snapshot, table["run_id"].to_list(), quality, only=only)
    golden = scope.golden_set_id or ""
    graded = evidence(snapshot, ranked, golden, [quality.measure], only=only)
    return QueryScores(graded.run_ids, graded.query_ids, at_cutoff(graded, quality.measure))
