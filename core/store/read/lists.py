"""The two sides of the join: the judged passages of one golden set, and the ranked lists of one part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from core.metrics.access import ALLOWED, UNFILTERED
from core.metrics.gain import Five
from core.store.read.access import Filtered, access
from core.store.read.codes import STAGES, Coded, Filed, coded

LINEAR: Five = (1.0, 2.0, 3.0, 4.0, 5.0)
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class JudgementLists:
    """A golden set's judgements; the rows of a query are adjacent."""

    query_ids: tuple[str, ...]  # the judged queries, sorted
    counts: npt.NDArray[np.int32]  # int32 [queries, 5], judged passages with grade 1..5 (read-only)
    ids: pa.Array  # passage ids (Arrow large_string), the judged ones among them
    start: npt.NDArray[np.int64]  # int64 [queries + 1], first row of each query
    code: npt.NDArray[np.int32]  # int32 [rows], index into `ids`
    grade: npt.NDArray[np.int8]  # int8 [rows]
    gains: Five = LINEAR  # gain of a passage of grade 1..5, in the scale that the judges used


@lru_cache(maxsize=64)
def judged(
    golden_set_id: str, judgements: Sequence[Filed], filtered: Filtered | None = None
) -> JudgementLists:
    """Read a golden set's judgements; cached, because files of a store never change.

    Args:
        filtered: Where the filters of its questions are; judgements outside of them are set aside.
    """
    every = _judged(golden_set_id, judgements)
    return every if filtered is None else _within(every, filtered)


def _within(every: JudgementLists, filtered: Filtered) -> JudgementLists:
    """Return the judgements of passages that the askers may see; questions left with none are left out."""
    sizes = np.diff(every.start)
    query = np.repeat(np.arange(len(sizes)), sizes)
    asked = pl.Series(every.query_ids, dtype=pl.String)[query.astype(np.uint32)]
    found = pl.Series(pl.from_arrow(every.ids), dtype=pl.String)[every.code.astype(np.uint32)]
    states = access(filtered).states(asked, found)
    kept = (states == ALLOWED) | (states == UNFILTERED)
    graded = np.bincount(query[kept] * 5 + every.grade[kept] - 1, minlength=len(sizes) * 5).reshape(-1, 5)
    left = np.flatnonzero(graded.any(axis=1))
    counts = graded[left].astype(np.int32)
    counts.flags.writeable = False
    return replace(
        every,
        query_ids=tuple(every.query_ids[place] for place in left),
        counts=counts,
        start=np.concatenate([[0], np.cumsum(counts.sum(axis=1))]).astype(np.int64),
        code=every.code[kept],
        grade=every.grade[kept],
    )


@lru_cache(maxsize=64)
def _judged(golden_set_id: str, judgements: Sequence[Filed]) -> JudgementLists:
    if not judgements:
        nothing = np.zeros(0, dtype=np.int32)
        ids = pa.array([], type=pa.large_string())
        counts = np.zeros((0, 5), dtype=np.int32)
        return JudgementLists((), counts, ids, np.zeros(1, dtype=np.int64), nothing, nothing.astype(np.int8))
    (file,) = judgements  # all rows of a golden set are in one part
    part = coded(file)
    assert part.grade is not None  # noqa: S101 - a part of judgements
    assert part.raw is not None  # noqa: S101
    lists = np.flatnonzero(part.owner == part.owners.index(golden_set_id))
    first, last = part.start[lists[0]], part.start[lists[-1] + 1]
    start = np.append(part.start[lists], last) - first
    grade = np.asarray(part.grade[first:last])
    query = np.repeat(np.arange(len(lists)), np.diff(start))
    counts = np.bincount(query * 5 + grade - 1, minlength=len(lists) * 5).reshape(-1, 5).astype(np.int32)
    counts.flags.writeable = False
    return JudgementLists(
        query_ids=tuple(part.queries[place] for place in part.query[lists]),
        counts=counts,
        ids=part.ids,
        start=start,
        code=part.code[first:last],
        grade=grade,
        gains=gains_of(grade, part.raw[first:last]),
    )


def gains_of(grade: npt.NDArray[np.int8], raw: npt.NDArray[np.int16]) -> Five:
    """Return the gain of a passage of grade 1..5: the original grade, or 0 if that is negative.

    This applies only if each grade has one original grade, rising with it; otherwise (a reversed scale, or
    two original grades mapped to one) the gain is the grade itself. A grade that does not occur has the gain
    of the next lower one that does.
    """
    if np.array_equal(grade, raw):
        return LINEAR
    given = np.maximum(raw, 0)
    gains, last = [], 0.0
    for level in range(1, 6):
        of_level = np.unique(given[grade == level])
        if len(of_level) > 1 or (len(of_level) == 1 and of_level[0] < last):
            return LINEAR
        last = float(of_level[0]) if len(of_level) else last
        gains.append(last)
    one, two, three, four, five = gains
    return one, two, three, four, five


Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Judges:
    """A golden set and the runs that it judges."""

    golden_set_id: str  # the golden set, whole or part
    run_ids: tuple[str, ...]  # the runs
    rankings: tuple[Filed, ...]  # files with the runs' rankings
    judgements: tuple[Filed, ...]  # files with the golden set's judgements
    filtered: Filtered | None = None  # where the filters of its questions are; None = there are none


@dataclass(frozen=True, slots=True)
class ListAxes:
    """The runs and queries of an answer, and their positions."""

    run_ids: tuple[str, ...]  # the runs, first axis
    query_ids: tuple[str, ...]  # every query that some golden set judges, sorted; second axis
    run_at: Mapping[str, int]  # position of each run
    query_at: Mapping[str, int]  # position of each query

    @classmethod
    def of(cls, run_ids: tuple[str, ...], goldens: Sequence[JudgementLists]) -> ListAxes:
        """Return the axes for some runs and the golden sets that judge them."""
        queries = goldens[0].query_ids
        if len(goldens) > 1:
            queries = tuple(sorted({query for golden in goldens for query in golden.query_ids}))
        run_at, query_at = ({name: place for place, name in enumerate(names)} for names in (run_ids, queries))
        return cls(run_ids, queries, run_at, query_at)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of runs and of queries."""
        return len(self.run_ids), len(self.query_ids)

    def queries(self, query_ids: Sequence[str]) -> list[int]:
        """Return positions of some queries."""
        return [self.query_at[query_id] for query_id in query_ids]

    def spread(
        self,
        groups: Sequence[Judges],
        goldens: Sequence[JudgementLists],
        counts: Sequence[npt.NDArray[Number]],
    ) -> npt.NDArray[Number]:
        """Return counts [queries, kinds] of each golden set for its runs.

        With a single set they are unchanged.
        """
        if len(groups) == 1:
            return counts[0]
        spread = np.zeros((*self.shape, max(each.shape[1] for each in counts)), dtype=counts[0].dtype)
        for group, golden, counted in zip(groups, goldens, counts, strict=True):
            runs = [self.run_at[run_id] for run_id in group.run_ids]
            spread[np.ix_(runs, self.queries(golden.query_ids), range(counted.shape[1]))] = counted
        return spread


@dataclass(frozen=True, slots=True)
class Lists:
    """Ranked lists of one part, limited to the wanted runs and stage."""

    part: Coded  # the part
    number: Places  # int64 [lists], index of each list in the part
    run: Places  # int64 [lists], position of the run
    query: Places  # int64 [lists], position of the query; -1 if nobody judged it

    @classmethod
    def of(cls, part: Coded, run_ids: Sequence[str], stage: str, axes: ListAxes) -> Lists:
        """Find the lists of some runs and their positions."""
        wanted = frozenset(run_ids)
        runs = np.array(
            [axes.run_at[owner] if owner in wanted else -1 for owner in part.owners], dtype=np.int64
        )
        queries = np.array([axes.query_at.get(query, -1) for query in part.queries], dtype=np.int64)
        number = np.flatnonzero((part.stage == STAGES.index(stage)) & (runs[part.owner] >= 0))
        return cls(part, number, runs[part.owner[number]], queries[part.query[number]])

    def chosen(self, which: Places) -> Lists:
        """Return some of the lists."""
        return Lists(self.part, self.number[which], self.run[which], self.query[which])

    def among_queries(self) -> Lists:
        """Return the lists of queries that have a position."""
        return self.chosen(np.flatnonzero(self.query >= 0))

    def among_runs(self, first: int, last: int) -> Lists:
        """Return the lists of runs in a range of positions, renumbered from the first of them."""
        few = self.chosen(np.flatnonzero((first <= self.run) & (self.run < last)))
        return Lists(few.part, few.number, few.run - first, few.query)

    def unjudged(self, known: Set[str], runs: int) -> npt.NDArray[np.int32]:
        """Count, for each run, the ranked queries that are not among the known ones."""
        strange = np.array([query not in known for query in self.part.queries], dtype=np.bool_)
        theirs = self.run[strange[self.part.query[self.number]]]
        return np.bincount(theirs, minlength=runs).astype(np.int32)

    def deepest(self) -> int:
        """Return the deepest rank of any list."""
        if self.part.rank is None:
            return int(self.part.length[self.number].max(initial=0))
        return int(self.part.rank[self.part.start[self.number + 1] - 1].max(initial=0))

    def codes(self, depth: int) -> npt.NDArray[np.int32]:
        """Return passage codes by rank: int32 [lists, depth], -1 if there is no passage."""
        begins, lengths = self.part.start[self.number], self.part.length[self.number]
        if self.part.rank is None and depth and (lengths >= depth).all():
            step = int(lengths[0])
            if (lengths == step).all() and (np.diff(begins) == step).all():
                rows = self.part.code[begins[0] : begins[0] + len(begins) * step]
                return rows.reshape(len(begins), step)[:, :depth]
            return np.asarray(self.part.code[begins[:, None] + np.arange(depth)])
        codes = np.full((len(begins), depth), -1, dtype=np.int32)
        row = np.repeat(np.arange(len(begins)), lengths)
        within = np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        source = np.repeat(begins, lengths) + within
        rank = within if self.part.rank is None else self.part.rank[source] - 1
        shown = rank < depth
        codes[row[shown], rank[shown]] = self.part.code[source[shown]]
        return codes
