"""The sources (documents) of ranked and of judged passages, for measures that discount repeated ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from core.metrics.info import sets_by_row
from core.store.engine import ENGINE
from core.store.read.codes import coded, found_in
from core.store.read.lists import Axes, Judged, Judges, Lists, judged
from core.store.read.memory import Memory

_SOURCES = """
SELECT passage_id, source FROM read_parquet($passages) WHERE collection_id = $collection ORDER BY passage_id
"""
_ANY_SOURCE = """
SELECT 1 FROM read_parquet($passages) WHERE collection_id = $collection AND source IS NOT NULL LIMIT 1
"""


@dataclass(frozen=True, slots=True, eq=False)
class Sourced:
    """Sources beside the grades of the same runs, stage and golden set."""

    # int32 [runs, queries, depth], equal where two passages of a collection have the same source; -1 for an
    # empty slot. A passage without a source has a code of its own.
    codes: npt.NDArray[np.int32]
    # int64 [queries, 32] (or [runs, queries, 32], as `Graded.pool_counts`), how many sources have judged
    # passages with exactly a set of grades; bit g − 1 of the set stands for grade g
    facets: npt.NDArray[np.int64]


_MEMORY = Memory(128 * 2**20)


def join(
    groups: Sequence[Judges],
    passages: Sequence[tuple[str, tuple[str, ...]]],
    *,
    run_ids: Sequence[str],
    stage: str,
    depth: int,
) -> Sourced:
    """Join rankings and judgements with the sources of their passages."""
    key = (tuple(groups), tuple(passages), tuple(run_ids), stage, depth)
    return _MEMORY.once(
        key,
        lambda: _join(groups, passages, tuple(run_ids), stage, depth),
        lambda made: made.codes.nbytes + made.facets.nbytes,
    )


def _join(
    groups: Sequence[Judges],
    passages: Sequence[tuple[str, tuple[str, ...]]],
    run_ids: tuple[str, ...],
    stage: str,
    depth: int,
) -> Sourced:
    goldens = [judged(group.golden_set_id, group.judgements) for group in groups]
    axes = Axes.of(run_ids, goldens)
    codes = np.full((*axes.shape, depth), -1, dtype=np.int32)
    facets = []
    for group, golden, (collection, files) in zip(groups, goldens, passages, strict=True):
        known, of_known = _sources(collection, files)
        facets.append(_facets(golden, _codes_of(golden.ids, known, of_known)))
        for file in group.rankings:
            lists = Lists.of(coded(file), group.run_ids, stage, axes).among_queries()
            places = np.append(_codes_of(lists.part.ids, known, of_known), np.int32(-1))
            codes[lists.run, lists.query] = places.take(lists.codes(depth).astype(np.intp))
    return Sourced(codes, axes.spread(groups, goldens, facets))


@lru_cache(maxsize=64)
def any_source(collection: str, files: tuple[str, ...]) -> bool:
    """Whether any passage of a collection has a source; kept, for files of a store never change."""
    if not files:
        return False
    asked = {"passages": list(files), "collection": collection}
    return bool(ENGINE.cursor().execute(_ANY_SOURCE, asked).fetchall())


@lru_cache(maxsize=16)
def _sources(collection: str, files: tuple[str, ...]) -> tuple[pa.Array, npt.NDArray[np.int32]]:
    """Ids of the passages of a collection, and a code for the source of each."""
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
    """A code for the source of each passage; one that the collection does not hold is a source of its own."""
    place = found_in([ids], known)[0]
    first = int(of_known.max(initial=-1)) + 1
    codes = np.arange(first, first + len(place), dtype=np.int32)
    held = place < len(known)
    codes[held] = of_known[place[held]]
    return codes


def _facets(golden: Judged, source: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    queries = len(golden.query_ids)
    row = np.repeat(np.arange(queries), np.diff(golden.start))
    bits = np.left_shift(1, golden.grade.astype(np.int64) - 1)
    return sets_by_row(row, source[golden.code], bits, queries)
