"""Which judged queries each run was asked: averages over different queries do not compare.

A run was asked a query that it ranks, has candidates for, or took time for; what it was asked and found
nothing for counts as 0. A judged query that a run was never asked says nothing about it, though over all
queries it counts as 0 as well (metrics.md §1): so stacks are compared on the queries that all were asked.

A hole (an unjudged passage in the Top-K) counts as 0, so that a stack whose passages nobody judged looks
worse than it may be. Queries without holes are free of that. They are no random sample though: judged is what
some stack brought to the judges, so that stacks like those fare better on them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from core.axes import stack_key
from core.decide.ties import Paired
from core.diagnostics.noise import perturbed_runs
from core.errors import UnknownNameError
from core.records import Origin
from core.stats.intervals import SEED
from core.store import Snapshot
from core.store.read.memory import Memory
from core.views.workspace.pools import begun
from core.views.workspace.reported import QueryScores, computed, query_scores
from core.views.workspace.scope import Quality, Scope, audits
from core.views.workspace.scores import Evidence, at_cutoff, evidence, places

ENOUGH = 10  # Shared queries from which on a comparison on them is worth more than leaving a stack out

_HOLE = 0
ANY = "any"
LeastJudged = Literal["any", "half", "most", "all"]
LEAST: Mapping[str, float] = {"half": 0.5, "most": 0.8, "all": 1.0}
"""Share of a Top-K that is judged at least, by the word for it in Settings, the link and the commands."""
WORDS: Mapping[float, str] = {share: word for word, share in LEAST.items()}
ONE_SET, EVERY_SET = "this set", "every set"
_KEPT = Memory(16 * 2**20)
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class QuerySets:
    """How the queries of a workspace's ranked runs overlap."""

    judged: int = 0  # queries of the golden set
    fewest: int = 0  # of them, those that the run with the fewest was asked
    most: int = 0  # those that the run with the most was asked
    shared: int = 0  # those that all runs were asked, apart from those set apart
    unasked: int = 0  # those that no run was asked
    # run_id → judged queries it was asked, of runs that share fewer than `ENOUGH` with the others
    apart: Mapping[str, int] = field(default_factory=dict)
    differ: bool = False  # whether any two runs were asked different ones


def query_sets(snapshot: Snapshot, scope: Scope) -> QuerySets:
    """Find out whether the runs of a workspace were asked the same queries.

    Args:
        scope: The workspace, all of its queries.

    Returns:
        What differs, and what to set apart: beginning with the queries that most runs were asked, every other
        set of queries is taken in as long as `ENOUGH` are shared.
    """
    run_ids = _ranked(snapshot, scope)
    if scope.golden_set_id is None:
        return QuerySets()
    return overlap(run_ids, asked_in(evidence(snapshot, run_ids, scope.golden_set_id), snapshot.timings))


def overlap(run_ids: Sequence[str], mask: Mask) -> QuerySets:
    """Return how the queries of some runs overlap; see `query_sets`."""
    if not run_ids:
        return QuerySets()
    counts = mask.sum(axis=1)
    packed, first, of_run, runs = np.unique(
        np.packbits(mask, axis=1), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    common, apart = _together(mask[first], runs)
    odd = np.flatnonzero(apart[of_run.reshape(-1)])
    return QuerySets(
        judged=mask.shape[1],
        fewest=int(counts.min()),
        most=int(counts.max()),
        shared=int(common.sum()),
        unasked=int((~mask.any(axis=0)).sum()),
        apart={run_ids[row]: int(counts[row]) for row in odd.tolist()},
        differ=len(packed) > 1,
    )


def _together(groups: Mask, runs: npt.NDArray[np.intp]) -> tuple[Mask, Mask]:
    """Return the queries in common, and which groups do not have enough of them."""
    sizes = groups.sum(axis=1)
    order = sorted(range(len(groups)), key=lambda row: (-int(runs[row]), -int(sizes[row]), row))
    common, apart = groups[order[0]].copy(), np.zeros(len(groups), dtype=np.bool_)
    for row in order[1:]:
        smaller = common & groups[row]
        if smaller.sum() >= ENOUGH or smaller.sum() == common.sum():
            common = smaller
        else:
            apart[row] = True
    return common, apart


def asked_in(graded: Evidence, timings: Callable[[Sequence[str]], pl.DataFrame]) -> Mask:
    """Return which judged queries each run was asked.

    Those that it ranks, has candidates for, or took time for.
    """
    mask = begun(graded.grades) | begun(graded.pool_grades)
    missing = [graded.run_ids[row] for row in np.flatnonzero(~mask.all(axis=1)).tolist()]
    if missing:
        timed = timings(missing).select("run_id", "query_id").unique()
        timed = timed.filter(pl.col("query_id").is_in(list(graded.query_ids)))
        run, query = places(timed, run_id=graded.run_ids, query_id=graded.query_ids)
        mask[run, query] = True
    if graded.pool_counts.ndim == 3:  # chunks of a chunker: what nobody judged there cannot be compared
        mask &= graded.pool_counts.any(axis=2)
    return mask


def among(snapshot: Snapshot, scope: Scope) -> frozenset[str] | None:
    """Give the queries that a workspace is scored on: those that all its ranked runs were asked; None = all.

    Where they must be well judged, only those that are, and that all runs were asked: a
    ranking that is not there has no holes.
    """
    if scope.golden_set_id is None or not (scope.shared or scope.judging):
        return None
    golden, wanted = scope.golden_set_id, scope.judging

    def counted() -> frozenset[str]:
        run_ids = _ranked(snapshot, scope)
        if not run_ids:
            return frozenset()
        graded = evidence(snapshot, run_ids, golden)
        mask = np.ones(len(graded.query_ids), dtype=np.bool_)
        if scope.shared or wanted.least:
            mask &= asked_in(graded, snapshot.timings).all(axis=0)
        if wanted.least:
            mask &= well_judged(graded, wanted.k, wanted.least)
        kept = frozenset(graded.query_ids[place] for place in np.flatnonzero(mask).tolist())
        return kept & judged_everywhere(snapshot, scope.collection_id) if wanted.everywhere else kept

    key = (str(snapshot.catalogue.path), snapshot.revision, scope)
    return _KEPT.once(key, counted, lambda kept_ids: 100 * len(kept_ids))


def _ranked(snapshot: Snapshot, scope: Scope) -> list[str]:
    return chosen_runs(snapshot, scope).filter("has_rankings")["run_id"].to_list()


def chosen_runs(snapshot: Snapshot, scope: Scope) -> pl.DataFrame:
    """Give the runs that a workspace shows: the chosen ones, or all that were asked the queries as they are.

    A run of perturbed queries tells how robust its clean stack is; it is nothing to ship.
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
        runs = runs.filter(~pl.col("run_id").is_in(list(scope.apart.run_ids)))
    return runs


def one_a_stack(runs: pl.DataFrame, cutoff: int = 0) -> pl.DataFrame:
    """Return the runs without those of stacks that differ only in a K that nothing reads.

    The least K stays of those that the cutoff does not read, as it ends no ranking before it; where all do,
    the deepest.
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


def unperturbed(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the runs that were asked the queries as they are."""
    noisy = perturbed_runs(runs)["run_id"]
    return runs if noisy.is_empty() else runs.filter(~pl.col("run_id").is_in(noisy.implode()))


def holes(graded: Evidence, k: int) -> npt.NDArray[np.int64]:
    """Return unjudged passages in the Top-K: [runs, queries]."""
    return np.asarray((graded.grades[:, :, :k] == _HOLE).sum(axis=2, dtype=np.int64))


def well_judged(graded: Evidence, k: int, least: float) -> Mask:
    """Return queries of which no run has more holes than it may."""
    return np.asarray((holes(graded, k) <= k * (1 - least) + 1e-9).all(axis=0))


def judged_everywhere(snapshot: Snapshot, collection_id: str) -> frozenset[str]:
    """Give queries that every golden set of a collection judges, audits aside; empty where there is none."""
    sets = snapshot.golden_sets(collection_id).filter(pl.col("judgements") + pl.col("spans") > 0)
    audited = audits(snapshot, collection_id)
    judged = [
        frozenset((*snapshot.judgements(name)["query_id"], *snapshot.spans(name)["query_id"]))
        for name in sets["golden_set_id"]
        if name not in audited
    ]
    return frozenset.intersection(*judged) if judged else frozenset()


def paired(
    snapshot: Snapshot, table: pl.DataFrame, scope: Scope, quality: Quality, *, seed: int = SEED
) -> Paired | None:
    """Return quality per query of the stacks of a workspace, for telling ties from differences.

    Returns:
        The values of `scores_by_query`; None where there are none.
    """
    scores = scores_by_query(snapshot, table, scope, quality)
    return Paired(scores.run_ids, scores.values, seed) if scores and scores.query_ids else None


def scores_by_query(
    snapshot: Snapshot, table: pl.DataFrame, scope: Scope, quality: Quality
) -> QueryScores | None:
    """Return quality per query of the stacks of a table.

    Of those that are scored here, else as they report it.
    """
    ranked = computed(table, scope, quality)
    if quality.measure is None or not ranked:
        return query_scores(snapshot, table["run_id"].to_list(), quality)
    golden = scope.golden_set_id or ""
    graded = evidence(snapshot, ranked, golden, [quality.measure], only=among(snapshot, scope))
    return QueryScores(graded.run_ids, graded.query_ids, at_cutoff(graded, quality.measure))
