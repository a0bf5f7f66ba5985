"""Checked rows of foreign tables: the first unusable one is reported with file, line and column.

JSON lines with known fields become a frame, without a Python loop if the file is well-formed.

Lists of texts in one cell are read in JSON, as Python prints them, or as NumPy does.

Tables larger than memory (CSV, TSV, JSONL) are read in blocks of whole records.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl

from core.errors import InputError
from core.importers.read.jsons import MOST_BYTES, json_rows, too_large, without_nan
from core.importers.read.member import Member, sound
from core.importers.read.packing import BEGIN, kind_of_packing
from core.importers.read.tabular import READ_ERRORS, Table, json_lines, read_objects, read_text
from core.importers.read.text import LineBlock, blocks, place, quoted, shown

_MOST_BYTES = 4 * MOST_BYTES  # Largest file; only its wanted fields are held
_WITH_UNIT = re.compile(r"[\d.,]+ ?[^\W\d_]+")
_TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_INTEGERS = re.compile(r"\[[\d\s,]*\d[\d\s,]*\]", re.ASCII)
_BETWEEN = re.compile(r"[\s,]*")
_HALF = re.compile("[\ud800-\udfff]")
_UNFOLDS = 8  # Assumed ratio of a packed table's unpacked size to its size


def read_lines(member: Member, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Return some fields of a file of JSON lines."""
    parts = [pl.DataFrame(schema={**schema, "line": pl.Int64()})]
    read = 0
    try:
        for block in blocks(member):
            read += len(block.data)
            if read > _MOST_BYTES:
                raise too_large(member, _MOST_BYTES)
            lines = json_lines(block.data, block.first_line)
            if not len(lines):
                continue
            if b"NaN" in block.data or b"\\ud" in block.data or b"\\uD" in block.data:
                return _slowly(member, schema)
            rows = read_objects(block.data, schema)
            if rows.height != len(lines):
                return _slowly(member, schema)
            parts.append(rows.select(list(schema)).with_columns(lines))
    except READ_ERRORS:
        return _slowly(member, schema)
    return pl.concat(parts)


def _slowly(member: Member, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Read line by line: for files with NaN, and to find the line with an error."""
    parts = [pl.DataFrame(schema={**schema, "line": pl.Int64()})]
    for number, row in json_rows(member):
        held = {name: without_nan(row.get(name)) for name in schema}
        try:
            one = read_objects(json.dumps(held, allow_nan=False).encode(), schema)
        except (*READ_ERRORS, ValueError) as error:
            problem = f"A field of the line is of another type: {shown(error, 120)}."
            raise InputError(problem, where=place(member.name, number)) from error
        parts.append(one.select(list(schema)).with_columns(pl.lit(number, pl.Int64).alias("line")))
    return pl.concat(parts)


def refuse(
    bad: pl.DataFrame, problem: str, name: str = "", column: str | None = None, *, do: str = ""
) -> None:
    """Refuse rows, if there are any, by the first; ``{cell}`` in `problem` stands for one of its cells.

    The file is the row's own (`file`) if it has one.
    """
    if bad.height:
        row = bad.row(0, named=True)
        cells = {key: quoted(cell) if isinstance(cell, str) else cell for key, cell in row.items()}
        where = place(row.get("file") or name, row.get("line"), column)
        raise InputError(problem.format_map(cells), where=where, do=do)


def again(rows: pl.DataFrame, *key: str) -> pl.DataFrame:
    """Return the rows whose key an earlier row already has."""
    return rows.filter(~pl.struct(key).is_first_distinct())


def identified(rows: pl.DataFrame, name: str, *columns: str) -> pl.DataFrame:
    """Return the rows unchanged; refuse an empty id."""
    for column in columns:
        refuse(rows.filter(pl.col(column).fill_null("") == ""), "The id is empty.", name, column)
    return rows


def numbers(rows: pl.DataFrame, column: str, name: str, *, whole: bool = False) -> pl.Series:
    """Return a text column as numbers; refuse anything else."""
    direct = rows[column].cast(pl.Float64, strict=False)
    if not whole and not direct.null_count() and direct.is_finite().all():
        return direct
    cleaned = rows[column].cast(pl.String).str.strip_chars()
    values = cleaned.cast(pl.Float64, strict=False)
    good = values.is_finite()
    if whole:
        good &= (values == values.floor()) & (values.abs() < 2**53)
    bad = (~good.fill_null(value=False) & (cleaned.fill_null("") != "")).arg_true()
    if len(bad):
        cell = cleaned[bad[0]]
        problem = f"{quoted(cell)} is not {'an integer' if whole else 'a finite number'}."
        do = "Write the unit into the column's name." if _WITH_UNIT.fullmatch(cell) else ""
        raise InputError(problem, where=place(name, rows["line"][bad[0]], column), do=do)
    return values.cast(pl.Int64) if whole else values


def id_list(cell: str | None, where: str) -> list[str] | None:
    """Return the ids of a cell, which may be integers (``[1, 2]`` or ``[1 2]``); otherwise as `text_list`."""
    integers = _INTEGERS.fullmatch((cell or "").strip())
    return re.findall(r"\d+", integers[0]) if integers else text_list(cell, where)


def text_list(cell: str | None, where: str) -> list[str] | None:
    """Return the texts of a cell, or None if it is empty.

    NumPy prints lists without commas, which Python would read as one long text: every quoted text is a
    separate item, with or without a comma before it.
    """
    text = (cell or "").strip()
    if not text or text.lower() in ("nan", "none", "null"):
        return None
    if not (text.startswith("[") and text.endswith("]")):
        raise InputError(f"{quoted(text)} is not a list of texts.", where=where)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = _printed(text[1:-1], where)
    # An escape can produce half of a character, which no file can hold.
    if not isinstance(value, list) or any(not isinstance(item, str) or _HALF.search(item) for item in value):
        raise InputError(f"{quoted(text)} is not a list of texts.", where=where)
    return value


def _printed(text: str, where: str) -> list[str]:
    texts, last = [], 0
    for token in _TOKEN.finditer(text):
        if not _BETWEEN.fullmatch(text, last, token.start()):
            break
        last = token.end()
        try:
            # A line break within quotes is NumPy's; Python would not accept it.
            texts.append(ast.literal_eval(token[0].replace("\r", "\\r").replace("\n", "\\n")))
        except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
            raise InputError(f"{quoted(token[0])} is not a text.", where=where) from error
    if not _BETWEEN.fullmatch(text, last):
        raise InputError(f"{quoted(text)} is not a list of texts.", where=where)
    return texts


def is_large(member: Member) -> bool:
    """Return whether a table is too large to read at once."""
    with sound(member.name), member.opener() as stored:
        packed = kind_of_packing(stored.read(BEGIN)) is not None
    return member.size * (_UNFOLDS if packed else 1) > member.limits.table_bytes


def read_blocks(member: Member, kind: str) -> Iterator[Table]:
    """Read a table block by block."""
    head, ahead = b"", 0
    for block in blocks(member) if kind == "jsonl" else _records(member):
        data = block.data
        if kind != "jsonl" and not head:
            head, _, data = data.partition(b"\n")
            head, ahead = head + b"\n", 1
        if not data.strip():
            continue
        # If the block is a separate file with the header before it, its line 1 is this line of the file:
        shift = block.first_line - 1 if not head else block.first_line + ahead - 2
        ahead = 0
        try:
            table = read_text(member, head + data, kind)
        except InputError as error:
            named = re.fullmatch(re.escape(member.name) + r":(\d+)(.*)", error.where, flags=re.DOTALL)
            where = f"{member.name}:{int(named[1]) + shift}{named[2]}" if named else error.where
            raise InputError(error.found, where=where, do=error.do) from error
        yield Table(table.name, table.rows, table.lines + shift)


def _records(member: Member) -> Iterator[LineBlock]:
    """Yield blocks that end where a record ends, not within a quoted cell that holds line breaks."""
    rest, first = b"", 0
    for block in blocks(member):
        data, first = rest + block.data, first or block.first_line
        cut = _last_record(data)
        if len(data) - cut > member.limits.line_bytes:
            problem = f"A record is longer than {member.limits.line_bytes:,} bytes."
            where = place(member.name, first + data.count(b"\n", 0, cut))
            raise InputError(problem, where=where, do="Check its quotes.")
        if cut:
            yield LineBlock(data[:cut], first)
            first += data.count(b"\n", 0, cut)
        rest = data[cut:]
    if rest:
        yield LineBlock(rest, first)


def _last_record(data: bytes) -> int:
    """Return the end of the last complete record, or 0."""
    if data.count(b'"') % 2 == 0:
        return len(data)
    text = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    outside = ends[np.searchsorted(np.flatnonzero(text == ord('"')), ends) % 2 == 0]
    return int(outside[-1]) + 1 if outside.size else 0


def without_repeats(rows: pl.DataFrame, *but: str) -> pl.DataFrame:
    """Return distinct rows, keeping the first of equal ones; the line and the named columns are ignored."""
    told = [name for name in rows.columns if name not in ("line", *but)]
    return rows.unique(told, keep="first", maintain_order=True)
