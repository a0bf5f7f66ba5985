"""The join of rankings with judgements, as arrays ready for the measures.

Parts are read as integers (`core.store.codes`). One look-up per distinct passage id says which judged passage
it is; then, query by query, the grades of its judged passages are laid out in a table that every ranked slot
of every run is picked from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.store.codes import STAGES, Coded, coded, found_in
from core.store.judged import Judged, judged
from core.store.memory import Memory

EMPTY = -1
"""Grade of a slot without a passage."""

UNJUDGED = 0
"""Grade of a passage without a judgement."""

Places = npt.NDArray[np.int64]

_CELLS = 1 << 24
"""Slots that are worked on at a time: 64 MiB of codes."""


@dataclass(frozen=True, slots=True)
class Graded:
    """Rankings of several runs with the grades of one golden set. Its arrays are read-only.

    Attributes:
        run_ids: The runs, in the order asked for; first axis of `grades`.
        query_ids: Every query with at least one judgement, sorted; second axis.
        grades: int8 [runs, queries, depth]; 1..5 judged, 0 unjudged, -1 empty slot (ranking shorter, or the
            query not ranked at all).
        pool_counts: int32 [queries, 5], judged passages with grade 1..5 in the golden set. Where runs of
            several chunkings have grades of their own, [runs, queries, 5]: each run's are those of its
            chunking, and a query may be judged in some of them only.
        unjudged_queries: int32 [runs], queries that the run ranks but nobody judged (left out).
        gains: What a passage of grade 1..5 gains: the grade as the judges gave it (below 0 counts as 0),
            where that rises with the grade; else the grade.
    """

    run_ids: tuple[str, ...]
    query_ids: tuple[str, ...]
    grades: npt.NDArray[np.int8]
    pool_counts: npt.NDArray[np.int32]
    unjudged_queries: npt.NDArray[np.int32]
    gains: tuple[float, float, float, float, float] = (1.0, 2.0, 3.0, 4.0, 5.0)


@dataclass(frozen=True, slots=True)
class Judges:
    """A golden set and the runs that it judges.

    Attributes:
        golden_set_id: The golden set, whole or part.
        run_ids: The runs.
        rankings: Parquet files with the runs' rankings.
        judgements: Parquet files with the golden set's judgements.
    """

    golden_set_id: str
    run_ids: tuple[str, ...]
    rankings: tuple[str, ...]
    judgements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Lists:
    """Ranked lists of one part: those of the wanted runs and stage.

    Attributes:
        part: The part.
        number: int64 [lists], which of its lists.
        run: int64 [lists], position of the run.
        query: int64 [lists], position of the query; -1 where nobody judged it.
    """

    part: Coded
    number: Places
    run: Places
    query: Places

    @classmethod
    def of(
        cls,
        part: Coded,
        run_ids: Sequence[str],
        stage: str,
        run_at: Mapping[str, int],
        query_at: Mapping[str, int],
    ) -> _Lists:
        """Find the lists of some runs and their positions."""
        wanted = frozenset(run_ids)
        runs = np.array([run_at[owner] if owner in wanted else -1 for owner in part.owners], dtype=np.int64)
        queries = np.array([query_at.get(query, -1) for query in part.queries], dtype=np.int64)
        number = np.flatnonzero((part.stage == STAGES.index(stage)) & (runs[part.owner] >= 0))
        return cls(part, number, runs[part.owner[number]], queries[part.query[number]])

    def chosen(self, which: Places) -> _Lists:
        """Some of them."""
        return _Lists(self.part, self.number[which], self.run[which], self.query[which])

    def among_queries(self) -> _Lists:
        """Those of queries that have a position."""
        return self.chosen(np.flatnonzero(self.query >= 0))

    def unjudged(self, known: Set[str], runs: int) -> npt.NDArray[np.int32]:
        """How many queries each run ranks that are not among those known."""
        strange = np.array([query not in known for query in self.part.queries], dtype=np.bool_)
        theirs = self.run[strange[self.part.query[self.number]]]
        return np.bincount(theirs, minlength=runs).astype(np.int32)

    def deepest(self) -> int:
        """The deepest rank of any list."""
        if self.part.rank is None:
            return int(self.part.length[self.number].max(initial=0))
        return int(self.part.rank[self.part.start[self.number + 1] - 1].max(initial=0))

    def codes(self, depth: int) -> npt.NDArray[np.int32]:
        """Passage codes by rank: int32 [lists, depth], -1 where there is no passage."""
        begins, lengths = self.part.start[self.number], self.part.length[self.number]
        if self.part.rank is None and depth and (lengths >= depth).all():
            step = int(lengths[0])
            if (lengths == step).all() and (np.diff(begins) == step).all():
                rows = self.part.code[begins[0] : begins[0] + len(begins) * step]
                return rows.reshape(len(begins), step)[:, :depth]
            return np.asarray(self.part.code[begins[:, None] + np.arange(depth)])
        made = np.full((len(begins), depth), -1, dtype=np.int32)
        row = np.repeat(np.arange(len(begins)), lengths)
        within = np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        source = np.repeat(begins, lengths) + within
        rank = within if self.part.rank is None else self.part.rank[source] - 1
        shown = rank < depth
        made[row[shown], rank[shown]] = self.part.code[source[shown]]
        return made


_MEMORY = Memory(256 * 2**20)
"""What was joined before: the files of a store never change."""


def join(groups: Sequence[Judges], *, run_ids: Sequence[str], stage: str, depth: int | None) -> Graded:
    """Join rankings with the judgements of the golden set that judges each run.

    Args:
        groups: Who judges which runs; every run is in one of them.
        run_ids: The runs, in the order of the answer.
        stage: "final" or "pool".
        depth: Ranks to keep; None keeps all.

    Returns:
        Over the queries that any of the golden sets judges.
    """
    key = (tuple(groups), tuple(run_ids), stage, depth)
    return _MEMORY.once(key, lambda: _join(groups, tuple(run_ids), stage, depth), size)


def size(graded: Graded) -> int:
    """Bytes that it takes in memory."""
    return graded.grades.nbytes + graded.pool_counts.nbytes + graded.unjudged_queries.nbytes


def forget() -> None:
    """Forget what was read, for measurements that begin at the files."""
    for kept in (_MEMORY.clear, coded.cache_clear, judged.cache_clear):
        kept()


def _join(groups: Sequence[Judges], run_ids: tuple[str, ...], stage: str, depth: int | None) -> Graded:
    goldens = [judged(group.golden_set_id, group.judgements) for group in groups]
    query_ids = goldens[0].query_ids
    if len(groups) > 1:
        query_ids = tuple(sorted({query for golden in goldens for query in golden.query_ids}))
    run_at = {run_id: place for place, run_id in enumerate(run_ids)}
    query_at = {query_id: place for place, query_id in enumerate(query_ids)}
    unjudged = np.zeros(len(run_ids), dtype=np.int32)
    found: list[list[_Lists]] = []
    for group, golden in zip(groups, goldens, strict=True):
        lists = [_Lists.of(coded(file), group.run_ids, stage, run_at, query_at) for file in group.rankings]
        found.append([each.among_queries() for each in lists])
        for each in lists:
            unjudged += each.unjudged(frozenset(golden.query_ids), len(run_ids))
    wide = max((each.deepest() for lists in found for each in lists), default=0) if depth is None else depth
    grades = np.full((len(run_ids), len(query_ids), wide), EMPTY, dtype=np.int8)
    for golden, lists in zip(goldens, found, strict=True):
        _fill(grades, lists, golden, [query_at[query_id] for query_id in golden.query_ids])
    counts = goldens[0].counts if len(groups) == 1 else _spread(groups, goldens, run_at, query_at)
    for made in (grades, unjudged):
        made.flags.writeable = False
    gains = next((golden.gains for golden in goldens if golden.query_ids), goldens[0].gains)
    return Graded(run_ids, query_ids, grades, counts, unjudged, gains)


def _spread(
    groups: Sequence[Judges], goldens: Sequence[Judged], run_at: dict[str, int], query_at: dict[str, int]
) -> npt.NDArray[np.int32]:
    """Counts per run: those of the golden set that judges it."""
    counts = np.zeros((len(run_at), len(query_at), 5), dtype=np.int32)
    for group, golden in zip(groups, goldens, strict=True):
        runs = [run_at[run_id] for run_id in group.run_ids]
        queries = [query_at[query_id] for query_id in golden.query_ids]
        counts[np.ix_(runs, queries)] = golden.counts
    counts.flags.writeable = False
    return counts


def _fill(
    grades: npt.NDArray[np.int8], lists: Sequence[_Lists], golden: Judged, positions: Sequence[int]
) -> None:
    """Grade lists with one golden set, some runs at a time.

    Args:
        grades: [runs, queries, depth], to be filled where there are lists.
        lists: Per part.
        golden: Its judgements.
        positions: Per query of the golden set its position in `grades`.
    """
    lists = [each for each in lists if len(each.number)]
    if not lists or not grades.size:
        return
    # A query's table of grades has a place per judged passage, one for all others, and one for no passage,
    # which is what the code -1 picks.
    empty = np.array([len(golden.ids) + 1], dtype=np.int32)
    places = [np.append(place, empty) for place in found_in([each.part for each in lists], golden.ids)]
    runs = np.unique(np.concatenate([each.run for each in lists]))
    some = max(1, _CELLS // (grades.shape[1] * grades.shape[2]))
    for first in range(0, len(runs), some):
        chosen = runs[first : first + some]
        slots = _slots(lists, places, chosen, grades.shape)
        grades[chosen] = np.moveaxis(_picked(slots, golden, positions), 0, 1)


def _slots(
    lists: Sequence[_Lists],
    places: Sequence[npt.NDArray[np.int32]],
    runs: Places,
    shape: tuple[int, ...],
) -> npt.NDArray[np.int32]:
    """Places in the tables of grades, by query, run and rank."""
    at = np.full(shape[0], -1, dtype=np.int64)
    at[runs] = np.arange(len(runs))
    slots = np.full((shape[1], len(runs), shape[2]), places[0][-1], dtype=np.int32)
    for each, place in zip(lists, places, strict=True):
        mine = each.chosen(np.flatnonzero(at[each.run] >= 0))
        if len(mine.number):
            slots[mine.query, at[mine.run]] = place.take(mine.codes(shape[2]).astype(np.intp))
    return slots


def _picked(slots: npt.NDArray[np.int32], golden: Judged, positions: Sequence[int]) -> npt.NDArray[np.int8]:
    """Grades from the table of each query."""
    table = np.zeros(len(golden.ids) + 2, dtype=np.int8)
    table[-1] = EMPTY
    grades = np.empty(slots.shape, dtype=np.int8)
    rows_of = dict(zip(positions, zip(golden.start[:-1], golden.start[1:], strict=True), strict=True))
    for position, of_query in enumerate(slots):
        rows = slice(*rows_of.get(position, (0, 0)))
        table[golden.code[rows]] = golden.grade[rows]
        table.take(of_query.astype(np.intp), out=grades[position], mode="clip")
        table[golden.code[rows]] = UNJUDGED
    return grades
