"""A file of objects, as tools export them: one JSON list, or JSON lines."""

from __future__ import annotations

from collections.abc import Iterator

from core.errors import InputError
from core.importers.read.jsons import Json, at, json_rows, kind_of_value, read_json
from core.importers.read.piece import Piece
from core.importers.read.text import place


def objects(piece: Piece, *path: str) -> Iterator[tuple[str, Json]]:
    """The objects of a file with where each stands, in order."""
    head = piece.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not head.startswith(b"[") and not path:
        for line, value in json_rows(piece):
            yield place(piece.name, line), value
        return
    whole = read_json(piece)
    for key in path:
        whole = whole.get(key) if isinstance(whole, dict) else whole
    if not isinstance(whole, list):
        where = at(piece.name, *path)
        raise InputError(f"It is {kind_of_value(whole)}, not a list.", where=where)
    for index, value in enumerate(whole):
        where = at(piece.name, *path, index)
        if not isinstance(value, dict):
            raise InputError(f"It is {kind_of_value(value)}, not an object.", where=where)
        yield where, value
