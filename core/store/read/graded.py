"""The join of rankings with judgements, as arrays ready for the measures.

Parts are read as integers (`store.read.codes`). One look-up per distinct passage id finds the judged passage;
then, query by query, the grades of its judged passages are laid out in a table from which every ranked slot
of every run picks its grade.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from core.metrics.gain import Five
from core.metrics.info import depths_by_row, sets_by_row
from core.store import seals
from core.store.engine import ENGINE
from core.store.read.codes import Filed, coded, found_in
from core.store.read.lists import LINEAR, JudgementLists, Judges, ListAxes, Lists, Places, judged
from core.store.read.memory import Memory

EMPTY = -1  # Grade of a slot without a passage

UNJUDGED = 0  # Grade of a passage without a judgement

_CELLS = 1 << 24  # Slots that are processed at a time: 64 MiB of codes

_LOOKED_UP = 1 << 22  # Ids of passages that are looked up at a time

_PIECE = 1 << 25  # Bytes of a piece of a result that is too large to be cached whole

_COUNTS = 20  # Bytes of a query's counts beside its grades, at most
_MEMORY = Memory(256 * 2**20)  # Earlier joins, cached because files of a store never change
_PLACES = Memory(64 * 2**20)  # Indices of some parts' passages among the judged ones
_SOURCES = """
SELECT passage_id, source FROM read_parquet($passages) WHERE collection_id = $collection ORDER BY passage_id
"""
_ANY_SOURCE = """
SELECT 1 FROM read_parquet($passages) WHERE collection_id = $collection AND source IS NOT NULL LIMIT 1
"""
_Passages = tuple[str, tuple[str, ...]]  # A collection, and the files that hold its passages
_SOURCED = Memory(128 * 2**20)


@dataclass(frozen=True, slots=True, eq=False)
class Graded:
    """Rankings of several runs with the grades of one golden set. Its arrays are read-only."""

    run_ids: tuple[str, ...]  # the runs, in the order asked for; first axis of `grades`
    query_ids: tuple[str, ...]  # every query with at least one judgement, sorted; second axis
    # int8 [runs, queries, depth]; 1..5 judged, 0 unjudged, -1 empty slot (ranking shorter, or the query not
    # ranked at all)
    grades: npt.NDArray[np.int8]
    # int32 [queries, 5], judged passages with grade 1..5 in the golden set. If runs of several chunkings
    # have separate grades, [runs, queries, 5]: each run has the counts of its chunking, and a query may be
    # judged in only some of them.
    pool_counts: npt.NDArray[np.int32]
    # int32 [runs], queries that the run ranks but nobody judged (left out)
    unjudged_queries: npt.NDArray[np.int32]
    # The gain of a passage of grade 1..5: the original grade from the judges (below 0 counts as 0), if that
    # rises with the grade; otherwise the grade
    gains: Five = LINEAR


def join(groups: Sequence[Judges], run_ids: Sequence[str], stage: str, depth: int | None) -> Graded:
    """Join rankings with the judgements of the golden set that judges each run.

    A result too large to be cached is joined in pieces of some runs, as many of which are cached as fit.
    """
    asked = (tuple(groups), tuple(run_ids), stage, depth)
    return _MEMORY.once(asked, partial(_join, *asked), size)


def size(graded: Graded) -> int:
    """Return the bytes that a result takes in memory."""
    return graded.grades.nbytes + graded.pool_counts.nbytes + graded.unjudged_queries.nbytes


def forget() -> None:
    """Clear the caches, for measurements that begin at the files."""
    for kept in (_MEMORY.clear, _PLACES.clear, coded.cache_clear, judged.cache_clear, seals.forget):
        kept()


def _join(groups: Sequence[Judges], run_ids: tuple[str, ...], stage: str, depth: int | None) -> Graded:
    goldens = [judged(group.golden_set_id, group.judgements, group.filtered) for group in groups]
    axes = ListAxes.of(run_ids, goldens)
    unjudged = np.zeros(len(run_ids), dtype=np.int32)
    by_group: list[dict[Filed, Lists]] = []
    for group, golden in zip(groups, goldens, strict=True):
        lists = {file: Lists.of(coded(file), group.run_ids, stage, axes) for file in group.rankings}
        by_group.append({file: rankings.among_queries() for file, rankings in lists.items()})
        for rankings in lists.values():
            unjudged += rankings.unjudged(frozenset(golden.query_ids), len(run_ids))
    every = (rankings for lists in by_group for rankings in lists.values())
    wide = max((rankings.deepest() for rankings in every), default=0) if depth is None else depth
    shape = (*axes.shape, wide)

    def joined(first: int, last: int) -> npt.NDArray[np.int8]:
        """Return the grades of some runs."""
        grades = np.full((last - first, *shape[1:]), EMPTY, dtype=np.int8)
        for group, golden, lists in zip(groups, goldens, by_group, strict=True):
            filled = {file: rankings.among_runs(first, last) for file, rankings in lists.items()}
            filled = {file: rankings for file, rankings in filled.items() if len(rankings.number)}
            for some in _batches(filled) if grades.size else ():
                places = _places(some, golden, group.judgements)
                _fill(grades, list(some.values()), places, golden, axes.queries(golden.query_ids))
        return grades

    grades = _in_pieces(shape, joined, (tuple(groups), run_ids, stage, wide))
    counts = axes.spread(groups, goldens, [golden.counts for golden in goldens])
    for array in (grades, unjudged, counts):
        array.flags.writeable = False
    gains = next((golden.gains for golden in goldens if golden.query_ids), goldens[0].gains)
    return Graded(run_ids, axes.query_ids, grades, counts, unjudged, gains)


def _in_pieces(
    shape: tuple[int, int, int], joined: Callable[[int, int], npt.NDArray[np.int8]], key: Hashable
) -> npt.NDArray[np.int8]:
    """Return grades [runs, queries, depth], joined at once if they can be cached so, otherwise in pieces."""
    if shape[0] * shape[1] * (shape[2] + _COUNTS) <= _MEMORY.most:
        return joined(0, shape[0])
    grades, some = np.empty(shape, dtype=np.int8), max(1, _PIECE // max(1, shape[1] * shape[2]))
    for first in range(0, shape[0], some):
        last = min(first + some, shape[0])
        piece = _MEMORY.once((key, first), partial(joined, first, last), lambda array: array.nbytes, of=key)
        grades[first:last] = piece
    return grades


def _batches(lists: Mapping[Filed, Lists]) -> Iterator[dict[Filed, Lists]]:
    """Yield parts that are looked up together; a run's rankings are in one part."""
    some: dict[Filed, Lists] = {}
    ids = 0
    for file, rankings in lists.items():
        ids += len(rankings.part.ids)
        if some and ids > _LOOKED_UP:
            yield some
            some, ids = {}, len(rankings.part.ids)
        some[file] = rankings
    if some:
        yield some


def _places(
    lists: Mapping[Filed, Lists], golden: JudgementLists, judgements: tuple[Filed, ...]
) -> list[npt.NDArray[np.int32]]:
    """Return, for each part, the index of each of its passages in a query's table of grades.

    The table has an entry per judged passage, one for all others, and one for an empty slot, which the
    code -1 picks.
    """

    def find() -> list[npt.NDArray[np.int32]]:
        empty = np.array([len(golden.ids) + 1], dtype=np.int32)
        known = found_in([rankings.part.ids for rankings in lists.values()], golden.ids)
        return [np.append(place, empty) for place in known]

    def taken(places: list[npt.NDArray[np.int32]]) -> int:
        return sum(place.nbytes for place in places)

    return _PLACES.once((tuple(lists), judgements), find, taken)


def _fill(
    grades: npt.NDArray[np.int8],
    lists: Sequence[Lists],
    places: Sequence[npt.NDArray[np.int32]],
    golden: JudgementLists,
    positions: Sequence[int],
) -> None:
    """Grade lists with one golden set, some runs at a time."""
    runs = np.unique(np.concatenate([rankings.run for rankings in lists]))
    some = max(1, _CELLS // (grades.shape[1] * grades.shape[2]))
    for first in range(0, len(runs), some):
        chosen = runs[first : first + some]
        slots = _slots(lists, places, chosen, grades.shape)
        grades[chosen] = np.moveaxis(_picked(slots, golden, positions), 0, 1)


def _slots(
    lists: Sequence[Lists], places: Sequence[npt.NDArray[np.int32]], runs: Places, shape: tuple[int, ...]
) -> npt.NDArray[np.int32]:
    """Return indices into the tables of grades, by query, run and rank."""
    at = np.full(shape[0], -1, dtype=np.int64)
    at[runs] = np.arange(len(runs))
    slots = np.full((shape[1], len(runs), shape[2]), places[0][-1], dtype=np.int32)
    for rankings, place in zip(lists, places, strict=True):
        mine = rankings.chosen(np.flatnonzero(at[rankings.run] >= 0))
        if len(mine.number):
            slots[mine.query, at[mine.run]] = place.take(mine.codes(shape[2]).astype(np.intp))
    return slots


def _picked(
    slots: npt.NDArray[np.int32], golden: JudgementLists, positions: Sequence[int]
) -> npt.NDArray[np.int8]:
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


@dataclass(frozen=True, slots=True, eq=False)
class Sourced:
    """Sources of passages, beside the grades of the same runs, stage and golden set."""

    # int32 [runs, queries, depth], equal if two passages of a collection have the same source; -1 for an
    # empty slot. A passage without a source has a separate code.
    codes: npt.NDArray[np.int32]
    # int8 [runs, queries, depth], the highest grade of a judged passage of the slot's source; 0 = none, -1 =
    # an empty slot
    best: npt.NDArray[np.int8]
    # int64 [queries, 32] (or [runs, queries, 32], as `Graded.pool_counts`), how many sources have judged
    # passages with exactly the grades of a set; bit g − 1 of the set stands for grade g
    facets: npt.NDArray[np.int64]
    # int64 [queries, most · 5] (or [runs, queries, most · 5]), how many sources have at least a given number
    # of judged passages of at least a given grade, as `core.metrics.info.depths_by_row` counts them
    depths: npt.NDArray[np.int64]


def join_sources(
    groups: Sequence[Judges],
    passages: Sequence[_Passages],
    run_ids: Sequence[str],
    stage: str,
    depth: int,
) -> Sourced:
    """Join rankings and judgements with the sources (documents) of their passages; see `Sourced`."""
    asked = (tuple(groups), tuple(passages), tuple(run_ids), stage, depth)
    return _SOURCED.once(
        asked,
        partial(_join_sources, *asked),
        lambda made: sum(part.nbytes for part in (made.codes, made.best, made.facets, made.depths)),
    )


def _join_sources(
    groups: Sequence[Judges],
    passages: Sequence[_Passages],
    run_ids: tuple[str, ...],
    stage: str,
    depth: int,
) -> Sourced:
    goldens = [judged(group.golden_set_id, group.judgements, group.filtered) for group in groups]
    axes = ListAxes.of(run_ids, goldens)
    codes = np.full((*axes.shape, depth), -1, dtype=np.int32)
    best = np.full(codes.shape, EMPTY, dtype=np.int8)
    of_goldens = []
    for group, golden, (collection, files) in zip(groups, goldens, passages, strict=True):
        known, of_known = _sources(collection, files)
        of_goldens.append(_codes_of(golden.ids, known, of_known)[golden.code])
        for file in group.rankings:
            lists = Lists.of(coded(file), group.run_ids, stage, axes).among_queries()
            places = np.append(_codes_of(lists.part.ids, known, of_known), np.int32(-1))
            taken = places.take(lists.codes(depth).astype(np.intp))
            codes[lists.run, lists.query] = taken
            of_query = np.array(axes.queries(golden.query_ids), dtype=np.int64)
            known_sources = int(of_known.max(initial=-1)) + 1
            best[lists.run, lists.query] = _best_of_source(
                golden, of_goldens[-1], known_sources, positions=of_query, query=lists.query, codes=taken
            )
    facets, depths = zip(*(_by_source(*each) for each in zip(goldens, of_goldens, strict=True)), strict=True)
    return Sourced(codes, best, axes.spread(groups, goldens, facets), axes.spread(groups, goldens, depths))


@lru_cache(maxsize=64)
def any_source(collection: str, files: tuple[str, ...]) -> bool:
    """Return whether any passage of a collection has a source; cached, as files of a store never change."""
    if not files:
        return False
    asked = {"passages": list(files), "collection": collection}
    return bool(ENGINE.cursor().execute(_ANY_SOURCE, asked).fetchall())


@lru_cache(maxsize=16)
def _sources(collection: str, files: tuple[str, ...]) -> tuple[pa.Array, npt.NDArray[np.int32]]:
    """Return the ids of a collection's passages, and a code for each passage's source."""
    ids = pa.array([], type=pa.large_string())
    if not files:
        return ids, np.zeros(0, dtype=np.int32)
    asked = {"passages": list(files), "collection": collection}
    rows = ENGINE.cursor().sql(_SOURCES, params=asked).to_arrow_table()
    source = rows["source"].combine_chunks().dictionary_encode()
    distinct = len(source.dictionary)
    codes = source.indices.fill_null(-1).to_numpy().astype(np.int32)
    alone = np.flatnonzero(codes < 0)
    codes[alone] = distinct + alone
    return rows["passage_id"].cast(pa.large_string()).combine_chunks(), codes


def _codes_of(ids: pa.Array, known: pa.Array, of_known: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return a code for the source of each passage.

    A passage that the collection lacks counts as having a separate source.
    """
    place = found_in([ids], known)[0]
    first = int(of_known.max(initial=-1)) + 1
    codes = np.arange(first, first + len(place), dtype=np.int32)
    held = place < len(known)
    codes[held] = of_known[place[held]]
    return codes


def _best_of_source(
    golden: JudgementLists,
    source: npt.NDArray[np.int32],
    known: int,
    *,
    positions: Places,
    query: Places,
    codes: npt.NDArray[np.int32],
) -> npt.NDArray[np.int8]:
    """Return the highest grade of any judged passage of each slot's source: int8, shaped as `codes`.

    Args:
        source: The source of every judgement.
        known: Codes below this are sources of the collection; any other passage is unjudged here.
        positions: Positions of the golden set's queries.
        query: The query of each list.
        codes: Sources by list and rank.
    """
    best = np.where(codes < 0, np.int8(EMPTY), np.int8(UNJUDGED))
    table = np.zeros(known + 2, dtype=np.int8)
    table[-1] = EMPTY
    order = np.argsort(query, kind="stable")
    ends = np.searchsorted(query[order], positions, side="right")
    begins = np.searchsorted(query[order], positions, side="left")
    spans = zip(begins, ends, golden.start[:-1], golden.start[1:], strict=True)
    for begin, end, first, last in spans:
        mine, of = order[begin:end], np.minimum(source[first:last], known)
        np.maximum.at(table, of, golden.grade[first:last])
        table[known] = UNJUDGED
        best[mine] = table.take(np.minimum(codes[mine], known).astype(np.intp), mode="wrap")
        table[of] = UNJUDGED
    return best


def _by_source(
    golden: JudgementLists, source: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Count sources of judged passages, query by query: by set of grades, and by number per grade."""
    queries = len(golden.query_ids)
    row, grade = np.repeat(np.arange(queries), np.diff(golden.start)), golden.grade.astype(np.int64)
    bits = np.left_shift(1, grade - 1)
    return sets_by_row(row, source, bits, queries), depths_by_row(row, source, grade, queries)
