"""Rows that a tool exported: a JSON list, JSON lines, CSV or Parquet, whose cells of text may hold JSON."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from core.errors import InputError
from core.importers.account import Parts
from core.importers.read.jsons import Json, json_rows, kind_of_value, parsed, read_json
from core.importers.read.outline import outline
from core.importers.read.piece import Piece
from core.importers.read.tabular import columns, kind_of, read_table
from core.importers.read.text import place

WRAPPERS = ("data", "runs", "observations", "spans", "traces")
"""Keys under which an export may hold its list."""
_LITERAL_BYTES = 1_000_000
_BROKEN = (ValueError, SyntaxError, MemoryError, RecursionError)


def held_under(parts: Parts) -> Parts:
    """The parts of a row, also where the rows stand under one of the keys that may hold them."""
    return {f"{place}{name}": why for place in ("", *(f"{each}." for each in WRAPPERS))
            for name, why in parts.items()}  # fmt: skip


def paths_of(piece: Piece) -> frozenset[str]:
    """Names of columns, or keys of the first objects (nested ones joined by dots), from the head."""
    return _paths(piece.head, piece)


@lru_cache(maxsize=64)
def _paths(head: bytes, piece: Piece) -> frozenset[str]:  # noqa: ARG001  (tells namesakes apart)
    seen = outline(piece)
    if seen:
        roots = ("[]", *(f"{name}[]" for name in WRAPPERS), "")
        root = next((each for each in roots if "object" in seen.get(each, ())), None)
        if root is None:
            return frozenset()
        return frozenset(path[len(root) :].lstrip(".") for path in seen if path.startswith(root))
    return frozenset(columns(piece))


def entries(piece: Piece) -> Iterator[tuple[str, Json]]:
    """The rows of an export with where each stands, in order."""
    kind = kind_of(piece)
    head = piece.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] in (b"[", b"{"):
        yield from _from_json(piece, lines=kind == "jsonl" and _is_lines(head))
        return
    if kind is None:
        raise InputError("This is neither JSON nor a table.", where=piece.name)
    table = read_table(piece, kind)
    for line, row in zip(table.lines, table.rows.iter_rows(named=True), strict=True):
        yield place(piece.name, line), {key: _cell(value) for key, value in row.items()}


def _is_lines(head: bytes) -> bool:
    """Whether the first line is an object of its own, and another one follows."""
    first, _, rest = head.partition(b"\n")
    return first.rstrip().endswith(b"}") and (rest.lstrip()[:1] in (b"{", b""))


def _from_json(piece: Piece, *, lines: bool) -> Iterator[tuple[str, Json]]:
    if lines:
        for line, value in json_rows(piece):
            held = _held(value)
            for each in held if held is not None else [value]:
                if not isinstance(each, dict):
                    raise InputError("It is not an object.", where=place(piece.name, line))
                yield place(piece.name, line), each
        return
    whole = read_json(piece)
    held = whole if isinstance(whole, list) else _held(whole)
    for index, each in enumerate(held if held is not None else [whole]):
        where = f"{piece.name}, entry {index + 1}"
        if not isinstance(each, dict):
            raise InputError(f"It is {kind_of_value(each)}, not an object.", where=where)
        yield where, each


def _held(value: object) -> list[object] | None:
    """The list in an object that does nothing but hold it (and where the next page is)."""
    if not isinstance(value, dict) or "id" in value:
        return None
    found = [value[key] for key in WRAPPERS if isinstance(value.get(key), list)]
    return found[0] if len(found) == 1 else None


def _cell(value: object) -> object:
    """A text cell that holds JSON, or what Python prints of lists and maps, as the value it was."""
    if not isinstance(value, str) or value[:1] not in ("{", "[", '"') or len(value) > _LITERAL_BYTES:
        return value
    try:
        return parsed(value, "cell")
    except InputError:
        pass
    try:
        made: object = ast.literal_eval(value)
    except _BROKEN:
        return value
    return made if isinstance(made, dict | list) else value
