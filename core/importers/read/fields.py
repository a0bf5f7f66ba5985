"""Lines of blank-separated fields into a frame, without a Python loop over the lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from core.errors import InputError
from core.importers.read.piece import Piece
from core.importers.read.text import Block, blocks, place, quoted

_SPACE = np.zeros(256, dtype=bool)
_SPACE[[9, 11, 12, 13, 32]] = True
_NEWLINE, _TAB, _HASH = 10, 9, ord("#")


@dataclass(frozen=True, slots=True)
class Fields:
    """What a file of fields held."""

    rows: pl.DataFrame  # one text column for each wanted field, and `line`
    comments: int  # lines that begin with ``#``
    longer: int  # lines with more fields than wanted, and the first of them
    first_longer: int  # its line; 0 if there is none


def read_fields(piece: Piece, columns: Sequence[str], short: str) -> Fields:
    """Read a file of fields separated by any number of blanks or tabs; blank lines do not count."""
    parts = list(field_blocks(piece, columns, short))
    return Fields(
        pl.concat([part.rows for part in parts], rechunk=True),
        sum(part.comments for part in parts),
        sum(part.longer for part in parts),
        next((part.first_longer for part in parts if part.longer), 0),
    )


def field_blocks(piece: Piece, columns: Sequence[str], short: str) -> Iterator[Fields]:
    """Read a file as `read_fields` does, block by block; arguments and errors as there."""
    any_data = False
    for block in blocks(piece):
        part = _block(piece, block, columns, short)
        any_data |= part.rows.height > 0
        if part.rows.height or part.comments:
            yield part
    if not any_data:
        raise InputError("The file holds no lines of data.", where=piece.name)


def _block(piece: Piece, block: Block, columns: Sequence[str], short: str) -> Fields:
    data = block.data if block.data.endswith(b"\n") else block.data + b"\n"
    rows = _regular(data, columns)
    if rows is None:
        return _irregular(piece, data, block.first_line, columns, short)
    first = block.first_line
    rows = rows.with_columns(pl.int_range(first, first + pl.len(), dtype=pl.Int64).alias("line"))
    if len(data) > piece.limits.cell_bytes:
        _refuse_long(piece, rows, columns)
    return Fields(rows, 0, 0, 0)


def _regular(data: bytes, columns: Sequence[str]) -> pl.DataFrame | None:
    """Read a block whose every line is the wanted fields between single blanks, or between single tabs.

    Most files are like this, and need nothing but counting and searching to be known so.
    """
    text = np.frombuffer(data, dtype=np.uint8)
    ends = text == _NEWLINE
    lines = int(np.count_nonzero(ends))
    for mark, others in ((b" ", b"\t\r\v\f"), (b"\t", b" \r\v\f")):
        marks = text == mark[0]
        if np.count_nonzero(marks) != lines * (len(columns) - 1) or any(each in data for each in others):
            continue
        marks |= ends
        # Two of them side by side are an empty field, an empty line, or blanks around a line.
        if marks[0] or (marks[1:] & marks[:-1]).any() or data[0] == _HASH or b"\n#" in data:
            return None
        rows = _parse(data, columns, mark.decode())
        # As many separators as lines need: a line with too many stands against one with too few.
        fits = rows.height == lines and not rows[columns[-1]].null_count()
        return rows if fits else None
    return None


def _irregular(piece: Piece, data: bytes, first_line: int, columns: Sequence[str], short: str) -> Fields:
    """Read a block of any fields, blanks and tabs, comments and blank lines."""
    text = np.frombuffer(data, dtype=np.uint8)
    newline = text == _NEWLINE
    token = ~(_SPACE[text] | newline)
    before = np.concatenate(([False], token[:-1]))
    ends = np.flatnonzero(newline)
    starts = np.concatenate(([0], ends[:-1] + 1))
    counts = np.add.reduceat((token & ~before).astype(np.int32), starts)
    comment = text[starts] == _HASH
    wanted = (counts > 0) & ~comment
    few = np.flatnonzero(wanted & (counts < len(columns)))
    if few.size:
        line = data[starts[few[0]] : ends[few[0]]].decode()
        where = place(piece.name, first_line + int(few[0]))
        found = f"{short.format(n=int(counts[few[0]]))} The line reads {quoted(line)}."
        raise InputError(found, where=where)
    # One tab after each field, none before: polars then reads a plain tab-separated text.
    kept = token | newline | before
    kept &= np.repeat(wanted, ends - starts + 1)
    tidy = np.where(token | newline, text, np.uint8(_TAB))[kept].tobytes()
    lines = np.flatnonzero(wanted)
    longer = np.flatnonzero(wanted & (counts > len(columns)))
    rows = _parse(tidy, columns).with_columns(pl.Series("line", (lines + first_line).astype(np.int64)))
    _refuse_long(piece, rows, columns)
    first = int(longer[0]) + first_line if longer.size else 0
    return Fields(rows, int(comment.sum()), int(longer.size), first)


def _parse(tidy: bytes, columns: Sequence[str], separator: str = "\t") -> pl.DataFrame:
    schema = dict.fromkeys(columns, pl.String)
    if not tidy:
        return pl.DataFrame(schema=schema)
    return pl.read_csv(
        tidy,
        separator=separator,
        has_header=False,
        quote_char=None,
        schema=schema,
        truncate_ragged_lines=True,
        extra_columns="ignore",
    )


def _refuse_long(piece: Piece, rows: pl.DataFrame, columns: Sequence[str]) -> None:
    for column in columns:
        long = rows.filter(pl.col(column).str.len_bytes() > piece.limits.cell_bytes)
        if long.height:
            raise InputError(
                f"A field is longer than {piece.limits.cell_bytes:,} bytes.",
                where=place(piece.name, long["line"][0], column),
            )
