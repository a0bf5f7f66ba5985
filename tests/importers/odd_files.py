"""Files that are sound as such and hold one thing that is not as expected: archives, tables, databases."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import random
import sqlite3
import zipfile
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree as ET

import cbor2
import h5py
import lz4.frame
import numpy as np
import polars as pl

from core.importers.formats.annbench import HDF5
from core.importers.formats.own import MANIFEST
from core.importers.read.database import MAGIC
from core.importers.read.tabular import PARQUET
from core.importers.read.workbook import ZIP
from tests.importers.helpers import zipped
from tests.importers.odd import CELLS, ODD, odd_json, odd_text, odd_within

_GZIP, _LZ4 = b"\x1f\x8b", b"\x04\x22\x4d\x18"
_STORED: tuple[Any, ...] = (
    None, -1, 0, 1.5, float("inf"), -(2**63), "", "a\0b", "NaN", b"\xff\xfe", b"", "[" * 3_000, "{}",
    "x" * 70_000,
)  # fmt: skip
"""Values that a database can hold."""
_PACKED: tuple[Any, ...] = (
    b"\xff", 2**70, -(2**70), date(1, 1, 1), Decimal("NaN"), {1: 2}, {None: 1.0}, frozenset({1}),
    cbor2.CBORTag(9, "x"), cbor2.undefined, cbor2.CBORSimpleValue(19), {(1, 2): 3}, float("-inf"),
)  # fmt: skip
"""Values that CBOR can say and JSON cannot."""


def odd_file(data: bytes, source: random.Random, most: int = 3) -> bytes:
    """The file with up to `most` things in it changed; what can no longer be taken apart stays as it is."""
    data = _odd(data, source)
    for _ in range(source.randrange(most)):
        try:
            data = _odd(data, source)
        except Exception:  # whatever a reader raises on a file that the first change damaged
            return data
    return data


def _odd(data: bytes, source: random.Random) -> bytes:
    """The file with one thing in it changed, by what it is."""
    if data.startswith(_GZIP):
        return gzip.compress(_odd(gzip.decompress(data), source))
    if data.startswith(_LZ4):
        return lz4.frame.compress(_odd(lz4.frame.decompress(data), source))
    for begin, change in (
        (ZIP, _odd_zip),
        (MAGIC, _odd_database),
        (HDF5, _odd_hdf5),
        (PARQUET, _odd_parquet),
    ):
        if data.startswith(begin):
            return change(data, source)
    try:
        return odd_text(data.decode(), source).encode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return _odd_cbor(data, source)


def _odd_zip(data: bytes, source: random.Random) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        members = {name: packed.read(name) for name in packed.namelist()}
    name = source.choice(sorted(members))
    kind = source.randrange(12)
    if kind == 0:
        del members[name]
    elif kind == 1:
        members[source.choice([f"copy/{name}", "x.txt", "run.json", f"{name}.gz"])] = members[name]
    elif kind == 2:
        members[name] = members[source.choice(sorted(members))]
    elif members[name]:
        is_xml = members[name].lstrip().startswith(b"<?xml")
        members[name] = (_odd_xml if is_xml else _odd)(members[name], source)
        _sum_again(members, name)
    return zipped(members, 0)


def _sum_again(members: dict[str, bytes], name: str) -> None:
    """The hash of a changed table in the manifest of an export, which would hide the change."""
    manifest = json.loads(members[MANIFEST]) if MANIFEST in members and name.endswith(".parquet") else {}
    for entry in manifest.get("tables", {}).values():
        if entry["file"] == name:
            entry["blake2b"] = hashlib.blake2b(members[name], digest_size=16).hexdigest()
            del entry["rows"]
            members[MANIFEST] = json.dumps(manifest).encode()


def _odd_xml(data: bytes, source: random.Random) -> bytes:
    root = ET.fromstring(data)  # noqa: S314  (our own sample)
    parents = [each for each in root.iter() if len(each)]
    element = source.choice(list(root.iter()))
    cell = source.choice(CELLS[:-1]).replace("\0", "")
    kind = source.randrange(4)
    if kind == 0 and element.attrib:
        element.set(source.choice(sorted(element.attrib)), cell)
    elif kind == 1 and parents:
        holder = source.choice(parents)
        holder.remove(source.choice(list(holder)))
    elif kind == 2 and parents:
        holder = source.choice(parents)
        holder.append(source.choice(list(holder)))
    else:
        element.text = cell
    return ET.tostring(root, encoding="utf-8", xml_declaration=True)


def _odd_database(data: bytes, source: random.Random) -> bytes:
    made = sqlite3.connect(":memory:")
    made.deserialize(data)
    tables = [name for (name,) in made.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    table = source.choice(sorted(tables))
    names = [row[1] for row in made.execute(f"PRAGMA table_info({table})")]
    column = source.choice(names)
    rows = [row for (row,) in made.execute(f"SELECT rowid FROM {table}")]  # noqa: S608
    kind = source.randrange(10)
    if kind == 0:
        made.execute(f"DROP TABLE {table}")
    elif kind == 1:
        made.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO other")
    elif kind == 2:
        made.execute(f"ALTER TABLE {table} RENAME TO other")
        made.execute(f"CREATE VIEW {table} AS SELECT * FROM other")  # noqa: S608
    elif kind == 3 and rows:
        made.execute(f"DELETE FROM {table} WHERE rowid = ?", (source.choice(rows),))  # noqa: S608
    elif kind == 4:
        _without_types(made, table, names)
    elif rows:
        _odd_row(made, table, column, source.choice(rows), source)
    made.commit()
    return made.serialize()


def _without_types(made: sqlite3.Connection, table: str, names: list[str]) -> None:
    """Every row twice, in a table without types and keys."""
    made.execute(f"CREATE TABLE other ({', '.join(names)})")
    for _ in range(2):
        made.execute(f"INSERT INTO other SELECT * FROM {table}")  # noqa: S608
    made.execute(f"DROP TABLE {table}")
    made.execute(f"ALTER TABLE other RENAME TO {table}")


def _odd_row(made: sqlite3.Connection, table: str, column: str, row: int, source: random.Random) -> None:
    (old,) = made.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (row,)).fetchone()  # noqa: S608
    value = source.choice(_STORED)
    if isinstance(old, str) and old[:1] in ("{", "[", '"') and source.randrange(2):
        value = odd_json(old, source)
    try:
        made.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))  # noqa: S608
    except (sqlite3.Error, UnicodeError):  # a key of that table, or half a character
        made.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))  # noqa: S608


def _odd_hdf5(data: bytes, source: random.Random) -> bytes:
    buffer = io.BytesIO(data)
    with h5py.File(buffer, "r+") as file:
        if source.randrange(2) and len(file.attrs):
            name = source.choice(sorted(file.attrs))
            if source.randrange(4):
                del file.attrs[name]
            attributes = (
                -1,
                1.5,
                float("nan"),
                "",
                "x" * 3_000,
                b"\xff",
                [1, 2],
                [],
                ["a", "b"],
                np.bool_(1),
            )
            file.attrs[name] = source.choice(attributes)
        else:
            name = source.choice(sorted(file))
            old = file[name][...]
            del file[name]
            _odd_table_of(file, name, old, source)
    return buffer.getvalue()


def _odd_table_of(file: h5py.File, name: str, old: np.ndarray, source: random.Random) -> None:
    """Another table under the name, or a link, or none."""
    kind = source.randrange(8)
    if kind == 0:
        file[name] = h5py.SoftLink(f"/{name}")
    elif kind == 1:
        file[name] = h5py.ExternalLink("/etc/passwd", "/")
    elif kind == 2:
        file.create_dataset(name, (1 << 20, 1 << 20), "f4", chunks=(1024, 1024))
    elif kind == 3:
        file.create_group(name)
    elif kind > 3:
        with np.errstate(invalid="ignore"):
            changed = old.astype(source.choice(["f8", "i8", "u1", "S3", "?", "c8", ">i2"]))
        odd = source.choice(
            [changed, changed[:1], changed[:0], changed[..., None], changed.ravel(), changed[0]]
        )
        if odd.dtype.kind == "f" and odd.size:
            odd.flat[0] = source.choice([np.nan, np.inf, -1.0, 1e300])
        file.create_dataset(name, data=odd, compression="gzip" if odd.ndim and odd.size else None)


def _odd_parquet(data: bytes, source: random.Random) -> bytes:
    rows = pl.read_parquet(io.BytesIO(data))
    name = source.choice(rows.columns)
    kind = source.randrange(8)
    if kind == 0:
        rows = rows.drop(name)
    elif kind == 1:
        other = source.choice(CELLS)
        rows = rows.rename({name: other}) if other not in rows.columns else rows
    elif kind == 2:
        rows = pl.concat([rows, rows.head(source.randrange(3))])
    elif kind == 3:
        rows = rows.head(source.randrange(2))
    elif rows.height:
        rows = rows.with_columns(_odd_column(rows[name], source))
    sink = io.BytesIO()
    (rows if rows.width else pl.DataFrame({"a": [1]})).write_parquet(sink)
    return sink.getvalue()


def _odd_column(values: pl.Series, source: random.Random) -> pl.Series:
    """A column of other values, or with another first value where its type allows that."""
    odd: list[Any] = [source.choice([None, *CELLS]), -1, 1.5, float("nan"), True, b"\xff", date(1, 1, 1)]
    odd += [timedelta(-1), Decimal("1.5"), [], [None], [[1]], {"a": 1}, [{"a": None}], ["a", "a"], 2**63 - 1]
    value = source.choice(odd)
    if source.randrange(2):
        try:
            return pl.Series(values.name, [value, *values.to_list()[1:]], dtype=values.dtype)
        except (TypeError, pl.exceptions.PolarsError):
            pass
    return pl.Series(values.name, [value] * len(values))


def _odd_cbor(data: bytes, source: random.Random) -> bytes:
    try:
        value = cbor2.loads(data)
    except (cbor2.CBORError, ValueError):
        return data[: len(data) // 2]
    if source.randrange(2):
        text = json.dumps(odd_within(value, source)).replace("\\ud800", "?")
        return cbor2.dumps(json.loads(text))
    name = source.choice(sorted(value))
    if source.randrange(2) and isinstance(value[name], dict) and value[name]:
        value[name][source.choice(sorted(value[name]))] = source.choice(_PACKED)
    else:
        value[name] = source.choice([*_PACKED, *ODD[:8]])
    return cbor2.dumps(value)
