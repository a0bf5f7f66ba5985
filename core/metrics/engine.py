"""From grades to values: every K in one pass over whole arrays, for any number of runs at once."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError
from core.metrics.info import Counts, Grades, Inputs, Scores
from core.metrics.measure import Measure

_BLOCK = 65_536


def score(
    measure: Measure,
    grades: Grades,
    pool_counts: Counts,
    *,
    pool_grades: Grades | None = None,
    depth: int | None = None,
) -> Scores:
    """Value of a measure per query at every K = 1..D.

    Args:
        measure: Which one; its own cutoff does not matter here.
        grades: int8 [..., Q, D], grade at each rank: 1..5 judged, 0 unjudged, -1 empty slot. A query that a
            run does not rank is a row of -1 and scores 0.
        pool_counts: Integers [Q, 5], passages with grade 1..5 in the golden set; or [R, Q, 5] where each of
            the R runs of `grades` [R, Q, D] has judged passages of its own.
        pool_grades: int8 [..., Q, P], grades of each candidate pool in any order; needed by PROC only.
        depth: Largest K when it is not the last axis of `grades`; missing slots are empty.

    Returns:
        float64 [..., Q, D]; NaN where the measure does not apply to the query (see `na_reason`).

    Raises:
        InputError: If the measure needs candidate pools and none are given.
        ValueError: If the shapes do not belong together.
    """
    return score_all([measure], grades, pool_counts, pool_grades=pool_grades, depth=depth)[measure]


def score_all(
    measures: Iterable[Measure],
    grades: Grades,
    pool_counts: Counts,
    *,
    pool_grades: Grades | None = None,
    depth: int | None = None,
) -> dict[Measure, Scores]:
    """`score` of several measures, which share their counts; arguments and errors as there."""
    if pool_counts.ndim > 2:
        return _score_apart(tuple(measures), grades, pool_counts, pool_grades, depth)
    inputs = Inputs(grades if depth is None else to_depth(grades, depth), pool_counts, pool_grades)
    wanted = tuple(measures)
    # One measure at several cutoffs is computed once.
    made = {measure.at(None): np.empty(inputs.grades.shape) for measure in wanted}

    def fill(queries: slice) -> None:
        part = inputs.part(queries)
        for measure, values in made.items():
            part.value(measure.info, measure.values, out=values[..., queries, :])

    blocks = _blocks(inputs.grades.shape)
    if len(blocks) == 1:
        fill(blocks[0])
    else:
        with ThreadPoolExecutor(min(len(blocks), os.cpu_count() or 1)) as workers:
            deque(workers.map(fill, blocks), maxlen=0)
    return {measure: made[measure.at(None)] for measure in wanted}


def _score_apart(
    measures: tuple[Measure, ...],
    grades: Grades,
    pool_counts: Counts,
    pool_grades: Grades | None,
    depth: int | None,
) -> dict[Measure, Scores]:
    """Score runs whose judged passages differ: together those that have the same.

    No measure applies to a query of which nothing is judged for the run.
    """
    if pool_counts.shape[:-1] != grades.shape[:-1]:
        raise ValueError(f"pool_counts {pool_counts.shape} do not match grades {grades.shape}")
    groups: dict[bytes, list[int]] = {}
    for run, counts in enumerate(pool_counts):
        groups.setdefault(counts.tobytes(), []).append(run)
    shape = (*grades.shape[:-1], grades.shape[-1] if depth is None else depth)
    made = {measure: np.empty(shape) for measure in measures}
    for runs in groups.values():
        pools = None if pool_grades is None else pool_grades[runs]
        part = score_all(measures, grades[runs], pool_counts[runs[0]], pool_grades=pools, depth=depth)
        for measure, values in part.items():
            made[measure][runs] = values
    unjudged = ~pool_counts.any(axis=-1)
    for values in made.values():
        values[unjudged] = np.nan
    return made


def _blocks(shape: tuple[int, ...]) -> list[slice]:
    """Cut the queries into blocks whose intermediate arrays stay in a processor's cache."""
    *leading, queries, depth = shape
    step = max(1, _BLOCK // max(1, math.prod(leading) * depth))
    return [slice(start, start + step) for start in range(0, max(1, queries), step)]


def score_at(
    measure: Measure, grades: Grades, pool_counts: Counts, *, pool_grades: Grades | None = None
) -> NDArray[np.float64]:
    """Value per query at the measure's own cutoff: float64 [..., Q]; arguments as for `score`.

    Raises:
        InputError: If the measure has no cutoff, or needs candidate pools and none are given.
    """
    if measure.k is None:
        raise InputError(f"{measure} has no cutoff.", do=f"Write {measure.at(10)}, for example.")
    scored = score(measure, grades, pool_counts, pool_grades=pool_grades, depth=measure.k)
    return scored[..., measure.k - 1]


def to_depth(grades: Grades, depth: int) -> Grades:
    """Cut rankings to `depth` slots, or fill them up with empty ones."""
    missing = depth - grades.shape[-1]
    if missing <= 0:
        return grades[..., :depth]
    filler = np.full((*grades.shape[:-1], missing), -1, dtype=grades.dtype)
    return np.concatenate([grades, filler], axis=-1)


def aggregate(values: Scores) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Macro-average over the queries to which the measure applies.

    Args:
        values: float64 [..., Q, D].

    Returns:
        The mean and the number of queries in it, both [..., D]; the mean of no queries is NaN.
    """
    applies = ~np.isnan(values)
    n = np.count_nonzero(applies, axis=-2).astype(np.int64)
    total = np.sum(values, axis=-2, where=applies)
    return np.divide(total, n, out=np.full(n.shape, np.nan), where=n > 0), n


def na_reason(
    measure: Measure, pool_counts_row: NDArray[Any], pool_grades_row: Grades | None = None
) -> str | None:
    """Why a measure does not apply to a query.

    Args:
        measure: Which one, at its cutoff; without one, at a K as deep as the golden set.
        pool_counts_row: Integers [5], the query's counts in the golden set.
        pool_grades_row: int8 [P], grades of its candidate pool; without it the pool is taken to be complete.

    Returns:
        A sentence, or None when the measure applies.
    """
    counts = np.asarray(pool_counts_row).reshape(1, 5)
    if not counts.any() and measure.info.na:
        return "No passage of the query is judged."
    if pool_grades_row is None:
        pool_grades_row = np.repeat(np.arange(1, 6, dtype=np.int8), counts[0])
    deep = measure.at(measure.k or max(1, int(counts.sum())))
    value = score_at(
        deep, np.full((1, 0), -1, dtype=np.int8), counts, pool_grades=pool_grades_row.reshape(1, -1)
    )
    if not np.isnan(value[0]):
        return None
    if measure.inner and na_reason(measure.renamed(measure.inner), counts) is None:
        return "The best ordering of the candidate pool reaches 0 at this K."
    return measure.info.na
