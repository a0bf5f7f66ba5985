"""Parquet files of which every count can lie: a writer of Thrift's compact protocol, in which they stand."""

from __future__ import annotations

import gzip
import io
import struct
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

HUGE = 1 << 31


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _zigzag(value: int) -> bytes:
    return _varint((value << 1) ^ (value >> 63) if value >= 0 else ((-value) << 1) - 1)


def _thrift(fields: Mapping[int, object]) -> bytes:
    """A struct: field → int (32 bits), ("i64", int), bytes, list of structs or ints or bytes, or a struct."""
    out, last = bytearray(), 0
    for at, value in sorted(fields.items()):
        kind, data = _field(value)
        assert 0 < at - last < 16
        out += bytes([(at - last) << 4 | kind]) + data
        last = at
    return bytes(out) + b"\0"


def _field(value: object) -> tuple[int, bytes]:
    match value:
        case int():
            return 5, _zigzag(value)
        case ("i64", int() as long):
            return 6, _zigzag(long)
        case ("list", int() as claimed):  # of structs, none of which is there
            return 9, b"\xfc" + _varint(claimed)
        case bytes():
            return 8, _varint(len(value)) + value
        case list():
            kinds = {kind for kind, _ in map(_field, value)} or {5}
            head = bytes([len(value) << 4 | min(kinds)]) if len(value) < 15 else bytes([0xF0 | min(kinds)])
            more = b"" if len(value) < 15 else _varint(len(value))
            return 9, head + more + b"".join(data for _, data in map(_field, value))
        case _:
            assert isinstance(value, Mapping)
            return 12, _thrift(value)


_INT64, _BYTES, _PLAIN, _RLE, _DICTIONARY = 2, 6, 0, 3, 8
_NAMES = ("query_id", "passage_id", "rank")


def _parquet(
    pages: bytes,
    *,
    rows: int,
    kind: int = _BYTES,
    codec: int = 0,
    names: Sequence[str] = _NAMES,
    dictionary: int | None = None,
    footer: Mapping[int, object] | None = None,
    optional: bool = False,
) -> bytes:
    """A file of columns that all have the same pages.

    Args:
        pages: Page headers and their data.
        rows: As many it claims.
        kind: Physical type.
        codec: 0 plain, 1 Snappy, 2 gzip.
        dictionary: Length of the dictionary's page, if there is one.
        footer: Fields of the footer that differ.
        optional: Whether a cell may be null.
    """
    begin = 4
    text = {6: 0} if kind == _BYTES else {}
    schema: list[object] = [{4: b"schema", 5: len(names)}]
    schema += [{1: kind, 3: int(optional), 4: name.encode(), **text} for name in names]
    held: dict[int, object] = {}
    if dictionary is not None:
        held[11] = ("i64", begin)
    chunk = {
        2: ("i64", begin),
        3: {
            1: kind,
            2: [_PLAIN, _RLE, _DICTIONARY],
            3: [b"x"],
            4: codec,
            5: ("i64", rows),
            6: ("i64", len(pages)),
            7: ("i64", len(pages)),
            9: ("i64", begin + (dictionary or 0)),
            **held,
        },
    }
    columns = []
    for name in names:
        inside = {**chunk[3], 3: [name.encode()]}  # type: ignore[dict-item]
        columns.append({**chunk, 3: inside})
    group = {1: columns, 2: ("i64", len(pages) * len(names)), 3: ("i64", rows)}
    fields = {1: 1, 2: schema, 3: ("i64", rows), 4: [group], **(footer or {})}
    told = _thrift(fields)
    return b"PAR1" + pages + told + struct.pack("<I", len(told)) + b"PAR1"


def _page(
    values: int, data: bytes, *, encoding: int = _PLAIN, unpacked: int | None = None, dictionary: bool = False
) -> bytes:
    size = len(data) if unpacked is None else unpacked
    head = {1: values, 2: encoding} if dictionary else {1: values, 2: encoding, 3: _RLE, 4: _RLE}
    return _thrift({1: 2 if dictionary else 0, 2: size, 3: len(data), 7 if dictionary else 5: head}) + data


def _repeated(rows: int, text: bytes) -> bytes:
    """Every row the one text of a dictionary, said in a few bytes."""
    first = _page(1, struct.pack("<I", len(text)) + text, dictionary=True)
    data = b"\x01" + _varint(rows << 1) + b"\0"
    return _parquet(first + _page(rows, data, encoding=_DICTIONARY), rows=rows, dictionary=len(first))


def nulls(rows: int) -> bytes:
    """Every cell null."""
    levels = _varint(rows << 1) + b"\0"
    return _parquet(_page(rows, struct.pack("<I", len(levels)) + levels), rows=rows, optional=True)


def _cells(data: bytes, rows: int, encoding: int, **more: int) -> bytes:
    return _parquet(
        _page(rows, data, encoding=encoding, unpacked=more.get("unpacked")),
        rows=rows,
        kind=more.get("kind", _INT64),
        codec=more.get("codec", 0),
    )


def _written(table: pa.Table, **options: object) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


def _deep_parquet(levels: int) -> bytes:
    """A schema of groups in groups."""
    schema: list[object] = [{4: b"g", 5: 1, 3: 0} for _ in range(levels)] + [{1: _INT64, 3: 0, 4: b"x"}]
    return _parquet(_page(1, b"\0" * 8), rows=1, kind=_INT64, footer={2: schema})


def _compressed(text: str, rows: int) -> bytes:
    return _written(
        pa.table({name: [text] * rows for name in _NAMES}), compression="zstd", use_dictionary=False
    )


_ROW = struct.pack("<I", 1) + b"q"
PARQUET: dict[str, Callable[[], bytes]] = {
    "rows.parquet": lambda: _parquet(_page(1, _ROW), rows=(1 << 62)),
    "rows-negative.parquet": lambda: _parquet(_page(1, _ROW), rows=-5),
    "page-unpacks.parquet": lambda: _parquet(_page(1, _ROW, unpacked=HUGE - 1), rows=1, codec=1),
    "page-unpacks-plain.parquet": lambda: _parquet(_page(1, _ROW, unpacked=HUGE - 1), rows=1),
    "page-negative.parquet": lambda: _parquet(_page(1, _ROW, unpacked=-5), rows=1, codec=1),
    "page-values.parquet": lambda: _parquet(_page(HUGE - 1, _ROW), rows=1),
    "snappy.parquet": lambda: _parquet(
        _page(1, b"\xff\xff\xff\xff\x0f" + _ROW, unpacked=HUGE - 1), rows=1, codec=1
    ),
    "gzip.parquet": lambda: _parquet(
        _page(1, gzip.compress(b"\0" * (1 << 26)), unpacked=1 << 26), rows=1, codec=2
    ),
    "dictionary-values.parquet": lambda: _parquet(
        _page(HUGE - 1, _ROW, dictionary=True), rows=1, dictionary=4
    ),
    "one-text.parquet": lambda: _repeated(60_000_000 // 3, b"q" * 10),
    "one-long-text.parquet": lambda: _repeated(1_000_000, b"q" * (1 << 20)),
    "nulls.parquet": lambda: nulls(60_000_000 // 3),
    "text-length.parquet": lambda: _parquet(_page(1, struct.pack("<I", 0xFFFFFFFF) + b"q"), rows=1),
    "text-half.parquet": lambda: _parquet(_page(2, struct.pack("<I", 1 << 30) + b"q"), rows=2),
    "delta.parquet": lambda: _cells(b"\x80\x01\x04" + _varint(1 << 60) + b"\0", 1, 5),
    "delta-blocks.parquet": lambda: _cells(_varint(1 << 40) + _varint(1 << 30) + _varint(9) + b"\0", 9, 5),
    "delta-lengths.parquet": lambda: _cells(b"\x80\x01\x04" + _varint(HUGE) + b"\0", 1, 6, kind=_BYTES),
    "delta-bytes.parquet": lambda: _cells(b"\x80\x01\x04" + _varint(HUGE) + b"\0", 1, 7, kind=_BYTES),
    "split.parquet": lambda: _cells(b"\0" * 8, 40_000_000 // 3, 9),
    "rle-bits.parquet": lambda: _cells(b"\xff" + _varint(HUGE) + b"\0", 3, _DICTIONARY),
    "deep.parquet": lambda: _deep_parquet(20_000),
    "groups.parquet": lambda: _parquet(_page(1, _ROW), rows=1, footer={4: ("list", HUGE - 1)}),
    "schema.parquet": lambda: _parquet(_page(1, _ROW), rows=1, footer={2: ("list", HUGE - 1)}),
    "columns.parquet": lambda: _parquet(_page(1, _ROW), rows=1, names=[f"c{at}" for at in range(15_000)]),
    "footer.parquet": lambda: b"PAR1" + _ROW + struct.pack("<I", 0xFFFFFFF0) + b"PAR1",
    "zstd.parquet": lambda: _compressed("q" * (1 << 20), 40),
    "lists.parquet": lambda: _written(
        pa.table({"query_id": ["q"] * 9, "passage_id": [[None] * 4_000_000] * 9})
    ),
    "cut.parquet": lambda: _repeated(9, b"q")[:-20],
}
