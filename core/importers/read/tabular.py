"""CSV, TSV, JSONL and Parquet in one form: a frame, the line of every row, errors that give the location."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from core.errors import InputError, told
from core.importers.read.headers import MOST_ROWS, delimiter_below, headed_lines
from core.importers.read.jsons import exceeds, not_json, once, outline, read_json, too_large, without_nan
from core.importers.read.member import GIB, HEAD_BYTES, MIB, Member, ReadLimits, head_lines, per_member
from core.importers.read.nested import rows_in
from core.importers.read.text import LineBlock, blocks, no_column, place, shown, whole
from core.sandbox import Bounded

PARQUET = b"PAR1"
_VALUE_BYTES = 16  # Least memory that a value of a list takes
_FIRST_LINES = 1_000
_MOST_JSON = 32 * MIB  # Largest JSON value, unpacked, that is searched for rows: it is held several times
_GRACES = 8  # Multiple of `grace_bytes` that the rows of a Parquet file may always take
_READER = Bounded(Path(__file__).with_name("parquets.py"), memory=6 * GIB, seconds=300)
_NO_NAME = ""
_DELIMITERS = ("\t", ",", ";", "|")
PANIC: type[BaseException] = pl.exceptions.PanicException
"""Error that Polars raises if its own code fails on a malformed file; not an `Exception`."""
_QUOTES = 'Take it out, or quote the cell and double the mark: "a ""b"" c".'
_UNESCAPED = r"(?s)^\s*[{\[].*[\\\x00-\x1f\x7f]"
"""Text that may be an object or a list containing an unescaped backslash or control character."""
_SEVERAL = 8  # Columns from which on texts are converted together
csv.field_size_limit(GIB)  # its own limit is 131,072 characters; `Limits.cell_bytes` bounds a cell
READ_ERRORS = (pl.exceptions.PolarsError, PANIC, OverflowError, MemoryError, OSError)


@dataclass(frozen=True, slots=True)
class Table:
    """A foreign table."""

    name: str  # the file, for messages
    rows: pl.DataFrame  # its cells unchanged, columns named as in the file
    lines: pl.Series  # line of every row in the file (its number from 1 in Parquet)
    beside: tuple[str, ...] = ()  # keys of a JSON file beside its rows

    @property
    def texts(self) -> pl.DataFrame:
        """All cells as text."""
        return self.taking({column: column for column in self.rows.columns if column != "line"}).drop("line")

    def taking(self, columns: Mapping[str, str]) -> pl.DataFrame:
        """Return some columns under new names, as text, with `line`.

        Args:
            columns: New name → column of the table.

        Raises:
            InputError: A column is absent; the message lists those that exist.
        """
        try:
            texts = self._plain_texts(columns)
            chosen = [
                (as_text(self.rows[column]) if column not in texts else texts[column]).alias(name)
                for name, column in columns.items()
            ]
        except pl.exceptions.ColumnNotFoundError:
            gone = next(column for column in columns.values() if column not in self.rows.columns)
            raise no_column(gone, self.rows.columns, self.name) from None
        return pl.DataFrame([*chosen, self.lines.alias("line")])

    def _plain_texts(self, columns: Mapping[str, str]) -> Mapping[str, pl.Series]:
        """Return those of several columns that are texts already, converted as by `as_text`, all at once."""
        if len(columns) < _SEVERAL:
            return {}
        schema = self.rows.schema
        of_text = [column for column in dict.fromkeys(columns.values()) if schema.get(column) == pl.String]
        if not of_text:
            return {}
        # As one series: thousands of expressions, or of calls, would cost more than all their cells.
        stripped = pl.concat(self.rows.select(of_text).get_columns()).str.strip_chars().replace("", None)
        height = self.rows.height
        return {column: stripped.slice(at * height, height) for at, column in enumerate(of_text)}


def as_text(values: pl.Series) -> pl.Series:
    """Return a column as text: without surrounding blanks, empty cells null, lists and structures as JSON.

    Whole numbers have no point, so that ids in a column of floats match those of other files; durations are
    in milliseconds.
    """
    if values.dtype.is_nested():
        cells = values.to_list()
        texts = [
            None if cell is None else json.dumps(cell, ensure_ascii=False, default=str) for cell in cells
        ]
        values = pl.Series(values.name, texts, dtype=pl.String)
    if values.dtype == pl.Duration:
        values = values.dt.total_microseconds(fractional=True) / 1000
    if values.dtype.is_float() and bool((values.is_finite() & (values == values.floor())).all()):
        whole = values.cast(pl.Int64, strict=False)
        values = whole if whole.null_count() == values.null_count() else values
    text = values.cast(pl.String, strict=False).str.strip_chars()
    return text.replace("", None)


def kind_of(member: Member) -> str | None:
    """Return the kind by content: parquet, jsonl, json, a delimiter, or None if it is not a table."""
    if member.head.startswith(PARQUET):
        return "parquet"
    lines = [line for line in head_lines(member) if line.strip()]
    if not lines:
        return None
    if lines[0].lstrip().startswith("{"):
        return "json" if _is_one(member, lines) else "jsonl"
    if "object" in outline(member).get("[]", ()):
        return "json"
    counts = {mark: lines[0].count(mark) for mark in _DELIMITERS}
    best = max(_DELIMITERS, key=lambda mark: counts[mark])
    below = delimiter_below(lines, _DELIMITERS)
    titled = below not in (None, best) and counts[best] < lines[1].count(below or best)
    return below if titled or not counts[best] else best


def _is_one(member: Member, lines: Sequence[str]) -> bool:
    """Return whether a file is a single JSON object with rows in it, rather than one object per line."""
    with suppress(ValueError, RecursionError):
        json.loads(lines[0])
        if len(lines) > 1:
            return False
    below = [kinds for path, kinds in outline(member).items() if path and "." not in path]
    return any("object" in kinds for kinds in below)


def read_table(member: Member, kind: str | None, rows: int | None = None, *, do: str = "") -> Table:
    """Read a table.

    Args:
        kind: The result of `kind_of`; None is refused.
        rows: Only this many first rows, from the head of the file.
        do: What a table needs, used in the message if this is none.

    Raises:
        InputError: Naming file, line and column of the problem.
    """
    if kind is None:
        raise InputError("This is not a table.", where=member.name, do=do)
    if kind == "parquet":
        return _parquet(member, rows)
    if kind == "json":
        table = _json(member)
        if isinstance(table, InputError):
            raise table
        return table if rows is None else Table(table.name, table.rows.head(rows), table.lines.head(rows))
    data = whole(member) if rows is None else "\n".join(_first_lines(member, kind, rows + 1)).encode()
    return read_text(member, data, kind)


def _first_lines(member: Member, kind: str, records: int) -> list[str]:
    """Return the lines of the first complete records in the head: a quoted cell may span many lines."""
    lines, end = head_lines(member, records), records
    if kind != "jsonl" and any('"' in line for line in lines):
        lines, end = head_lines(member, HEAD_BYTES), 1
        reader = csv.reader(map("{}\n".format, lines), delimiter=kind, strict=True)
        with suppress(csv.Error):  # the head ends within a record
            for _ in islice(reader, records):
                end = reader.line_num
    return lines[:end] if end > 1 else lines  # without a whole record, reading reports the problem


@per_member
def _json(member: Member) -> Table | InputError:
    """Return the rows of one JSON value, each with its number from 1; see `rows_in`."""
    try:
        if exceeds(member, _MOST_JSON):
            raise too_large(member, _MOST_JSON)
        found, beside = rows_in(read_json(member), member.name)
        lines = "\n".join(json.dumps(without_nan(row), ensure_ascii=False) for row in found)
        return replace(read_text(member, lines.encode(), "jsonl"), beside=beside)
    except InputError as error:  # returned, since every format asks
        return error


def beside_rows(member: Member) -> tuple[str, ...]:
    """Return the keys of a JSON file beside the rows that form its table."""
    table = _json(member) if kind_of(member) == "json" else None
    return table.beside if isinstance(table, Table) else ()


def read_text(member: Member, data: bytes, kind: str) -> Table:
    """Read the text of a table, or of its first records; arguments and errors as in `read_table`."""
    if kind == "jsonl":
        table = Table(member.name, *_objects(member, LineBlock(data, 1), None))
        check_header(table.rows.columns, member)
    else:
        table = _delimited(member, data, kind)
    check_cells(table, member.limits)
    return table


def first_rows(member: Member, rows: int) -> pl.DataFrame | None:
    """Return the first rows of a table as text, for a preview, or None if it isn't a table."""
    return None if (kind := kind_of(member)) is None else read_table(member, kind, rows).texts


def header(member: Member, kind: str) -> list[str]:
    """Return the column names of a table, from its head only."""
    if kind == "parquet":
        return _names(member)
    if kind == "json":
        table = _json(member)
        return [] if isinstance(table, InputError) else table.rows.columns
    lines = head_lines(member, 50)
    if kind != "jsonl":
        found = headed_lines(lines, kind)
        return found[0] if found else _header_cells(member, lines[0] if lines else "", kind)
    names: dict[str, None] = {}
    for line in lines:
        with suppress(ValueError, RecursionError):
            value = json.loads(line)
            names |= dict.fromkeys(value if isinstance(value, dict) else ())
    return list(names)


def columns(member: Member) -> list[str]:
    """Return the column names of a possible table, or [] if it isn't one or its header is unreadable."""
    kind = kind_of(member)
    try:
        return header(member, kind) if kind else []
    except InputError:
        return []


def _header_cells(member: Member, line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        raise InputError(
            f"The header cannot be read: {shown(error)}.", where=place(member.name, 1)
        ) from error


def check_header(names: Sequence[str], member: Member) -> None:
    """Refuse too many columns, or a name that occurs twice."""
    if len(names) > member.limits.columns:
        problem = f"{len(names):,} columns; the limit is {member.limits.columns:,}."
        raise InputError(problem, where=place(member.name, 1))
    for name, times in Counter(names).items():
        if times > 1:
            raise InputError("The column occurs twice.", where=place(member.name, 1, name))


def _with_header(data: bytes, delimiter: str) -> bytes:
    """Return a table with its header in the first line; empty rows keep later line numbers unchanged."""
    lines = data.split(b"\n", MOST_ROWS)[:MOST_ROWS]
    found = headed_lines([line.decode("utf-8", "replace").rstrip("\r") for line in lines], delimiter)
    if found is None:
        return data
    names, taken = found
    header = io.StringIO()
    csv.writer(header, delimiter=delimiter, lineterminator="\n").writerow(names)
    empty = f"{delimiter * (len(names) - 1)}\n" * (taken - 1)
    return f"{header.getvalue()}{empty}".encode() + data.split(b"\n", taken)[-1]


def _delimited(member: Member, data: bytes, delimiter: str) -> Table:
    data = _with_header(data, delimiter)
    first = data.split(b"\n", 1)[0].decode("utf-8", "replace").rstrip("\r")
    names = _header_cells(member, first, delimiter)
    again = names[0] if names and names[0] in names[1:] and _NO_NAME not in names else None
    names = [_NO_NAME, *names[1:]] if again else names
    check_header(names, member)
    _check_cells_of(member, len(data), data.count(b"\n"), len(names))
    try:
        rows = pl.read_csv(data, separator=delimiter, infer_schema=False, new_columns=names)
    except READ_ERRORS as error:
        _explain_csv(member, data, delimiter, len(names))
        raise InputError(f"The table cannot be read: {shown(error, 200)}", where=member.name) from error
    if again:  # pandas writes an index that is also a column twice
        if not rows[_NO_NAME].equals(rows[again]):
            raise InputError("The column occurs twice.", where=place(member.name, 1, again))
        rows = rows.drop(_NO_NAME)
    lines = _csv_lines(data, delimiter, rows.height)
    filled = rows.select(pl.any_horizontal(pl.all().is_not_null())).to_series()
    return Table(member.name, rows.filter(filled), lines.filter(filled))


def _csv_lines(data: bytes, delimiter: str, height: int) -> pl.Series:
    """Return the line on which each record begins, counting by record only if cells hold line breaks."""
    physical = data.count(b"\n") + (0 if data.endswith(b"\n") else 1)
    if physical == height + 1:
        return pl.Series("line", np.arange(2, height + 2, dtype=np.int64))
    starts, line = [], 1
    reader = csv.reader(io.StringIO(data.decode(), newline=""), delimiter=delimiter)
    for _ in reader:
        starts.append(line)
        line = reader.line_num + 1
    starts = (starts[1:] + [line] * height)[:height]
    return pl.Series("line", starts, dtype=pl.Int64)


def _explain_csv(member: Member, data: bytes, delimiter: str, columns: int) -> None:
    """Refuse the file at the first record that does not fit the header; return if there is none."""
    text = data.decode()
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line, stray, lines = 1, 0, text.split("\n")
    try:
        for record in reader:
            if record and len(record) > columns:
                problem = f"{len(record)} cells, the header has {columns}."
                raise InputError(problem, where=place(member.name, line))
            if not stray and any('"' in cell for cell in record):
                stray = 0 if '""' in "".join(lines[line - 1 : reader.line_num]) else line
            line = reader.line_num + 1
    except csv.Error as error:
        where = place(member.name, line)
        problem = f"The line cannot be read: {shown(error)}."
        raise InputError(problem, where=where, do="Check its quotes.") from error
    if stray:
        problem = "A quotation mark stands within a cell that is not quoted."
        raise InputError(problem, where=place(member.name, stray), do=_QUOTES)


def json_lines(data: bytes, first: int = 1) -> pl.Series:
    """Return the numbers of the lines that are not blank."""
    numbers = [number for number, line in enumerate(data.split(b"\n"), first) if line.strip()]
    return pl.Series("line", numbers, dtype=pl.Int64)


def objects_of(member: Member, schema: Mapping[str, Any]) -> pl.DataFrame:
    """Return some fields of the objects of a file of JSON lines, with `line`."""
    parts = [_objects(member, block, schema) for block in blocks(member)]
    return pl.concat([rows.with_columns(lines) for rows, lines in parts])


def read_objects(data: bytes, schema: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """Read JSON lines; objects and lists in text fields become JSON, unlike what Polars writes."""
    rows = pl.read_ndjson(data, schema=schema, infer_schema_length=None)
    flat = [name for name, dtype in rows.schema.items() if dtype == pl.String]
    within = [name for name, dtype in rows.schema.items() if dtype == pl.List(pl.String)]
    unescaped = [pl.col(name).str.contains(_UNESCAPED) for name in flat]
    unescaped += [pl.col(name).list.eval(pl.element().str.contains(_UNESCAPED)).list.any() for name in within]
    hit = rows.select(pl.any_horizontal(unescaped).arg_true()).to_series() if unescaped else pl.Series()
    if hit.is_empty():
        return rows
    lines = [line for line in data.split(b"\n") if line.strip()]
    values = {row: json.loads(lines[row]) for row in hit if row < len(lines)}
    held = {name: rows[name].to_list() for name in [*flat, *within]}
    for row, value in values.items():
        for name in flat:
            held[name][row] = _within(value.get(name), held[name][row])
        for name in within:
            if isinstance(value.get(name), list):
                held[name][row] = [*map(_within, value[name], held[name][row])]
    return rows.with_columns(pl.Series(name, cells, rows.schema[name]) for name, cells in held.items())


def _within(value: object, as_read: str | None) -> str | None:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else as_read


def _objects(
    member: Member, block: LineBlock, schema: Mapping[str, Any] | None
) -> tuple[pl.DataFrame, pl.Series]:
    lines = json_lines(block.data, block.first_line)
    where = place(member.name, block.first_line)
    try:
        inferred = None if schema else _inferred(member, block.data, len(lines))
        schema = schema or inferred
        rows = read_objects(block.data, schema)
        written = block.data.count(b'":') + block.data.count(b'" :')
        if schema is inferred and written > _keys_of(rows) + len(re.findall(rb'" ?: ?null', block.data)):
            _explain_json(member.name, block)  # refuses a key that occurs twice in an object
    except READ_ERRORS as error:
        _explain_json(member.name, block)
        raise InputError(f"The lines cannot be read: {shown(error, 200)}", where=where) from error
    if rows.height != len(lines):
        _explain_json(member.name, block)
        raise InputError("Each line must hold one JSON object.", where=where)
    return rows, lines


def _keys_of(rows: pl.DataFrame) -> int:
    """Count the keys of objects, nested ones too, whose value is not null."""
    known = 0
    for values in rows.get_columns():
        known += values.len() - values.null_count()
        inner = values
        while isinstance(inner.dtype, pl.List | pl.Array):
            inner = inner.explode()
        if isinstance(inner.dtype, pl.Struct):
            known += _keys_of(inner.struct.unnest())
    return known


def _inferred(member: Member, data: bytes, lines: int) -> pl.Schema:
    """Infer types from a growing number of JSON lines: if each had its own key, it would never end."""
    known = _FIRST_LINES
    while True:
        schema = pl.scan_ndjson(io.BytesIO(data), infer_schema_length=known).collect_schema()
        _check_cells_of(member, len(data), lines, sum(map(_leaves, schema.values())))
        if known >= lines:
            return schema
        known *= 4


def _leaves(dtype: object) -> int:
    """Return how many columns a field takes in memory."""
    match dtype:
        case pl.Struct():
            return sum(_leaves(field.dtype) for field in dtype.fields)
        case pl.List() | pl.Array():
            return _leaves(dtype.inner)
    return 1


def _explain_json(name: str, block: LineBlock) -> None:
    """Refuse the file at the first line that is not one JSON object; return if there is none."""
    for number, line in enumerate(block.data.split(b"\n"), block.first_line):
        if not line.strip():
            continue
        try:
            value = json.loads(
                line, parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=once
            )
            problem = "" if isinstance(value, dict) else "The line is not a JSON object."
        except RecursionError:
            problem = "The JSON is nested too deeply."
        except ValueError as error:
            problem = f"{not_json(error).replace('This', 'The line', 1)}."
        if problem:
            raise InputError(problem, where=place(name, number))


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")


def _finite(text: str) -> float:
    if math.isinf(value := float(text)):
        raise ValueError(f"{text} is larger than any number")
    return value


@contextmanager
def reading(what: str, where: str, errors: tuple[type[BaseException], ...] = READ_ERRORS) -> Iterator[None]:
    """Turn a reader's error on a malformed file into one that names the file."""
    try:
        yield
    except errors as error:
        wrong = InputError(f"{what} cannot be read: {shown(error, 200)}", where=where)
        raise told(error, wrong) from error


def _parquet(member: Member, rows: int | None) -> Table:
    """Read a Parquet file after checking the claims of its footer against the limits."""
    names = _names(member)
    check_header(names, member)
    with tempfile.TemporaryDirectory(prefix="clq-parquet-") as scratch:
        into = Path(scratch) / "rows.arrow"
        said = _read_apart(member, into, rows)
        height = int(said["height"])
        _check_claim(member, f"{height:,} rows", height * max(len(names), 1))
        _check_claim(member, f"{said['values']:,} values of lists", said["values"] * _VALUE_BYTES)
        _check_claim(member, "rows", said["bytes"], f"{said['bytes']:,} bytes of ")
        with reading("The Parquet file", member.name):
            frame = pl.read_ipc(into.read_bytes())
    return Table(member.name, frame, pl.Series("line", np.arange(1, frame.height + 1, dtype=np.int64)))


def _names(member: Member) -> list[str]:
    footer = _footer(member)
    if isinstance(footer, InputError):
        raise footer
    return footer


@per_member
def _footer(member: Member) -> list[str] | InputError:
    try:
        return list(_read_apart(member)["columns"])
    except InputError as error:  # returned, since every format asks
        return error


def _read_apart(member: Member, into: Path | None = None, rows: int | None = None) -> Mapping[str, Any]:
    """Have another process read a Parquet file, because a few bytes can ask for all memory there is.

    Returns:
        The answer of `core.importers.read.parquets`.

    Raises:
        InputError: If it cannot be read, or not within the bounds.
    """
    with _on_disk(member) as path:
        asked = {"file": str(path), "into": into and str(into), "rows": rows}
        asked |= {"columns": member.limits.columns, "most": _most(member)}
        with reading("The Parquet file", member.name, (ChildProcessError,)):
            said = _READER.ask(asked)
    if "error" in said:
        wrong = InputError(f"The Parquet file cannot be read: {shown(said['error'], 200)}", where=member.name)
        raise told(said["error"], wrong)
    return said


@contextmanager
def _on_disk(member: Member) -> Iterator[Path]:
    """Yield the path of the file, or of a copy if it is packed or was uploaded."""
    with member.opener() as stored:
        if member.path is not None and stored.read(len(PARQUET)) == PARQUET:
            yield member.path.absolute()
            return
    with tempfile.NamedTemporaryFile(prefix="clq-parquet-") as copy:
        with member.stream() as packed:
            shutil.copyfileobj(packed, copy, MIB)
        copy.flush()
        yield Path(copy.name)


def _most(member: Member) -> int:
    """Return the memory that the rows of a file may take, in bytes."""
    return max(_GRACES * member.limits.grace_bytes, member.limits.ratio * member.size)


def _check_claim(member: Member, what: str, unfolds: int, amount: str = "") -> None:
    """Refuse a file that unfolds to more than is allowed: a few bytes can stand for a billion values."""
    if unfolds > _most(member):
        raise InputError(f"The file claims {amount}{what} in {member.size:,} bytes.", where=member.name)


def _check_cells_of(member: Member, size: int, rows: int, columns: int) -> None:
    """Refuse rows with few cells under many columns, because missing cells take memory, too."""
    if rows * columns * _VALUE_BYTES > max(_GRACES * member.limits.grace_bytes, _VALUE_BYTES * size):
        problem = f"{rows:,} rows of up to {columns:,} columns in {size:,} bytes: nearly all cells are empty."
        raise InputError(problem, where=member.name, do="Leave out the lines and columns that hold nothing.")


def check_cells(table: Table, limits: ReadLimits) -> None:
    """Refuse a table with a cell that is longer than the limits allow."""
    columns = [column for column, dtype in table.rows.schema.items() if dtype == pl.String]
    cells = pl.concat([pl.Series(dtype=pl.String), *table.rows.select(columns).get_columns()])
    long = (cells.str.len_bytes() > limits.cell_bytes).arg_true()
    if len(long):
        column, row = divmod(long[0], table.rows.height)
        where = place(table.name, table.lines[row], columns[column])
        raise InputError(f"The cell is longer than {limits.cell_bytes:,} bytes.", where=where)
