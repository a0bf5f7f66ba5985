"""Rankings larger than memory, taken list by list from blocks of rows and put in order on disk.

Lists that are contiguous in the file, as in nearly all files, are cut off and finished block by block. If a
list returns later in the file, all rows are first distributed over files by their list, each small enough
to be ordered in memory. The result, and the notes on it, equal those of `ordering.ordered`.

DuckDB, staged and bounded as in the store, was tried instead (8 million rows, 2 cores, 2026-11): 15.3 against
4.7 s of processor time and 1.05 against 0.39 GiB if lists are contiguous; 13.7 against 31.5 s and 1.06
against 0.75 GiB if every list is scattered over the file, which is rare.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from core.errors import InputError
from core.importers.read import ordering
from core.importers.read.member import current
from core.importers.read.ordering import TieOrder
from core.importers.read.text import place
from core.tables import Pieces

_COLUMNS = [*ordering.KEY, "passage_id", "rank", "score", "line"]
_LONGEST = 10_000_000  # Rows of the longest list that is ordered in memory
_TOGETHER, _SHARE = 4, 2_000_000
"""Chunks that are distributed at a time, and rows of each file that they are distributed to."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """Rankings in order on disk: as `Ordered`, but the rows wait in a spool."""

    rows: Pieces
    rules: dict[str, str]
    notes: tuple[str, ...]
    repeats: ordering.Repeats
    spool: Spool


@dataclass(frozen=True, slots=True)
class _Chunk:
    paths: tuple[Path, ...]  # the files
    rows: int  # how many rows they hold
    lists: npt.NDArray[np.uint64]  # hash of each list that has rows here
    counted: pl.DataFrame | None  # their tally if the lists are in rank order; otherwise None
    against: ordering.RankedAgainst = ordering.NONE  # lists that trec_eval would order differently, if so

    def read(self) -> pl.DataFrame:
        """Return the rows, in the order of the source."""
        return pl.concat([pl.read_parquet(path) for path in self.paths])

    def drop(self) -> None:
        """Remove the files."""
        for path in self.paths:
            path.unlink()


def ordered_blocks(
    blocks: Iterable[pl.DataFrame], name: str, most: int, ties: TieOrder = "file"
) -> ordering.Ordered | Streamed:
    """Rank every row as `ordered` does, for rows that come in blocks."""
    source, held, count = _counted(blocks, ties), deque[pl.DataFrame](), 0
    for block in source:
        held.append(block)
        count += block.height
        if count > most:
            emptying = (held.popleft() for _ in range(len(held)))  # frees memory along the way
            return _streamed(chain(emptying, source), name, ties)
    return ordering.ordered(pl.concat(held, rechunk=True), name, ties)


def _counted(blocks: Iterable[pl.DataFrame], ties: TieOrder) -> Iterator[pl.DataFrame]:
    progress = current()
    for block in blocks:
        if progress is not None:
            progress.more(block.height)
        yield ordering.as_trec_eval(block) if ties == "trec_eval" else block


def _streamed(blocks: Iterator[pl.DataFrame], name: str, ties: TieOrder) -> Streamed:
    spool = Spool()
    try:
        chunks = [_taken(rows, name, spool) for rows in _whole_lists(blocks, name)]
        lists = np.concatenate([chunk.lists for chunk in chunks])
        if np.unique(lists).size < lists.size:
            chunks = _distributed(chunks, spool)
        rules = ordering.decided([_tally(chunk, name) for chunk in chunks], name, ties)
        other = sum((chunk.against for chunk in chunks), ordering.NONE)
        if (rules["rule"] != "rank").any() or any(chunk.counted is None for chunk in chunks):
            chunks, other = _finished(chunks, rules, spool)
    except BaseException:
        spool.close()
        raise
    notes = [*ordering.rule_notes(rules, name), *other.notes(name)]
    rows = Pieces(tuple(pl.scan_parquet(path) for chunk in chunks for path in chunk.paths))
    decided_by = dict(rules.select("run", "rule").iter_rows())
    return Streamed(rows, decided_by, tuple(notes), ordering.repeats(rules, name), spool)


def _whole_lists(blocks: Iterator[pl.DataFrame], name: str) -> Iterator[pl.DataFrame]:
    carried: list[pl.DataFrame] = []
    for block in blocks:
        keys = block.select(ordering.KEY)
        last = zip(ordering.KEY, keys.row(-1), strict=True)
        other = keys.select(other=pl.any_horizontal(pl.col(name) != value for name, value in last))
        before = other["other"].arg_true()
        begin = before[-1] + 1 if len(before) else 0  # where the last row's list begins
        if begin == 0 and carried and carried[-1].select(ordering.KEY).row(-1) == keys.row(0):
            carried.append(block)
            if sum(part.height for part in carried) > _LONGEST:
                problem = f"A ranking of more than {_LONGEST:,} passages."
                raise InputError(problem, where=place(name, carried[0]["line"][0]))
            continue
        ready = [*carried, block[:begin]]
        carried = [block[begin:]]
        if any(part.height for part in ready):
            yield pl.concat(ready, rechunk=True)
    if carried:
        yield pl.concat(carried, rechunk=True)


def _taken(rows: pl.DataFrame, name: str, spool: Spool) -> _Chunk:
    """Store a chunk; lists in rank order need nothing more."""
    stands = ordering.as_it_stands(rows, name)
    if stands is None:
        lists = rows.select(pl.struct(ordering.KEY).hash()).to_series().unique().to_numpy()
        return _Chunk((spool.add(rows.select(_COLUMNS)),), rows.height, lists, None)
    rows = stands.rows.select(_COLUMNS).with_columns(pl.col("rank").cast(pl.Int64))
    firsts = rows.filter(pl.col("rank") == 1)
    counted = rows.group_by("run").agg(
        pl.len().alias("ranked"),
        (pl.col("score").null_count() == 0).alias("scored"),
        pl.lit(0, pl.UInt32).alias("bad"),
        (pl.col("rank") == 1).sum().alias("queries"),
        pl.lit(None, pl.Int64).alias("line"),
        pl.lit(0).alias("again"),
        pl.lit(None, pl.Int64).alias("again_at"),
    )
    lists = firsts.select(pl.struct(ordering.KEY).hash()).to_series().to_numpy()
    return _Chunk((spool.add(rows),), rows.height, lists, counted, ordering.against(rows))


def _tally(chunk: _Chunk, name: str) -> pl.DataFrame:
    counted = ordering.tally(chunk.read(), name) if chunk.counted is None else chunk.counted
    whole = pl.col("ranked", "bad", "queries", "line", "again", "again_at").cast(pl.Int64)
    return counted.select("run", whole, "scored")


def _distributed(chunks: Sequence[_Chunk], spool: Spool) -> list[_Chunk]:
    """Redistribute the rows so that every list is whole in one chunk."""
    shares = sum(chunk.rows for chunk in chunks) // _SHARE + 1
    paths: list[list[Path]] = [[] for _ in range(shares)]
    counts = [0] * shares
    for begin in range(0, len(chunks), _TOGETHER):
        some = chunks[begin : begin + _TOGETHER]
        share = (pl.struct(ordering.KEY).hash() % shares).alias("share")
        together = pl.concat([chunk.read() for chunk in some]).with_columns(share)
        for (number,), rows in together.partition_by("share", as_dict=True, include_key=False).items():
            paths[int(number)].append(spool.add(rows))
            counts[int(number)] += rows.height
        for chunk in some:
            chunk.drop()
    none = np.empty(0, dtype=np.uint64)
    return [
        _Chunk(tuple(files), count, none, None) for files, count in zip(paths, counts, strict=True) if files
    ]


def _finished(
    chunks: Sequence[_Chunk], rules: pl.DataFrame, spool: Spool
) -> tuple[list[_Chunk], ordering.RankedAgainst]:
    """Return the chunks with ranks by the rules, and what trec_eval would order differently."""
    other, finished = ordering.NONE, []
    for chunk in chunks:
        done = ordering.put_in_order(chunk.read(), rules)
        other += ordering.against(done.filter(pl.col("rule") == "rank"))
        path = spool.add(done.select(_COLUMNS))
        finished.append(_Chunk((path,), chunk.rows, chunk.lists, None))
        chunk.drop()
    return finished, other


class Spool:
    """A temporary folder of Parquet files, removed when nothing refers to it any more."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="clq-import-"))
        self._made = 0
        self._gone = weakref.finalize(self, shutil.rmtree, str(self.path), ignore_errors=True)

    def add(self, rows: pl.DataFrame) -> Path:
        """Write rows to a separate file."""
        path = self.path / f"{self._made:08d}.parquet"
        self._made += 1
        rows.write_parquet(path, compression="lz4", statistics=False)
        return path

    def close(self) -> None:
        """Remove the folder now."""
        self._gone()
