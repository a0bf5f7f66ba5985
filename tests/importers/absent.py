"""Files of which one field is absent throughout: a column, or a key wherever it stands."""

from __future__ import annotations

import copy
import csv
import gzip
import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import polars as pl

from core.errors import ClqError
from core.importers import Import, Options, load
from core.importers.read.tabular import PARQUET
from tests.importers.formats.test_judged_spans import at_hand
from tests.importers.helpers import up, zipped
from tests.importers.odd import places

_DELIMITERS = "\t,;"
_GZIP, _ZIP = b"\x1f\x8b", b"PK\3\4"


def without_each(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The file without each of its fields in turn, by the field's name."""
    if data.startswith(_GZIP):
        yield from ((name, gzip.compress(made)) for name, made in without_each(gzip.decompress(data)))
    elif data.startswith(PARQUET):
        yield from _parquet(data)
    elif data.startswith(_ZIP):
        yield from _zip(data)
    else:
        with suppress(UnicodeDecodeError):
            yield from ((name, made.encode()) for name, made in _text(data.decode()))


def _zip(data: bytes) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        members = {name: packed.read(name) for name in packed.namelist()}
    for member, content in members.items():
        yield member, zipped({name: each for name, each in members.items() if name != member})
        for name, made in without_each(content):
            yield f"{member}: {name}", zipped({**members, member: made})


def _parquet(data: bytes) -> Iterator[tuple[str, bytes]]:
    rows = pl.read_parquet(io.BytesIO(data))
    for name in rows.columns if rows.width > 1 else ():
        sink = io.BytesIO()
        rows.drop(name).write_parquet(sink)
        yield name, sink.getvalue()


def _text(text: str) -> Iterator[tuple[str, str]]:
    with suppress(ValueError):
        yield from ((name, json.dumps(made)) for name, made in _objects(json.loads(text)))
        return
    with suppress(ValueError):
        found = list(_objects([json.loads(line) for line in text.splitlines() if line.strip()]))
        yield from ((name, "".join(f"{json.dumps(line)}\n" for line in made)) for name, made in found)
        return
    first = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    if delimiter not in first:
        return
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    for place, name in enumerate(rows[0]):
        sink = io.StringIO()
        csv.writer(sink, delimiter=delimiter).writerows(row[:place] + row[place + 1 :] for row in rows)
        yield name, sink.getvalue()


def _objects(value: Any) -> Iterator[tuple[str, Any]]:
    """A JSON value without each key, wherever that stands; members of lists are of one kind."""
    ways = {tuple(key for key in way if isinstance(key, str)): None for way in places(value)}
    for way in ways:
        if way:
            made = copy.deepcopy(value)
            _drop(made, way)
            yield ".".join(way), made


def _drop(value: Any, way: tuple[str, ...]) -> None:
    if isinstance(value, list):
        for each in value:
            _drop(each, way)
    elif isinstance(value, dict) and way[0] in value:
        if len(way) == 1:
            del value[way[0]]
        else:
            _drop(value[way[0]], way[1:])


def imported(name: str, format_: str, data: bytes) -> Import | None:
    """What such a file is imported as; None if it is refused."""
    wanted = Options(collection_id="lab", split="all", documents=at_hand, format=format_)
    with suppress(ClqError):
        return load([up(name, data)], wanted)
    return None


def shape(made: Import) -> frozenset[tuple[str, str, str]]:
    """Which columns of which tables an import fills, never, sometimes or always."""
    found = [("records", name, "") for name in ("golden_sets", "runs") if getattr(made, name)]
    for table, frame in made.frames.items():
        counts = frame.lazy().select(pl.len().alias("."), pl.all().null_count()).collect().row(0, named=True)
        rows = counts.pop(".")
        if rows:
            filled = {0: "always", rows: "never"}
            found += [(table, name, filled.get(count, "sometimes")) for name, count in counts.items()]
    return frozenset(found)
