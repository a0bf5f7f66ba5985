"""Compare a few stacks: differences query by query, beyond chance, and the possible effect of holes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from core.analysis.workspace.clusters import EACH, FEW_GROUPS, Groups, groups
from core.analysis.workspace.query_sets import among, scores_by_query
from core.analysis.workspace.scope import Quality, Scope
from core.analysis.workspace.scores import Evidence, evidence, places
from core.arrays import Floats, Mask
from core.errors import InputError
from core.metrics import Measure
from core.stats.correlation import agreement
from core.stats.intervals import CLUSTERS, Sample
from core.stats.significance import Setup, compare
from core.store import Snapshot

LEVEL = 0.05  # A difference is significant if its adjusted p-value is below this
MOST = 5  # Maximum number of stacks compared
Against = Literal["the first", "every pair"]
WINS, TIES, LOSSES = "better", "tie", "worse"
OPEN = "no significant difference"
UNDECIDED = (OPEN, FEW_GROUPS)
"""Verdicts on differences that are not significant."""
_HOLE, _WORST, _BEST = 0, 1, 5


@dataclass(frozen=True)
class Scored:
    """Scores of some stacks on the same queries."""

    names: tuple[str, ...]  # the stacks, in the chosen order
    run_ids: tuple[str, ...]  # their runs
    query_ids: tuple[str, ...]  # the judged queries, sorted
    values: Floats  # [stacks, queries]; NaN if the measure does not apply
    alike: Groups = EACH  # the groups of the queries


def tested(
    values: Floats | Sample,
    pairs: tuple[Sequence[int], Sequence[int]],
    setup: Setup,
    asked: tuple[Groups, Sequence[str]],
) -> pl.DataFrame:
    """Return `core.stats.significance.compare` with the columns clusters and cluster_kind of `stack_table`.

    Args:
        values: [S, Q].
        asked: The queries and their groups.
    """
    alike, query_ids = asked
    labels = alike.labels(query_ids)
    rows = compare(values if isinstance(values, Sample) else Sample.means(values, labels), *pairs, setup)
    kind = None if labels is None else alike.kind
    clusters = pl.lit(None) if labels is None else pl.col("units")
    said = {"clusters": clusters.cast(pl.Int32), "cluster_kind": pl.lit(kind, pl.String)}
    return rows.with_columns(**said).drop("units")


def scored(snapshot: Snapshot, scope: Scope, quality: Quality, names: Mapping[str, str]) -> Scored:
    """Score stacks, run_id to name, on the queries of the workspace."""
    runs = snapshot.runs(scope.collection_id).filter(pl.col("run_id").is_in(list(names)))
    order = pl.DataFrame({"run_id": list(names)})
    runs = order.join(runs, on="run_id", how="left", maintain_order="left")
    by_query = scores_by_query(snapshot, runs, scope, quality)
    if by_query is None:
        raise InputError(f"{quality.name} is known from aggregates only.", do="Choose another measure.")
    named = tuple(names[run_id] for run_id in by_query.run_ids)
    return Scored(named, by_query.run_ids, by_query.query_ids, by_query.values, groups(snapshot, scope))


def pairs_of(names: Sequence[str], against: Against) -> tuple[list[int], list[int]]:
    """Return the positions of the baselines, and of the stacks compared with them."""
    bases = range(1 if against == "the first" else len(names) - 1)
    pairs = [(row, base) for base in bases for row in range(base + 1, len(names))]
    return [row for row, _ in pairs], [base for _, base in pairs]


def compared(
    snapshot: Snapshot,
    scope: Scope,
    quality: Quality,
    table: pl.DataFrame,
    names: Sequence[str],
    *,
    against: Against,
    setup: Setup,
) -> pl.DataFrame:
    """Compare stacks query by query, as one family.

    Args:
        names: Two stacks or more of `core.analysis.workspace.figures.reported.with_queries`.

    Returns:
        The columns of `differences`, second − first, then if_judged (`core.analysis.paired.if_judged`),
        overlap and tau (means over the queries, null if the passages were chunked differently).
    """
    ids = dict(table.filter(pl.col("name").is_in(names)).select("name", "run_id").iter_rows())
    stacks = scored(snapshot, scope, quality, {ids[name]: name for name in names})
    rows = differences(stacks, *pairs_of(stacks.names, against), setup)
    ends = if_judged(rows, snapshot, scope, quality, ids)
    pairs = [(ids[first], ids[second]) for first, second in rows.select("first", "second").iter_rows()]
    means = [alike_means(alike(snapshot, table, quality.k, *pair)) for pair in pairs]
    overlap, tau = (pl.Series(values, dtype=pl.Float64) for values in zip(*means, strict=True))
    return rows.with_columns(ends, overlap=overlap, tau=tau)


def differences(stacks: Scored, first: Sequence[int], second: Sequence[int], setup: Setup) -> pl.DataFrame:
    """Return `core.stats.significance.compare` with names in first and second, and `with_verdict`."""
    rows = tested(stacks.values, (first, second), setup, (stacks.alike, stacks.query_ids))
    named = (
        pl.Series(column, [stacks.names[row] for row in rows[column]], dtype=pl.String)
        for column in ("first", "second")
    )
    return with_verdict(rows.with_columns(named), higher_is_better=setup.higher_is_better)


def with_verdict(rows: pl.DataFrame, *, higher_is_better: bool = True) -> pl.DataFrame:
    """Add the verdict on the second stack: better, worse, not told apart or unknown."""
    real, few = pl.col("p_adjusted") < LEVEL, pl.col("clusters") < CLUSTERS
    gain = pl.col("difference") if higher_is_better else -pl.col("difference")
    side = pl.when(gain > 0).then(pl.lit(WINS)).otherwise(pl.lit(LOSSES))
    open_ = pl.when(few).then(pl.lit(FEW_GROUPS)).otherwise(pl.lit(OPEN))
    return rows.with_columns(pl.when(real).then(side).otherwise(open_).alias("verdict"))


def alike(snapshot: Snapshot, runs: pl.DataFrame, k: int, first: str, second: str) -> pl.DataFrame | None:
    """Return overlap and tau of two rankings per query, or None if they rank differently chunked passages."""
    pair = runs.filter(pl.col("run_id").is_in([first, second]))
    if pair["chunking"].n_unique() > 1:
        return None
    ranked = snapshot.rankings([first, second], stage="final").filter(pl.col("rank") <= k)
    return agreement(ranked.filter(run_id=first), ranked.filter(run_id=second), k)


def alike_means(rows: pl.DataFrame | None) -> tuple[float | None, float | None]:
    """Return mean overlap and mean tau over the queries that have them."""
    if rows is None or rows.is_empty():
        return None, None
    overlap, tau = rows["overlap"].drop_nulls().to_numpy(), rows["tau"].drop_nulls().to_numpy()
    return float(overlap.mean()), float(tau.mean()) if len(tau) else None


def if_judged(
    rows: pl.DataFrame,
    snapshot: Snapshot,
    scope: Scope,
    quality: Quality,
    run_ids: Mapping[str, str],
    *,
    queries: frozenset[str] | None = None,
) -> pl.Series:
    """Return the difference of each comparison in the worst case for the stack ahead.

    It is null if neither is ahead, or the measure does not allow it. `queries` are the compared ones,
    None for those of the workspace.
    """
    measure, golden = quality.measure, scope.golden_set_id
    names = list(dict.fromkeys([*rows["first"], *rows["second"]]))
    if measure is None or golden is None or not names:
        return pl.Series("if_judged", [None] * rows.height, dtype=pl.Float64)
    ids = [run_ids[name] for name in names]
    only = among(snapshot, scope) if queries is None else queries
    ranked = snapshot.rankings(ids, stage="final").filter(pl.col("rank") <= quality.k)
    if ranked.is_empty():  # scored elsewhere: its passages are unknown
        return pl.Series("if_judged", [None] * rows.height, dtype=pl.Float64)
    searched = snapshot.searched(ids)
    ends: list[float | None] = []
    for first, second, difference in rows.select("first", "second", "difference").iter_rows():
        pair = [run_ids[first], run_ids[second]]
        if not difference:
            ends.append(None)
            continue
        graded = evidence(snapshot, pair, golden, (measure,), only=only)
        same = searched[pair[0]] == searched[pair[1]]
        alone = _alone(graded, ranked, quality.k) if same else None
        ends.append(_turned(graded, measure, alone, ahead=int(difference > 0)))
    return pl.Series("if_judged", ends, dtype=pl.Float64)


def _alone(pair: Evidence, ranked: pl.DataFrame, k: int) -> Mask:
    """Return which slots hold a passage that the other stack of a pair does not have in its Top-K.

    [2, queries, K].
    """
    both = ranked.filter(
        pl.col("run_id").is_in(list(pair.run_ids)) & pl.col("query_id").is_in(list(pair.query_ids))
    ).filter(pl.len().over("query_id", "passage_id") > 1)
    alone = np.ones((2, len(pair.query_ids), k), dtype=np.bool_)
    run, query = places(both, run_id=pair.run_ids, query_id=pair.query_ids)
    alone[run, query, both["rank"].to_numpy() - 1] = False
    return alone


def _turned(pair: Evidence, measure: Measure, alone: Mask | None, *, ahead: int) -> float | None:
    """Return the difference second − first in the worst case for the one ahead."""
    top = pair.grades[:, :, : measure.k]
    holes = top == _HOLE
    mine = holes if alone is None else holes & alone[..., : top.shape[2]]
    own = [_WORST if place == ahead else _BEST for place in range(2)]
    ends: list[float] = []
    for shared in (_WORST, _BEST):
        grades = np.where(holes, np.int8(shared), top)
        counts = np.broadcast_to(pair.pool_counts, (*top.shape[:2], 5)).copy()
        for place, grade in enumerate(own):
            grades[place][mine[place]] = grade
            number = mine[place].sum(axis=1)
            # Judged passages are in the ideal of both; a stack's unjudged passages in its own only.
            counts[slice(None) if alone is not None else place, :, grade - 1] += number.astype(counts.dtype)
        if alone is not None:
            counts[:, :, shared - 1] += (holes & ~mine)[0].sum(axis=1).astype(counts.dtype)
        first, second = pair.rescored(measure, grades, counts)
        apart = second - first
        ends += [float(apart[~np.isnan(apart)].mean())] if not np.isnan(apart).all() else []
    return (min(ends) if ahead else max(ends)) if ends else None
