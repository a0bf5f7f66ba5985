"""Computes values from grades: every K in one pass over whole arrays, for any number of runs at once."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.arrays import Floats, Grades, Ints, Whole
from core.errors import InputError
from core.metrics.info import Counts, Scores
from core.metrics.inputs import Extra, Inputs, Judged
from core.metrics.measure import Measure

_BLOCK = 200_000
"""Values per block and measure, few enough for a measure's working arrays to stay in a processor's cache."""


def score(
    measure: Measure,
    grades: Grades,
    pool_counts: Counts,
    *,
    pool_grades: Grades | None = None,
    depth: int | None = None,
    extra: Extra | None = None,
) -> Scores:
    """Return the value of a measure per query at every K = 1..D."""
    return score_all([measure], grades, pool_counts, pool_grades=pool_grades, depth=depth, extra=extra)[
        measure
    ]


def score_all(
    measures: Iterable[Measure],
    grades: Grades,
    pool_counts: Counts,
    *,
    pool_grades: Grades | None = None,
    depth: int | None = None,
    extra: Extra | None = None,
) -> dict[Measure, Scores]:
    """Return the values of several measures, which share their counts; arguments and errors as in `score`."""
    job = _Job(
        grades, pool_counts, pool_grades, grades.shape[-1] if depth is None else depth, extra or Extra()
    )
    wanted = tuple(measures)
    # A measure at several cutoffs is computed once.
    scores = {measure.at(None): job.empty() for measure in wanted}
    blocks = list(job.blocks(max((measure.info.ahead for measure in scores), default=1)))

    def fill(block: _Block) -> None:
        inputs = job.inputs(block)
        with np.errstate(divide="ignore", invalid="ignore"):
            for measure, values in scores.items():
                out = values.reshape(job.shape)[:, block.runs, block.queries]
                inputs.value(measure.info, measure.values, out=out)
            for values in scores.values():
                job.leave_out_unjudged(values.reshape(job.shape), block)

    if len(blocks) <= 1:
        deque(map(fill, blocks), maxlen=0)
    else:
        with ThreadPoolExecutor(min(len(blocks), os.cpu_count() or 1)) as workers:
            deque(workers.map(fill, blocks), maxlen=0)
    return {measure: np.moveaxis(scores[measure.at(None)], 0, -1) for measure in wanted}


class _Job:
    """All arrays with the runs on one axis, and their division into blocks."""

    def __init__(
        self, grades: Grades, pool_counts: Counts, pool_grades: Grades | None, depth: int, extra: Extra
    ) -> None:
        leading, queries = grades.shape[:-2], grades.shape[-2] if grades.ndim >= 2 else -1
        if pool_counts.shape not in ((queries, 5), (*leading, queries, 5)):
            raise ValueError(
                f"pool_counts {pool_counts.shape} do not match grades {grades.shape}: ({queries}, 5) would"
            )
        perturbed = dict(extra.perturbed or {})
        beside: dict[str, NDArray[Any] | None] = {
            "pool_grades": pool_grades,
            "candidates": extra.candidates,
            "sources": extra.sources,
            "pool_sources": extra.pool_sources,
            "source_grades": extra.source_grades,
            "answers": extra.answers,
            "nuggets": extra.nuggets,
            "nuggets_listed": extra.nuggets_listed,
            "pool_nuggets": extra.pool_nuggets,
            "states": extra.states,
            "filtered": extra.filtered,
        }
        for name, given in (beside | perturbed).items():
            if given is not None and given.shape[:-1] != grades.shape[:-1]:
                raise ValueError(f"{name} {given.shape} do not match grades {grades.shape}")
        self._leading, self._apart = leading, pool_counts.ndim > 2
        self.shape = (depth, math.prod(leading), queries)
        self._gains = extra.gains
        self._counts = _on_one_axis(pool_counts, 3 if pool_counts.ndim > 2 else 2)
        of_sources = {"facets": extra.facets, "depths": extra.depths, "nuggets": extra.nuggets_known}
        self._of_sources: dict[str, NDArray[Any]] = {
            name: _on_one_axis(given, given.ndim) for name, given in of_sources.items() if given is not None
        }

        def on_one_axis(given: NDArray[Whole]) -> NDArray[Whole]:
            return given.reshape(self.shape[1], queries, given.shape[-1])

        self._grades = on_one_axis(grades)
        self._beside = {name: on_one_axis(given) for name, given in beside.items() if given is not None}
        self._perturbed = {name: on_one_axis(given) for name, given in perturbed.items()}

    def empty(self) -> Scores:
        """Return an empty array for the values of a measure, cutoffs first."""
        depth, _, queries = self.shape
        return np.empty((depth, *self._leading, queries))

    def blocks(self, ahead: int) -> Iterator[_Block]:
        """Cut runs and queries into blocks; blocks of the same queries share their judgements."""
        depth, runs, queries = self.shape
        cells = max(1, _BLOCK // max(1, depth))
        some_queries = max(1, min(queries, cells))
        some_runs = max(1, cells // some_queries)
        for first in range(0, queries, some_queries):
            part = slice(first, first + some_queries)
            apart = any(given.shape[1] > 1 for given in (self._counts, *self._of_sources.values()))
            shared = None if apart else self._judged(slice(None), part)
            for run in range(0, runs, some_runs):
                of = slice(run, run + some_runs)
                yield _Block(of, part, shared or self._judged(of, part), ahead)

    def _judged(self, runs: slice, queries: slice) -> Judged:
        def part(given: Counts) -> Counts:
            return given[:, runs if given.shape[1] > 1 else slice(None), queries]

        of_sources: dict[str, NDArray[Any]] = {name: part(given) for name, given in self._of_sources.items()}
        return Judged(part(self._counts), self.shape[0], gains=self._gains, **of_sources)

    def leave_out_unjudged(self, values: Scores, block: _Block) -> None:
        """Set queries without judged passages to NaN, if runs have separate judgements."""
        if self._apart:
            nothing = ~block.judged.counts.any(axis=0)
            values[:, block.runs, block.queries][:, nothing] = np.nan

    def inputs(self, block: _Block) -> Inputs:
        """Return the arrays of a block."""
        place = block.runs, block.queries
        perturbed = {name: given[place] for name, given in self._perturbed.items()}
        beside = {name: given[place] for name, given in self._beside.items()}
        return Inputs(self._grades[place], block.judged, ahead=block.ahead, perturbed=perturbed, **beside)


@dataclass(frozen=True, slots=True)
class _Block:
    runs: slice
    queries: slice
    judged: Judged
    ahead: int


def _on_one_axis(counts: Counts, axes: int) -> Counts:
    """Return counts [..., Q, n] as [n, 1 or runs, Q]."""
    queries, kinds = counts.shape[-2:]
    flat = counts.reshape(math.prod(counts.shape[:-2]) if axes > 2 else 1, queries, kinds)
    return np.ascontiguousarray(np.moveaxis(flat, -1, 0))


def score_at(
    measure: Measure,
    grades: Grades,
    pool_counts: Counts,
    *,
    pool_grades: Grades | None = None,
    extra: Extra | None = None,
) -> Floats:
    """Return the value per query at the measure's own cutoff: float64 [..., Q]; arguments as in `score`.

    Raises:
        InputError: If the measure has no cutoff, or needs an input that is not given.
    """
    if measure.k is None:
        raise InputError(f"{measure} has no cutoff.", do=f"Write {measure.at(10)}, for example.")
    scored = score(measure, grades, pool_counts, pool_grades=pool_grades, depth=measure.k, extra=extra)
    return scored[..., measure.k - 1]


def to_depth(grades: NDArray[Whole], depth: int) -> NDArray[Whole]:
    """Cut rankings to `depth` slots, or pad them with empty ones: -1, or 0 for sets of nuggets."""
    missing = depth - grades.shape[-1]
    if missing <= 0:
        return grades[..., :depth]
    empty = 0 if grades.dtype == np.uint64 else -1
    filler = np.full((*grades.shape[:-1], missing), empty, dtype=grades.dtype)
    return np.concatenate([grades, filler], axis=-1)


def aggregate(values: Scores) -> tuple[Floats, Ints]:
    """Return the macro-average over the queries to which the measure applies.

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
    """Explain why a measure does not apply to a query.

    Args:
        measure: The measure at its cutoff; without a cutoff, at a K as deep as the golden set.
        pool_counts_row: Integers [5], the query's counts in the golden set. pool_grades_row: int8 [P], grades
        of its candidate pool; without it the pool is assumed to be complete.

    Returns:
        A sentence, or None if the measure applies. A measure of answers or nuggets is assumed not to
        apply, because a query without a value has only one possible reason.
    """
    counts = np.asarray(pool_counts_row).reshape(1, 5)
    if not counts.any() and measure.info.na:
        return "No passage of the query is judged."
    if {"answers", "perturbed", "nuggets", "filters"} & measure.info.needs:
        return measure.info.na
    if pool_grades_row is None:
        pool_grades_row = np.repeat(np.arange(1, 6, dtype=np.int8), counts[0])
    deep = measure.at(measure.k or max(1, int(counts.sum())))
    nothing, pool = np.full((1, 0), -1, dtype=np.int8), pool_grades_row.reshape(1, -1)
    # Whether a measure applies does not depend on sources: each passage may be its own.
    alone = Extra(
        sources=np.zeros((1, 0), dtype=np.int32),
        pool_sources=np.arange(pool.shape[1], dtype=np.int32).reshape(1, -1),
        source_grades=nothing,
        facets=_singles(counts),
        depths=counts[:, ::-1].cumsum(axis=1)[:, ::-1],
    )
    value = score_at(deep, nothing, counts, pool_grades=pool, extra=alone)
    if not np.isnan(value[0]):
        return None
    if measure.inner and na_reason(measure.renamed(measure.inner), counts) is None:
        return "The best ordering of the candidate pool reaches 0 at this K."
    return measure.info.na


def _singles(counts: Counts) -> Counts:
    """Return facet counts [1, 32] for passages that are each the only one of their source."""
    singles = np.zeros((1, 32), dtype=np.int64)
    singles[0, [1, 2, 4, 8, 16]] = counts[0]
    return singles
