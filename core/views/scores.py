"""Per-query scores of runs: the join of rankings and judgements, and what the measures say about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.errors import InputError
from core.metrics import Measure, aggregate, score_at, to_depth
from core.store import Graded, Snapshot

Floats = npt.NDArray[np.float64]
Grades = npt.NDArray[np.int8]
EMPTY_SLOT = -1


@dataclass(frozen=True)
class Evidence:
    """Rankings and candidate pools of some runs as grades, ready for every measure.

    Attributes:
        run_ids: The runs, in the order of axis 0.
        query_ids: The judged queries, in the order of axis 1.
        grades: int8 [runs, queries, depth]: 1..5 judged, 0 unjudged, -1 empty slot.
        pool_grades: The same for the candidate pool; the final ranking itself where a run has no pool.
        pool_counts: int32 [queries, 5]: passages with grade 1..5 in the golden set; [runs, queries, 5] where
            runs of several chunkings are judged by grades that were anchored to the documents.
        unjudged_queries: int32 [runs]: ranked queries without any judgement, left out.
    """

    run_ids: tuple[str, ...]
    query_ids: tuple[str, ...]
    grades: Grades
    pool_grades: Grades
    pool_counts: npt.NDArray[np.int32]
    unjudged_queries: npt.NDArray[np.int32]

    @property
    def depth(self) -> int:
        """The deepest final rank."""
        return int(self.grades.shape[2])

    def counts_of(self, run: int) -> npt.NDArray[np.int32]:
        """Passages with grade 1..5 that the run with this position could find: int32 [queries, 5]."""
        return self.pool_counts if self.pool_counts.ndim == 2 else self.pool_counts[run]


def evidence(snapshot: Snapshot, run_ids: Sequence[str], golden_set_id: str) -> Evidence:
    """Join the rankings of some runs with the judgements of a golden set.

    Args:
        snapshot: Where to read.
        run_ids: Runs that have rankings.
        golden_set_id: The judgements.

    Returns:
        The grades of the final rankings and of the candidate pools.

    Raises:
        UnknownNameError: If the golden set or a run does not exist.
        InputError: If the runs searched differently chunked passages and the judgements are tied to passages.
    """
    _require_one_passage_set(snapshot, run_ids, golden_set_id)
    final = snapshot.graded(run_ids, golden_set_id, stage="final")
    pool = snapshot.graded(run_ids, golden_set_id, stage="pool")
    return Evidence(
        run_ids=final.run_ids,
        query_ids=final.query_ids,
        grades=final.grades,
        pool_grades=_pools(final, pool),
        pool_counts=final.pool_counts,
        unjudged_queries=final.unjudged_queries,
    )


def _require_one_passage_set(snapshot: Snapshot, run_ids: Sequence[str], golden_set_id: str) -> None:
    """Judgements tied to passages cannot judge two sets of passages: those of one would all be unjudged."""
    judges, searched = snapshot.judging(run_ids, golden_set_id), snapshot.searched(run_ids)
    tied = sorted({searched[run_id] for run_id, name in judges.items() if name == golden_set_id})
    if len(tied) > 1:
        raise InputError(
            f"These runs searched differently cut passages ({', '.join(tied)}), and the golden set "
            f"{golden_set_id} is tied to passages, so that it can judge one of these sets only.",
            do="Choose runs of one chunking, or anchor the grades to characters of the documents (spans).",
        )


def _pools(final: Graded, pool: Graded) -> Grades:
    """The pool of each run; a run that stored none could choose from its final ranking only."""
    stored = (pool.grades != EMPTY_SLOT).any(axis=(1, 2))
    if not stored.any():
        return final.grades
    depth = max(final.grades.shape[2], pool.grades.shape[2])
    return np.where(stored[:, None, None], to_depth(pool.grades, depth), to_depth(final.grades, depth))


def at_cutoff(found: Evidence, measure: Measure) -> Floats:
    """A measure at its own cutoff.

    Returns:
        float64 [runs, queries]; NaN where the measure is not applicable.
    """
    return score_at(measure, found.grades, found.pool_counts, pool_grades=found.pool_grades)


def mean(values: Floats) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Macro-average over queries.

    Args:
        values: [runs, queries] with NaN where not applicable.

    Returns:
        The means [runs] (NaN where nothing is applicable) and n [runs], the number of queries they rest on.
    """
    means, n = aggregate(values[..., None])
    return means[..., 0], n[..., 0]
