"""Whether holes (unjudged passages in the Top-K) could turn a comparison of two stacks round.

A passage that both rank has one grade for both, so only what one of them ranks alone can be judged in favour
of one side. The case that is worked out can happen: every such passage of the stack that is behind is of
grade 5, every one of the stack that is ahead of grade 1, and those of both are all of grade 1 or all of 5.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from core.metrics import Measure
from core.store import Snapshot
from core.views.workspace.query_sets import among
from core.views.workspace.scope import Quality, Scope
from core.views.workspace.scores import Evidence, Floats, evidence

_HOLE, _WORST, _BEST = 0, 1, 5
Mask = npt.NDArray[np.bool_]


def if_judged(
    rows: pl.DataFrame,
    snapshot: Snapshot,
    scope: Scope,
    quality: Quality,
    run_ids: Mapping[str, str],
    *,
    queries: frozenset[str] | None = None,
) -> pl.Series:
    """Return the difference of each comparison in the case that is worst for the stack ahead.

    Null where neither is ahead, or the measure does not allow it. `queries` are those that were compared,
    None for those of the workspace.
    """
    measure, golden = quality.measure, scope.golden_set_id
    names = list(dict.fromkeys([*rows["first"], *rows["second"]]))
    if measure is None or golden is None or not names:
        return pl.Series("if_judged", [None] * rows.height, dtype=pl.Float64)
    ids = [run_ids[name] for name in names]
    only = among(snapshot, scope) if queries is None else queries
    ranked = snapshot.rankings(ids, stage="final").filter(pl.col("rank") <= quality.k)
    searched = snapshot.searched(ids)
    ends: list[float | None] = []
    for first, second, difference in rows.select("first", "second", "difference").iter_rows():
        pair = [run_ids[first], run_ids[second]]
        if not difference:
            ends.append(None)
            continue
        found = evidence(snapshot, pair, golden, (measure,), only=only)
        same = searched[pair[0]] == searched[pair[1]]
        alone = _alone(found, ranked, quality.k) if same else None
        ends.append(_turned(found, measure, alone, ahead=int(difference > 0)))
    return pl.Series("if_judged", ends, dtype=pl.Float64)


def _alone(pair: Evidence, ranked: pl.DataFrame, k: int) -> Mask:
    """Which slots hold a passage that the other of a pair does not have in its Top-K: [2, queries, K]."""
    both = ranked.filter(
        pl.col("run_id").is_in(list(pair.run_ids)) & pl.col("query_id").is_in(list(pair.query_ids))
    ).filter(pl.len().over("query_id", "passage_id") > 1)
    alone = np.ones((2, len(pair.query_ids), k), dtype=np.bool_)
    run, query = (
        both[name].replace_strict(list(ids), range(len(ids)), return_dtype=pl.Int64).to_numpy()
        for name, ids in (("run_id", pair.run_ids), ("query_id", pair.query_ids))
    )
    alone[run, query, both["rank"].to_numpy() - 1] = False
    return alone


def _turned(pair: Evidence, measure: Measure, alone: Mask | None, *, ahead: int) -> float | None:
    """The difference second − first in the case that is worst for the one ahead."""
    top = pair.grades[:, :, : measure.k]
    holes = top == _HOLE
    mine = holes if alone is None else holes & alone[..., : top.shape[2]]
    own = [_WORST if place == ahead else _BEST for place in range(2)]
    ends = []
    for shared in (_WORST, _BEST):
        grades = np.where(holes, np.int8(shared), top)
        counts = np.broadcast_to(pair.pool_counts, (*top.shape[:2], 5)).copy()
        for place, grade in enumerate(own):
            grades[place][mine[place]] = grade
            number = mine[place].sum(axis=1)
            # What is judged is in the ideal of both; of other passages than a stack's own, in its own only.
            counts[slice(None) if alone is not None else place, :, grade - 1] += number.astype(counts.dtype)
        if alone is not None:
            counts[:, :, shared - 1] += (holes & ~mine)[0].sum(axis=1).astype(counts.dtype)
        ends.append(_difference(pair.rescored(measure, grades, counts)))
    known = [end for end in ends if end is not None]
    if not known:
        return None
    return min(known) if ahead else max(known)


def _difference(values: Floats) -> float | None:
    """Mean of second − first over the queries that count for both; None where there are none."""
    deltas = values[1] - values[0]
    known = deltas[~np.isnan(deltas)]
    return float(known.mean()) if known.size else None
