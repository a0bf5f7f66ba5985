"""Tables larger than memory (CSV, TSV, JSONL), read in blocks of whole records."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import polars as pl

from core.errors import InputError
from core.importers.read.piece import Piece, sound
from core.importers.read.tabular import Table, read_text
from core.importers.read.text import Block, blocks, place

_PACKED = (b"\x1f\x8b", b"\x04\x22")
_UNFOLDS = 8  # How many times its size a packed table is taken to unfold to


def is_large(piece: Piece) -> bool:
    """Whether a table is too large to be read at once."""
    with sound(piece.name), piece.opener() as stored:
        packed = stored.read(2) in _PACKED
    return piece.size * (_UNFOLDS if packed else 1) > piece.limits.table_bytes


def read_blocks(piece: Piece, kind: str) -> Iterator[Table]:
    """Read a table block by block."""
    head, ahead = b"", 0
    for block in blocks(piece) if kind == "jsonl" else _records(piece):
        data = block.data
        if kind != "jsonl" and not head:
            head, _, data = data.partition(b"\n")
            head, ahead = head + b"\n", 1
        if not data.strip():
            continue
        # Of the block as a file of its own, with the header before it, line 1 is this line of the file:
        shift = block.first_line - 1 if not head else block.first_line + ahead - 2
        ahead = 0
        try:
            table = read_text(piece, head + data, kind)
        except InputError as error:
            raise _moved(error, piece.name, shift) from error
        yield Table(table.name, table.rows, table.lines + shift)


def _records(piece: Piece) -> Iterator[Block]:
    """Blocks that end where a record ends: not within a quoted cell that holds line breaks."""
    rest, first = b"", 0
    for block in blocks(piece):
        data, first = rest + block.data, first or block.first_line
        cut = _last_record(data)
        if len(data) - cut > piece.limits.line_bytes:
            found = f"A record is longer than {piece.limits.line_bytes:,} bytes."
            where = place(piece.name, first + data.count(b"\n", 0, cut))
            raise InputError(found, where=where, do="Check its quotes.")
        if cut:
            yield Block(data[:cut], first)
            first += data.count(b"\n", 0, cut)
        rest = data[cut:]
    if rest:
        yield Block(rest, first)


def _last_record(data: bytes) -> int:
    """Where the last record that is whole ends; 0 if there is none."""
    if data.count(b'"') % 2 == 0:
        return len(data)
    text = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    outside = ends[np.searchsorted(np.flatnonzero(text == ord('"')), ends) % 2 == 0]
    return int(outside[-1]) + 1 if outside.size else 0


def _moved(error: InputError, name: str, shift: int) -> InputError:
    """The error with the line of the file instead of that of the block."""
    found = re.fullmatch(re.escape(name) + r":(\d+)(.*)", error.where, flags=re.DOTALL)
    if found is None:
        return error
    return InputError(error.found, where=f"{name}:{int(found[1]) + shift}{found[2]}", do=error.do)


def without_repeats(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows that differ in more than their line; of equal ones the first."""
    return rows.unique([name for name in rows.columns if name != "line"], keep="first", maintain_order=True)
