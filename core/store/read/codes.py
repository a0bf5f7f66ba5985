"""Rows of a part as integers, so that a join compares each text once and not once per row.

Beside the Parquet file of rankings or judgements lies a small Arrow file of the same rows: the distinct
passage ids, and for each row the index of its passage among them; the rows of a query are adjacent and form
a list. Joining two parts then takes one look-up per distinct id; what remains is picking integers. Codes are
indices into the part's own list of ids: nothing is hashed, so nothing can collide, and no part depends on
another one. A part of an earlier release, which has no such file, is coded when it is read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.files import replacing
from core.store.engine import ENGINE, FAULTS
from core.store.seals import Sealed, checksum, sound, verify

_STEP = 500_000  # Rows that are coded at a time
_SHARE = 4  # Hashes wait unmerged until they are more than this fraction (one in so many) of the merged

_Hashes = npt.NDArray[np.uint64]
CODED = ("rankings", "judgements")  # Tables that are joined by passage
SUFFIX = ".codes.arrow"
STAGES = ("final", "pool")
_AT_ONCE = 5_000_000  # Rows of a part that are coded in memory
_VERSION = b"1"
_INTEGERS = {
    "owner": pa.int32(),
    "query": pa.int32(),
    "stage": pa.int8(),
    "start": pa.int64(),
    "code": pa.int32(),
    "rank": pa.int32(),
    "grade": pa.int8(),
    "raw": pa.int16(),
}
# Rows of a part are sorted by these columns, so that lists in this order cover the rows one after the other.
_LISTS = """
SELECT run_id AS owner, query_id AS query, stage, count(*) AS rows, max(rank) AS deepest
FROM read_parquet($part) GROUP BY ALL ORDER BY run_id, stage, query_id
"""
_JUDGED_LISTS = """
SELECT golden_set_id AS owner, query_id AS query, 'final' AS stage, count(*) AS rows, count(*) AS deepest
FROM read_parquet($part) GROUP BY golden_set_id, query_id ORDER BY golden_set_id, query_id
"""


def coded_column(part: Path, column: str) -> tuple[npt.NDArray[np.int32], pa.Array] | None:
    """Code a column of ids."""
    ids, hashes = _distinct(part, column)
    order = np.argsort(hashes).astype(np.int32)
    hashes = hashes[order]
    rows = pq.read_metadata(part).num_rows
    with tempfile.TemporaryFile() as kept:
        for texts in _batches(part, column):
            code = order[np.searchsorted(hashes, _hashes(texts))]
            if not pc.all(pc.equal(ids.take(pa.array(code)), texts)).as_py():
                return None
            kept.write(code.tobytes())
        kept.flush()
        pa.default_memory_pool().release_unused()  # 250 MB that the batches took
        return np.memmap(kept, dtype=np.int32, mode="r", shape=(rows,)), ids


def _distinct(part: Path, column: str) -> tuple[pa.Array, _Hashes]:
    """Return the ids of different hashes in order of first appearance, and their hashes."""
    texts, hashes = [], []
    known = recent = np.empty(0, dtype=np.uint64)
    for batch in _batches(part, column):
        distinct, first = np.unique(_hashes(batch), return_index=True)
        new = ~(_held(distinct, known) | _held(distinct, recent))
        if not new.any():
            continue
        first = np.sort(first[new])
        texts.append(batch.take(pa.array(first)))
        hashes.append(_hashes(texts[-1]))
        recent = _merged(recent, distinct[new])
        if recent.size * _SHARE > known.size:
            known, recent = _merged(known, recent), recent[:0]
    return pa.concat_arrays(texts), np.concatenate(hashes)


def _held(hashes: _Hashes, known: _Hashes) -> npt.NDArray[np.bool_]:
    """Return which of some hashes are among other, sorted ones."""
    if not known.size:
        return np.zeros(hashes.size, dtype=np.bool_)
    places = np.minimum(np.searchsorted(known, hashes), known.size - 1)
    return np.equal(known[places], hashes)


def _merged(one: _Hashes, other: _Hashes) -> _Hashes:
    return np.sort(np.concatenate([one, other]), kind="stable")


def _batches(part: Path, column: str) -> Iterator[pa.Array]:
    with pq.ParquetFile(part) as file:
        for batch in file.iter_batches(_STEP, columns=[column]):
            yield batch.column(0).cast(pa.large_string())


def _hashes(texts: pa.Array) -> _Hashes:
    return pl.Series(texts).hash().to_numpy()


@dataclass(frozen=True, slots=True)
class Coded:
    """A part as integers; a list is the rows of one owner, stage and query."""

    ids: pa.Array  # distinct passage ids (Arrow large_string)
    owners: tuple[str, ...]  # distinct run ids or golden set ids
    queries: tuple[str, ...]  # distinct query ids
    owner: npt.NDArray[np.int32]  # int32 [lists], index into `owners`
    query: npt.NDArray[np.int32]  # int32 [lists], index into `queries`
    stage: npt.NDArray[np.int8]  # int8 [lists], index into `STAGES`; 0 for judgements
    start: npt.NDArray[np.int64]  # int64 [lists + 1], first row of each list
    code: npt.NDArray[np.int32]  # int32 [rows], index into `ids`
    # int32 [rows]; None for judgements, and if the ranks of every list count 1, 2, 3…
    rank: npt.NDArray[np.int32] | None = None
    grade: npt.NDArray[np.int8] | None = None  # int8 [rows] for judgements
    # int16 [rows] for judgements: the original grade, or the stored grade if that is unknown
    raw: npt.NDArray[np.int16] | None = None

    @property
    def length(self) -> npt.NDArray[np.int64]:
        """int64 [lists], rows of each list."""
        return np.diff(self.start)


class Filed(NamedTuple):
    """A part of rankings or judgements."""

    part: Sealed  # the Parquet file
    codes: Sealed | None  # the file of its codes; None if an earlier release wrote the part


def path_of(part: Path) -> Path:
    """Return the path of a part's codes."""
    return part.with_suffix(SUFFIX)


def encode(part: Path, cursor: duckdb.DuckDBPyConnection | None = None) -> Coded:
    """Code the rows of a Parquet file of rankings or judgements, which are sorted as `RULES` says."""
    ranked = part.stem.partition("-")[0] == "rankings"
    query = _LISTS if ranked else _JUDGED_LISTS
    cursor = cursor or ENGINE.cursor()
    lists = cursor.sql(query, params={"part": str(part)}).to_arrow_table()
    owner, owners = _coded(lists["owner"])
    of_query, queries = _coded(lists["query"])
    code, ids = _passages(part)
    coded = Coded(
        ids=ids,
        owners=tuple(owners.to_pylist()),
        queries=tuple(queries.to_pylist()),
        owner=owner,
        query=of_query,
        stage=pc.index_in(lists["stage"], value_set=pa.array(STAGES)).to_numpy().astype(np.int8),
        start=np.concatenate([[0], np.cumsum(lists["rows"].to_numpy())]),
        code=code,
    )
    if not ranked:
        grade, raw = _column(part, "grade"), _column(part, "raw")
        raw = pc.coalesce(raw, grade.cast(pa.int16()))
        return replace(coded, grade=grade.to_numpy(), raw=raw.to_numpy())
    # Ranks are distinct and begin at 1, so there are no gaps if the deepest rank equals their number.
    whole = np.array_equal(lists["deepest"].to_numpy(), lists["rows"].to_numpy())
    return coded if whole else replace(coded, rank=_column(part, "rank").to_numpy())


def _passages(part: Path) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """Return the passage of every row as a code, and the distinct ids."""
    rows = pq.read_metadata(part).num_rows
    if rows <= _AT_ONCE:
        return _coded(_column(part, "passage_id"))
    return coded_column(part, "passage_id") or _coded(_column(part, "passage_id"))


def _coded(texts: pa.ChunkedArray) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """Return texts as codes, and the distinct texts in order of first appearance."""
    encoded = texts.cast(pa.large_string()).combine_chunks().dictionary_encode()
    return encoded.indices.to_numpy(), encoded.dictionary


def _column(part: Path, column: str) -> pa.ChunkedArray:
    return pq.read_table(part, columns=[column])[column]


def write(part: Path, cursor: duckdb.DuckDBPyConnection | None = None) -> Path:
    """Write the codes of a part beside it and return their path; arguments as in `encode`."""
    return _save(encode(part, cursor), path_of(part))


def _save(coded: Coded, target: Path) -> Path:
    columns: dict[str, pa.Array] = {
        "ids": _one(coded.ids),
        "owners": _one(pa.array(coded.owners, type=pa.large_string())),
        "queries": _one(pa.array(coded.queries, type=pa.large_string())),
    }
    for name, kind in _INTEGERS.items():
        values = getattr(coded, name)
        if values is not None:
            columns[name] = _one(pa.array(values, type=kind))
    table = pa.table(columns).replace_schema_metadata({b"version": _VERSION})
    with pa.OSFile(str(target), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return target


def _one(values: pa.Array) -> pa.Array:
    """Return an array as the single cell of a column, which Arrow memory-maps in place."""
    return pa.LargeListArray.from_arrays(pa.array([0, len(values)], type=pa.int64()), values)


@lru_cache(maxsize=512)
def coded(filed: Filed) -> Coded:
    """Return a part's codes, memory-mapped from their file, or made from the part if that is unsound.

    The result is cached, because files of a store never change. Arrow follows the offsets in a file wherever
    they lead, so only a file that still has its original checksum is mapped.
    """
    if filed.codes is not None and sound(filed.codes):
        return _mapped(filed.codes.path)
    verify([filed.part])
    part = Path(filed.part.path)
    codes = encode(part)
    if filed.codes is not None:
        with suppress(*FAULTS):  # a store that cannot be written can still be read
            renew(part, codes, only=filed.codes.checksum)
    return codes


def _mapped(path: str) -> Coded:
    with pa.memory_map(path) as source:
        table = pa.ipc.open_file(source).read_all()
    held = {name: table[name].chunk(0).values for name in table.column_names}
    numbers = {name: held[name].to_numpy(zero_copy_only=True) for name in _INTEGERS if name in held}
    return Coded(
        ids=held["ids"],
        owners=tuple(held["owners"].to_pylist()),
        queries=tuple(held["queries"].to_pylist()),
        **numbers,
    )


def renew(part: Path, codes: Coded, *, only: str = "") -> None:
    """Replace the file of a part's codes atomically, because another process may have mapped it."""
    with replacing(path_of(part)) as draft:
        _save(codes, draft)
        if only not in ("", checksum(draft)):
            draft.unlink()


def found_in(ids: Sequence[pa.Array], known: pa.Array) -> list[npt.NDArray[np.int32]]:
    """Return the index of every id of some parts in a list of ids; its length if the id is absent."""
    together = pa.chunked_array(list(ids), type=pa.large_string())
    places = pc.index_in(together, value_set=known).fill_null(len(known)).to_numpy()
    return np.split(places, np.cumsum([len(part) for part in ids])[:-1])
