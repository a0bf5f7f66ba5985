"""JSON lines with known fields as a frame, without a Python loop where the file is as it should be."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

import polars as pl

from core.errors import InputError
from core.importers.read.jsons import MOST_BYTES, json_rows, too_large
from core.importers.read.piece import Piece
from core.importers.read.tabular import READ_ERRORS, json_lines
from core.importers.read.text import blocks, place, shown

_MOST_BYTES = 4 * MOST_BYTES
"""Largest file; of its fields only those that are wanted are held."""


def read_lines(piece: Piece, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Some fields of a file of JSON lines."""
    parts = [pl.DataFrame(schema={**schema, "line": pl.Int64()})]
    read = 0
    try:
        for block in blocks(piece):
            read += len(block.data)
            if read > _MOST_BYTES:
                raise too_large(piece, _MOST_BYTES)
            lines = json_lines(block.data, block.first_line)
            if not len(lines):
                continue
            if b"NaN" in block.data or b"\\ud" in block.data or b"\\uD" in block.data:
                return _slowly(piece, schema)
            rows = pl.read_ndjson(block.data, schema=dict(schema))
            if rows.height != len(lines):
                return _slowly(piece, schema)
            parts.append(rows.select(list(schema)).with_columns(lines))
    except READ_ERRORS:
        return _slowly(piece, schema)
    return pl.concat(parts)


def _slowly(piece: Piece, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Line by line: for files with NaN, and to say which line is wrong."""
    parts = [pl.DataFrame(schema={**schema, "line": pl.Int64()})]
    for number, row in json_rows(piece):
        held = {name: _plain(row.get(name)) for name in schema}
        try:
            one = pl.read_ndjson(json.dumps(held, allow_nan=False).encode(), schema=dict(schema))
        except (*READ_ERRORS, ValueError) as error:
            found = f"A field of the line is of another type: {shown(error, 120)}."
            raise InputError(found, where=place(piece.name, number)) from error
        parts.append(one.select(list(schema)).with_columns(pl.lit(number, pl.Int64).alias("line")))
    return pl.concat(parts)


def _plain(value: object) -> object:
    """NaN as null, at any depth."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value
