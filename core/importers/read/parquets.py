"""Reads Parquet files in a separate process with limits, so that a hostile file cannot end the server.

It runs as a script that takes one request per line (`_answered`) and answers each with a line, both JSON. It
imports nothing of this project, so that it starts at once.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import polars as pl
from pyarrow import parquet

_VIEW, _NUMBER = 16, 8  # Bytes that a text takes in memory beside its own, and bytes of a number


def _answered(file: str, into: str | None, rows: int | None, columns: int, most: int) -> dict[str, Any]:
    """Return the size that a file claims, and write its rows as an Arrow file unless there are too many.

    Args:
        into: Path of the Arrow file, or None.
        rows: Only this many first rows.
        columns: The most columns to read.
        most: The most rows × columns, values of lists, and bytes in memory.

    Returns:
        columns: their names; height: number of rows; values: number in all lists; bytes: memory that the read
        rows take, or 0.
    """
    names = list(pl.read_parquet_schema(file))
    height, values = _claimed(file)
    said = {"columns": names, "height": height, "values": values, "bytes": 0}
    few = len(names) <= columns and height * max(len(names), 1) <= most and values * _VIEW <= most
    if into is None or not few:
        return said
    frame = pl.read_parquet(file, n_rows=rows, glob=False, hive_partitioning=False)
    taken = _bytes(frame.get_columns())
    if taken <= most:
        frame.write_ipc(into)
    return {**said, "bytes": taken}


def _claimed(file: str) -> tuple[int, int]:
    """Return the row count and the number of list values recorded in the Parquet footer."""
    with parquet.ParquetFile(file) as opened:
        footer = opened.metadata
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        lists = [at for at in range(footer.num_columns) if footer.schema.column(at).max_repetition_level]
        rows = max(footer.num_rows, sum(group.num_rows for group in groups))
        return rows, sum(group.column(at).num_values for group in groups for at in lists)


def _bytes(columns: Sequence[pl.Series]) -> int:
    """Return how many bytes columns take if every text is stored separately.

    A file may store one text for all.
    """
    total = 0
    for column in columns:
        match column.dtype:
            case pl.String | pl.Binary:
                sizes = column.str.len_bytes() if column.dtype == pl.String else column.bin.size()
                total += _VIEW * len(column) + int(sizes.cast(pl.Int64).sum())
            case pl.List() | pl.Array():
                total += _NUMBER * len(column) + _bytes([column.explode()])
            case pl.Struct():
                total += _bytes(column.struct.unnest().get_columns())
            case _:
                total += _NUMBER * len(column)
    return total


def main() -> None:
    """Answer requests until there are no more; a request that fails is answered with ``error``."""
    for line in sys.stdin:
        try:
            said = _answered(**json.loads(line))
        except (Exception, pl.exceptions.PanicException) as error:
            said = {"error": str(error).split("\n")[0] or type(error).__name__}
        sys.stdout.write(f"{json.dumps(said)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
