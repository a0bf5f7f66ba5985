"""Rows on their way into parts: on disk with the declared types, cut into lots of whole owners.

A part is verified as a whole before a row of it is read. So a large run has one of its own, and reading it
touches no other's; small ones share a part, for a file each would cost more than it saves. What is checked
and sorted is one lot at a time: memory and time of an import do not grow faster than its rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

from core.errors import InputError
from core.store.rules import RULES, conform
from core.tables import TABLES, Frame, Pieces

ALONE, TOGETHER = 1 << 18, 1 << 21
"""Rows from which on an owner has a part of its own; rows that smaller ones share a part up to."""
_AT_ONCE = 1 << 19


def stage(table: str, rows: Frame, folder: Path) -> list[Path]:
    """Write rows to a file per lot, named as the part will be; all rows of an owner are in one."""
    whole = folder / f"{table}.staged"
    try:
        if isinstance(rows, Pieces):
            pieces = [conform(table, piece) for piece in rows.frames]
        else:
            conform(table, rows).sink_parquet(whole, compression="lz4")
            height = pq.read_metadata(whole).num_rows
            if height <= ALONE:
                return [whole]
            pieces = [pl.scan_parquet(whole).slice(at, _AT_ONCE) for at in range(0, height, _AT_ONCE)]
        owner = RULES[table].owner
        counts = pl.concat(pieces).group_by(owner).len().sort(owner, nulls_last=True).collect()
        lots = _lots(counts["len"].to_list())
        if whole.exists() and not any(lots):
            return [whole]
        files = _spread(table, pieces, dict(zip(counts[owner], lots, strict=True)), folder)
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"The rows cannot be used: {error}", where=table, do="Nothing was written."
        ) from error
    whole.unlink(missing_ok=True)
    return files


def _lots(counts: Sequence[int]) -> list[int]:
    """The lot of each owner: large ones are alone."""
    lots, lot, held = [], -1, TOGETHER
    for count in counts:
        if count >= ALONE or held + count > TOGETHER:
            lot, held = lot + 1, 0
        lots.append(lot)
        held = TOGETHER if count >= ALONE else held + count
    return lots


def _spread(
    table: str, pieces: Sequence[pl.LazyFrame], lots: Mapping[str | None, int], folder: Path
) -> list[Path]:
    """Write each piece to the files of its owners' lots, one after the other."""
    level, owner, several = pl.CompatLevel.oldest(), RULES[table].owner, max(lots.values(), default=0) > 0
    schema = pl.DataFrame(schema=TABLES[table]).to_arrow(compat_level=level).schema
    writers: dict[int, pq.ParquetWriter] = {}
    with ExitStack() as opened:
        for piece in pieces:
            taken = piece.collect().with_columns(
                lot=pl.col(owner).replace_strict(lots, return_dtype=pl.Int32)
            )
            alone = taken["lot"].n_unique() < 2  # as nearly always: files are of one run each
            parted = [taken] if alone else taken.partition_by("lot", maintain_order=False)
            of_lots = {int(rows["lot"][0]): rows.drop("lot") for rows in parted if rows.height}
            for number, rows in of_lots.items():
                if number not in writers:
                    path = folder / (f"{table}-{number:05d}.staged" if several else f"{table}.staged")
                    writers[number] = opened.enter_context(pq.ParquetWriter(path, schema, compression="lz4"))
                writers[number].write_table(rows.to_arrow(compat_level=level))
    return sorted(Path(writer.where) for writer in writers.values())
