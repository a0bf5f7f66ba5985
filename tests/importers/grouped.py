"""The rows of a file of any format, and the file again with other rows; by the plainest readers."""

from __future__ import annotations

import copy
import csv
import io
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import cbor2
import polars as pl

from core.importers.formats.annbench import HDF5
from core.importers.read.database import MAGIC
from tests.importers.formats import test_annbench, test_excel
from tests.importers.helpers import parquet

FIGURES = re.compile(r"(?:^\|[^\n]*\d\.\d[^\n]*\n)+", re.MULTILINE)
"""Rows of a page's tables that hold figures."""


@dataclass(frozen=True)
class Group:
    """Rows of a file that stand side by side.

    Attributes:
        where: The table, or the keys above the list; "" where they are the whole file.
        rows: Each a map, a list of cells, or a line.
        write: The file with these rows instead.
        keyed: Whether they are entries of maps, so that none can stand twice.
    """

    where: str
    rows: Sequence[Any]
    write: Callable[[Sequence[Any]], bytes]
    keyed: bool = False


def groups(data: bytes) -> Iterator[Group]:  # noqa: PLR0911
    """The groups of rows of a file that is not packed."""
    if data.startswith(b"PAR1"):
        return iter([_parquet(data)])
    if data.startswith(b"PK"):
        return iter([_workbook()])
    if data.startswith(MAGIC):
        return _database(data)
    if data.startswith(HDF5):
        return iter([_hdf5()])
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _json(cbor2.loads(data), cbor2.dumps)
    if text.lstrip()[:1] in "{[":
        return _json_text(text)
    if text.startswith("# "):
        return _page(text)
    return iter([_delimited(text)])


def _parquet(data: bytes) -> Group:
    table = pl.read_parquet(io.BytesIO(data))
    return Group("", table.to_dicts(), lambda rows: parquet(pl.DataFrame(rows, schema=table.schema)))


def _workbook() -> Group:
    head, *rows = test_excel.ROWS
    return Group("", rows, lambda rows: test_excel.book({"Run": [head, *rows]}))


def _hdf5() -> Group:
    names = ("times", "neighbors", "distances")
    held = (test_annbench.TIMES, test_annbench.NEIGHBORS, test_annbench.DISTANCES)

    def write(rows: Sequence[Any]) -> bytes:
        return test_annbench.result(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))

    return Group("", list(zip(*held, strict=True)), write)


def _database(data: bytes) -> Iterator[Group]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(data)
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        held = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}  # noqa: S608
    for name, rows in held.items():
        yield Group(name, rows, lambda rows, name=name: _stored(data, name, rows))


def _stored(data: bytes, table: str, rows: Sequence[Sequence[Any]]) -> bytes:
    """A database with other rows in one of its tables; a repeated key is a new one."""
    keys: set[object] = set()
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(data)
        connection.execute(f"DELETE FROM {table}")  # noqa: S608
        for key, *cells in rows:
            marks = ", ".join("?" * (len(cells) + 1))
            given = (None if key in keys or key == "odd" else key, *cells)
            connection.execute(f"INSERT INTO {table} VALUES ({marks})", given)  # noqa: S608
            keys.add(key)
        connection.commit()
        return connection.serialize()


def _json_text(text: str) -> Iterator[Group]:
    try:
        whole = json.loads(text)
    except ValueError:
        lines = [json.loads(line) for line in text.splitlines() if line.strip()]
        return iter([Group("", lines, lambda rows: "".join(json.dumps(row) + "\n" for row in rows).encode())])
    return _json(whole, lambda value: json.dumps(value).encode())


def _json(whole: Any, dump: Callable[[Any], bytes]) -> Iterator[Group]:
    """The outermost lists of objects or lists; of a map of maps, which has none, its inner entries."""
    for path in _lists(whole):
        yield Group(".".join(path), _at(whole, path), lambda rows, path=path: dump(_with(whole, path, rows)))
    if isinstance(whole, dict) and all(isinstance(each, dict) for each in whole.values()):
        pairs = [(outer, *item) for outer, below in whole.items() for item in below.items()]
        if not any(isinstance(row[2], dict | list) for row in pairs):
            yield Group("", pairs, lambda rows: dump(_mapped(rows)), keyed=True)


def _lists(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, list):
        yield from [path] * any(isinstance(each, dict | list) for each in value)
    elif isinstance(value, dict):
        for key, below in value.items():
            yield from _lists(below, (*path, key))


def _at(value: Any, path: Sequence[str]) -> Any:
    for key in path:
        value = value[key]
    return value


def _with(whole: Any, path: Sequence[str], rows: Sequence[Any]) -> Any:
    if not path:
        return rows
    made = copy.deepcopy(whole)
    _at(made, path[:-1])[path[-1]] = rows
    return made


def _mapped(rows: Sequence[Any]) -> dict[str, dict[str, object]]:
    made: dict[str, dict[str, object]] = {}
    for outer, inner, value in rows:
        made.setdefault(outer, {})[inner] = value
    return made


def _head(line: str) -> str:
    return line.strip("|").split("|")[0].strip(" *`")


def _page(text: str) -> Iterator[Group]:
    for found in FIGURES.finditer(text):
        before, after = text[: found.start()], text[found.end() :]
        yield Group(
            next(_head(line) for line in before.splitlines()[::-1] if "--" not in line),
            [line[1:-1].split("|") for line in found[0].splitlines()],
            lambda rows, before=before, after=after: (
                before + "".join(f"|{'|'.join(map(str, row))}|\n" for row in rows) + after
            ).encode(),
        )


def _delimited(text: str) -> Group:
    """A table with a header, or lines of words."""
    first = text.splitlines()[0]
    mark = next((mark for mark in "\t," if mark in first), None)
    if mark is None:
        rows = [line.split() for line in text.splitlines()]
        return Group("", rows, lambda rows: "".join(" ".join(row) + "\n" for row in rows).encode())
    head, *rows = csv.reader(io.StringIO(text), delimiter=mark)

    def write(rows: Sequence[Any]) -> bytes:
        buffer = io.StringIO()
        csv.writer(buffer, delimiter=mark, lineterminator="\n").writerows([head, *rows])
        return buffer.getvalue().encode()

    return Group("", rows, write)
