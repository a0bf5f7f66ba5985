"""Codes of a column of ids that is larger than memory: its distinct ids, and per row the place of its own.

The column is read twice in batches: once for the distinct ids, told apart by 64-bit hashes, and once for the
codes, where every id is compared with the one that its code names. Two ids of one hash, which would need
billions of ids or ill will, are found there, and the column is then coded in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_STEP = 500_000
"""Rows that are coded at a time."""
_SHARE = 4
"""Hashes wait unmerged until they are one in so many of those before them."""

_Hashes = npt.NDArray[np.uint64]


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
        pa.default_memory_pool().release_unused()  # 250 MB of what batches were read into
        return np.memmap(kept, dtype=np.int32, mode="r", shape=(rows,)), ids


def _distinct(part: Path, column: str) -> tuple[pa.Array, _Hashes]:
    """The ids of different hashes in order of first appearance, and their hashes."""
    texts, hashes = [], []
    known = recent = np.empty(0, dtype=np.uint64)
    for batch in _batches(part, column):
        found, first = np.unique(_hashes(batch), return_index=True)
        new = ~(_held(found, known) | _held(found, recent))
        if not new.any():
            continue
        first = np.sort(first[new])
        texts.append(batch.take(pa.array(first)))
        hashes.append(_hashes(texts[-1]))
        recent = _merged(recent, found[new])
        if recent.size * _SHARE > known.size:
            known, recent = _merged(known, recent), recent[:0]
    return pa.concat_arrays(texts), np.concatenate(hashes)


def _held(hashes: _Hashes, known: _Hashes) -> npt.NDArray[np.bool_]:
    """Which of some hashes are among others, which are sorted."""
    if not known.size:
        return np.zeros(hashes.size, dtype=np.bool_)
    places = np.minimum(np.searchsorted(known, hashes), known.size - 1)
    return np.equal(known[places], hashes)


def _merged(one: _Hashes, other: _Hashes) -> _Hashes:
    """Two sorted arrays as one."""
    return np.sort(np.concatenate([one, other]), kind="stable")


def _batches(part: Path, column: str) -> Iterator[pa.Array]:
    with pq.ParquetFile(part) as file:
        for batch in file.iter_batches(_STEP, columns=[column]):
            yield batch.column(0).cast(pa.large_string())


def _hashes(texts: pa.Array) -> _Hashes:
    return pl.Series(texts).hash().to_numpy()
