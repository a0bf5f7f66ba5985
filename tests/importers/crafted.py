"""Small files made to take all memory, all time or the process: bombs, counts that lie, depth, cut ends.

`CRAFTED`: name of the file → what makes it. None is larger than a few MB; each is either read or refused.
"""

# ruff: noqa: S608 - statements of our own words

from __future__ import annotations

import gzip
import io
import json
import random
import re
import sqlite3
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping

import cbor2
import h5py
import lz4.frame
import numpy as np
import pyarrow as pa

from tests.importers.crafted_parquet import PARQUET, nulls
from tests.importers.formats.test_excel import SHEET, book, changed
from tests.importers.formats.test_optuna import SCHEMA, storage
from tests.importers.helpers import zipped

MANY = 40_000_000


def _gz(before: bytes, block: bytes, times: int, after: bytes = b"") -> bytes:
    """A gzip file of members, so that a block is packed once for all its repetitions."""
    at_once = max(1, (1 << 20) // len(block))
    middle = gzip.compress(block * at_once) * (times // at_once)
    return gzip.compress(before) + middle + gzip.compress(after)


RUN = b"query_id,passage_id,rank\n"

_NOISE = random.Random(28).randbytes(1 << 20).hex().encode()  # noqa: S311 - of which nothing can be packed

# Workbooks


def _parts(**changes: bytes) -> bytes:
    """A workbook with parts added or replaced; `__` in a name stands for a slash."""
    source = zipfile.ZipFile(io.BytesIO(book()))
    members: dict[str, str | bytes] = {name: source.read(name) for name in source.namelist()}
    return zipped(members | {f"{name.replace('__', '/')}.xml": part for name, part in changes.items()})


def _shared(texts: bytes, count: int) -> bytes:
    return _parts(xl__sharedStrings=b'<sst uniqueCount="%d" count="%d">%s</sst>' % (count, count, texts))


def _counted() -> bytes:
    """A workbook that claims four billion shared texts."""
    text = zipfile.ZipFile(io.BytesIO(book())).read("xl/sharedStrings.xml")
    return _parts(xl__sharedStrings=re.sub(rb'nique[Cc]ount="\d+"', b'niqueCount="4294967295"', text))


def _far(cell: bytes) -> bytes:
    return changed(book(), SHEET, (b"</sheetData>", cell + b"</sheetData>"))


def _sheet(body: bytes, head: bytes = b"") -> bytes:
    return _parts(xl__worksheets__sheet1=b"<worksheet>%s<sheetData>%s</sheetData></worksheet>" % (head, body))


def _texts_by_the_thousand() -> bytes:
    """One text of a megabyte in 20,000 cells."""
    cells = b"".join(b'<row r="%d"><c a=">" t="s"><v>0</v></c></row>' % at for at in range(1, 20_000))
    source = _sheet(cells)
    text = b'<sst count="1" uniqueCount="1"><si><t>%s</t></si></sst>' % (b"x" * (1 << 20))
    members = {name: data for name, data in _members(source).items() if name != "xl/sharedStrings.xml"}
    return zipped(members | {"xl/sharedStrings.xml": text})


def _members(data: bytes) -> dict[str, str | bytes]:
    source = zipfile.ZipFile(io.BytesIO(data))
    return {name: source.read(name) for name in source.namelist()}


def _sheets() -> bytes:
    """Fifty thousand sheets, all of them the same part."""
    listed = b"".join(b'<sheet name="s%d" sheetId="%d" r:id="rId1"/>' % (at, at) for at in range(1, 50_000))
    return changed(book(), "xl/workbook.xml", (b"</sheets>", listed + b"</sheets>"))


WORKBOOKS: dict[str, Callable[[], bytes]] = {
    "shared-count.xlsx": _counted,
    "angle-in-attribute.xlsx": lambda: _far(b'<row r="9"><c a=">" r="XFD1048576"><v>1</v></c></row>'),
    "row-in-attribute.xlsx": lambda: _far(
        b'<row a=">" r="1048576"><c a=">" r="XFD1048576"><v>1</v></c></row>'
    ),
    "without-r.xlsx": lambda: _far(b"<row>" + b"<c><v>1</v></c>" * 20_000 + b"</row>"),
    "wide-and-long.xlsx": lambda: _far(
        b'<row r="2">' + b"<c><v>1</v></c>" * 16_000 + b'</row><row a=">" r="1048576"><c><v>1</v></c></row>'
    ),
    "shared-empty.xlsx": lambda: _shared(b"<si/>" * 3_000_000, 3_000_000),
    "shared-texts.xlsx": _texts_by_the_thousand,
    "dimension.xlsx": lambda: _sheet(
        b'<row r="1"><c r="A1"><v>1</v></c></row>', b'<dimension ref="A1:XFD1048576"/>'
    ),
    "dimension-beyond.xlsx": lambda: _sheet(b"", b'<dimension ref="A1:ZZZZZZZ4294967295"/>'),
    "nested.xlsx": lambda: _sheet(b"<row>" * 1_000_000),
    "inline.xlsx": lambda: _sheet(
        b'<row><c t="inlineStr"><is>' + b"<r><t>x</t></r>" * 2_000_000 + b"</is></c></row>"
    ),
    "merged.xlsx": lambda: changed(
        book(),
        SHEET,
        (
            b"</sheetData>",
            b'</sheetData><mergeCells count="4294967295"><mergeCell ref="A1:XFD1048576"/></mergeCells>',
        ),
    ),
    "sheets.xlsx": _sheets,
    "styles.xlsx": lambda: _parts(
        xl__styles=b'<styleSheet><cellXfs count="4294967295">'
        + b'<xf numFmtId="0"/>' * 1_000_000
        + b"</cellXfs></styleSheet>"
    ),
    "cut.xlsx": lambda: book()[:-40],
}

# HDF5


def _hdf5(fill: Callable[[h5py.File], object]) -> bytes:
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        fill(file)
    return buffer.getvalue()


def _result(shape: tuple[int, int], **options: object) -> bytes:
    """A result of so many queries and neighbours, of which nothing but the shape may be stored."""

    def fill(file: h5py.File) -> None:
        file.create_dataset("times", shape=shape[:1], dtype="f4", chunks=(min(shape[0], 1 << 20),), **options)
        file.create_dataset(
            "neighbors", shape=shape, dtype="i1", chunks=(min(shape[0], 1 << 16), shape[1]), **options
        )
        file.attrs.update({"algo": "a", "dataset": "d", "name": "n"})

    return _hdf5(fill)


def _packed(rows: int) -> bytes:
    def fill(file: h5py.File) -> None:
        file.create_dataset("times", data=np.zeros(rows, "f4"), compression="gzip")
        tile = np.tile(np.arange(100, dtype="i1"), (rows, 1))
        file.create_dataset("neighbors", data=tile, compression="gzip", compression_opts=9)

    return _hdf5(fill)


def _loop(file: h5py.File) -> None:
    file.create_group("g")["again"] = file["/"]
    file["times"], file["neighbors"] = file["g"], file["g"]


def _attributes(file: h5py.File) -> None:
    file["times"], file["neighbors"] = np.zeros(2, "f4"), np.zeros((2, 2), "i4")
    for at in range(250):
        file.attrs[f"a{at}"] = "x" * 1_000


def _swapped(data: bytes, old: int, new: int) -> bytes:
    """A number of 64 bits replaced wherever it stands."""
    return data.replace(struct.pack("<Q", old), struct.pack("<Q", new))


HDF5: dict[str, Callable[[], bytes]] = {
    "unstored.hdf5": lambda: _result((640_000, 100)),
    "unstored-huge.hdf5": lambda: _result((1 << 40, 100)),
    "packed.hdf5": lambda: _packed(600_000),
    "shape.hdf5": lambda: _swapped(_result((12_345, 7)), 12_345, 1 << 60),
    "chunks.hdf5": lambda: _result((12_345, 7), compression="gzip").replace(
        struct.pack("<I", 12_345), struct.pack("<I", 0xFFFFFFF0)
    ),
    "loop.hdf5": lambda: _hdf5(_loop),
    "attributes.hdf5": lambda: _hdf5(_attributes),
    "cut.hdf5": lambda: _packed(50)[:-300],
    "bomb.hdf5.gz": lambda: _gz(b"\x89HDF\r\n\x1a\n", b"\0", 200_000_000),
}

# SQLite


def _database(sql: str) -> bytes:
    made = sqlite3.connect(":memory:")
    made.executescript(sql)
    made.commit()
    return made.serialize()


def _computed(text: str, trials: int = 250) -> bytes:
    """A storage in which the value of every attribute is computed from nothing when it is read."""
    schema = SCHEMA.replace(
        "key VARCHAR(512), value_json TEXT", f"key VARCHAR(512), value_json TEXT AS ({text})"
    )
    rows = f"WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {trials})"
    return _database(f"""{schema}
        INSERT INTO trials {rows} SELECT i, i, 1, 'COMPLETE', NULL, NULL FROM n;
        INSERT INTO trial_user_attributes {rows} SELECT i, i, 'flow' FROM n;""")


def _pages(count: int) -> bytes:
    """A storage whose header claims so many pages."""
    data = bytearray(storage())
    data[28:32] = struct.pack(">I", count)
    return bytes(data)


def _trials(rows: int) -> bytes:
    numbers = f"WITH n(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})"
    return storage(extra=f"INSERT INTO trials {numbers} SELECT i, i, 1, 'COMPLETE', NULL, NULL FROM n;")


SQLITE: dict[str, Callable[[], bytes]] = {
    "computed.db": lambda: _computed("""'"' || printf('%.*c', 9000000, 'x') || '"'"""),
    "computed-lists.db": lambda: _computed(
        """'[' || replace(hex(zeroblob(1500000)), '0', '[],') || '1]'""", 20
    ),
    "computed-blob.db": lambda: _computed("zeroblob(900000000)"),
    "pages.db": lambda: _pages(0xFFFFFFFE),
    "trials.db": lambda: _trials(100_000),
    "view.db": lambda: _database(
        SCHEMA.replace("CREATE TABLE trials (", "CREATE TABLE trials_ (")
        + "CREATE VIEW trials AS WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT i AS trial_id, i AS number, 1 AS study_id, 'COMPLETE' AS state FROM n;"
    ),
    "tables.db": lambda: _database("".join(f"CREATE TABLE t{at} (x);" for at in range(900)) + SCHEMA),
    "attribute-deep.db": lambda: storage(
        [(1, 0, "COMPLETE", {}, (0.5,))],
        f"INSERT INTO trial_user_attributes VALUES (NULL, 1, 'flow', '{'[' * 100_000}');",
    ),
    "attribute-large.db": lambda: storage(
        [(1, 0, "COMPLETE", {}, (0.5,))],
        f"INSERT INTO trial_user_attributes VALUES (NULL, 1, 'flow', '[{'[],' * 3_000_000}1]');",
    ),
    "cut.db": lambda: storage()[:-5000],
}

# Text: JSON, lines, tables, runs

_TEST_RUN = b'{"testCases":[{"input":"a","actualOutput":"b","metricsData":[]}],"x":'


def _ragged(columns: int, rows: int) -> bytes:
    """A wide header above rows of one cell each."""
    names = ["query_id", "passage_id", "rank", *(f"c{at}" for at in range(columns))]
    return ",".join(names).encode() + b"\n" + b"q\n" * rows


JSONS: dict[str, Callable[[], bytes]] = {
    "lists.json.gz": lambda: _gz(b"[", b"[],", MANY, b"[]]"),
    "lists.jsonl.gz": lambda: _gz(b"", b'{"a":[' + b"[]," * 1_000_000 + b"[]]}\n", 20),
    "lists.json": lambda: b"[" + b"[]," * 1_300_000 + b"[]]",
    "testcases.json.gz": lambda: _gz(_TEST_RUN + b"[", b"[],\n", MANY, b'"%s"]}' % _NOISE),
    "testcases-texts.json.gz": lambda: _gz(_TEST_RUN + b"[", b'"a",\n', 45_000_000, b'"%s"]}' % _NOISE),
    "ranx.json.gz": lambda: _gz(
        b'{"q1":{"a":0.9,"b":0.8,"c":0.7},"q2":{"a":0.5,"b":0.4',
        b',\n"b":0.3',
        20_000_000,
        b'},"%s":{"a":1.5}}' % _NOISE,
    ),
    "mteb.json.gz": lambda: _gz(
        b'{"mteb_version":"1","task_name":"t","scores":{"test":[{"hf_subset":"a","main_score":1,"x":[',
        b"[],\n",
        MANY,
        b'"%s"]}]}}' % _NOISE,
    ),
    "deep.json": lambda: b"[" * 2_000_000,
    "deep-objects.json": lambda: b'{"a":' * 400_000,
    "deep-testcases.json": lambda: _TEST_RUN + b"[" * 900_000 + b"]" * 900_000 + b"}",
    "deep.jsonl": lambda: (
        b'{"query_id":"q","passage_id":"a","rank":1,"x":' + b"[" * 900_000 + b"]" * 900_000 + b"}\n"
    ),
    "digits.json": lambda: _TEST_RUN + b"9" * 4_000_000 + b"}",
    "digits.jsonl": lambda: b'{"query_id":"q","passage_id":"a","rank":' + b"9" * 4_000_000 + b"}\n",
    "exponent.jsonl": lambda: b'{"query_id":"q","passage_id":"a","rank":1e999999999}\n',
    "keys.jsonl": lambda: b"".join(b'{"query_id":"q","k%d":1}\n' % at for at in range(60_000)),
    "keys-below-one.jsonl": lambda: b"".join(
        b'{"query_id":"q%d","passage_id":"a","rank":1,"x":{"k%d":1}}\n' % (at, at) for at in range(60_000)
    ),
    "keys-of-a-table.jsonl": lambda: b"".join(
        b'{"query_id":"q%d","passage_id":"a","rank":1,"k%d":1}\n' % (at, at) for at in range(60_000)
    ),
    "keys.json": lambda: _TEST_RUN + b"{" + b",".join(b'"k%d":1' % at for at in range(300_000)) + b"}}",
    "cut.json": lambda: json.dumps({"testCases": [{"input": "a" * 100}] * 9}).encode()[:-99],
}
TEXTS: dict[str, Callable[[], bytes]] = {
    "ragged.csv": lambda: _ragged(9_000, 300_000),
    "ragged-some.csv": lambda: _ragged(900, 30_000),
    "columns.csv": lambda: b",".join(b"c%d" % at for at in range(400_000)) + b"\nq\n",
    "commas.csv": lambda: RUN + b"q," * 3_000_000,
    "quote.csv": lambda: RUN + b'"' + b"q,a,1\n" * 600_000,
    "quotes.csv": lambda: RUN + b'"' * 5_000_001 + b"\n",
    "cells.csv": lambda: RUN + b"".join(b"q,%d,1\n" % at for at in range(300_000)),
    "blank.csv.gz": lambda: _gz(RUN, b"\n", 200_000_000, _NOISE),
    "line.csv.gz": lambda: _gz(RUN, b"q", 200_000_000, _NOISE),
    "run.txt.gz": lambda: _gz(b"", b"".join(b"q Q0 d%d 1 1 t\n" % at for at in range(9)), 1_000_000),
    "line.txt": lambda: b"q1 Q0 a 1 9.5 bm25 " + b" " * 5_000_000 + b"\n",
    "digits.txt": lambda: b"q1 Q0 a 1 " + b"9" * 3_000_000 + b" t\nq1 Q0 b " + b"9" * 3_000_000 + b" 1 t\n",
}

# Archives and what no format is


def _overlapping(times: int) -> bytes:
    """An archive whose members are all the same bytes."""
    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = packed.compress(b"q1 Q0 a 1 9.5 t\n" * 2_000_000) + packed.flush()
    size, crc = 32_000_000, zlib.crc32(b"q1 Q0 a 1 9.5 t\n" * 2_000_000)
    sizes = struct.pack("<III", crc, len(data), size)
    out = (
        b"PK\3\4" + struct.pack("<HHHHH", 20, 0, 8, 0, 0) + sizes + struct.pack("<HH", 5, 0) + b"a.txt" + data
    )
    central = b""
    for at in range(times):
        name = b"%05d" % at
        central += b"PK\1\2" + struct.pack("<HHHHHH", 20, 20, 0, 8, 0, 0) + sizes
        central += struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, 0) + name
    end = struct.pack("<HHHHIIH", 0, 0, times, times, len(central), len(out), 0)
    return out + central + b"PK\5\6" + end


def _lying(data: bytes, size: int) -> bytes:
    """An archive that claims of its members to unfold to so many bytes."""
    at = data.rindex(b"PK\1\2")
    return data[: at + 24] + struct.pack("<I", size) + data[at + 28 :]


def _nested(depth: int) -> bytes:
    data = zipped({"run.txt": "q1 Q0 a 1 9.5 t\n"})
    for at in range(depth):
        data = zipped({f"{at}.zip": data})
    return data


def _tar(mode: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        info = tarfile.TarInfo("../run.txt")
        info.size = 1 << 22
        archive.addfile(info, io.BytesIO(b"\0" * (1 << 22)))
    return buffer.getvalue()


def _npy(shape: str) -> bytes:
    head = f"{{'descr': '|O', 'fortran_order': False, 'shape': ({shape},)}}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head


def _arrow() -> bytes:
    buffer = io.BytesIO()
    table = pa.table({"query_id": ["q"], "passage_id": ["a"], "rank": [1]})
    with pa.ipc.new_file(buffer, table.schema) as file:
        file.write_table(table)
    return buffer.getvalue().replace(struct.pack("<q", 1), struct.pack("<q", 1 << 60))


ARCHIVES: dict[str, Callable[[], bytes]] = {
    "bomb.parquet.gz": lambda: _gz(b"PAR1", b"\0", 200_000_000, b"PAR1"),
    "overlapping.zip": lambda: _overlapping(200),
    "members.zip": lambda: zipped(dict.fromkeys(map(str, range(21_000)), b"")),
    "lying.zip": lambda: _lying(zipped({"run.txt": b"q1 Q0 a 1 9.5 t\n" * 9_000_000}), 100),
    "lying-huge.zip": lambda: _lying(zipped({"run.txt": b"q1 Q0 a 1 9.5 t\n"}), 0xFFFFFFF0),
    "nested.zip": lambda: _nested(50),
    "workbook-in.zip": lambda: zipped({"a.xlsx": _counted()}),
    "parquet-in.zip": lambda: zipped({"a.parquet": nulls(60_000_000 // 3)}),
    "json-in.zip": lambda: zipped({"a.json": _TEST_RUN + b"[" + b"[]," * 10_000_000 + b"[]]}"}),
    "gzip-in.zip": lambda: zipped({"a.json.gz": _gz(b"[", b"[],", MANY, b"[]]")}),
    "own.zip": lambda: zipped(
        {"manifest.json": b'{"format": "clq", "version": 1}', "rankings.parquet": nulls(60_000_000 // 3)}
    ),
    "gzip-in-gzip.json.gz": lambda: gzip.compress(_gz(b"[", b"[],", MANY, b"[]]")),
    "frame.json.lz4": lambda: lz4.frame.compress(b"[" + b"[]," * MANY + b"[]]"),
    "cut.gz": lambda: gzip.compress(b"q1 Q0 a 1 9.5 t\n" * 999)[:-9],
    "run.tar": lambda: _tar("w:"),
    "run.tar.gz": lambda: _tar("w:gz"),
    "object.npy": lambda: _npy("4294967295"),
    "arrays.npz": lambda: zipped({"a.npy": _npy("1152921504606846975")}),
    "table.arrow": _arrow,
    "long-map.lz4": lambda: lz4.frame.compress(
        b"\xa1\x61q\xbb\x00\x00\x00\x01\x00\x00\x00\x00" + b"\x61a\x01" * 9
    ),
    "long-text.lz4": lambda: lz4.frame.compress(b"\xa1\x61q\xa1\x7b" + b"\x7f" * 8 + b"a"),
    "maps.lz4": lambda: lz4.frame.compress(cbor2.dumps({"q": {"a": 1.0}})[:-9] + b"\xa0" * 9),
}

CRAFTED: Mapping[str, Callable[[], bytes]] = {
    **WORKBOOKS,
    **PARQUET,
    **HDF5,
    **SQLITE,
    **JSONS,
    **TEXTS,
    **ARCHIVES,
}
