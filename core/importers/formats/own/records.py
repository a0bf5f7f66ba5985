"""Collections, golden sets and runs of an export, checked: the file may have been edited by hand.

What the pages read of a stack, an environment or a manifest has to be of its kind; all else is kept as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from datetime import datetime
from typing import Any, TypeVar

from core.errors import InputError
from core.importers.read.jsons import Json, expect, json_rows, optional
from core.importers.read.piece import Piece
from core.importers.read.text import place, quoted, shown
from core.records import Collection, GoldenSet, Origin, Run, Stack

Record = TypeVar("Record", Collection, GoldenSet, Run)
_Small = TypeVar("_Small", Collection, GoldenSet)
_KINDS: Mapping[str, Mapping[str, type]] = {
    "spec": {
        "mode": str, "sparse": str, "embedder": str, "dim": int, "index": str, "fusion": dict,
        "reranker": str, "candidates": int, "name": str, "chunker": dict, "rewrite": str, "bm25": dict,
        "index_params": dict, "metric": str, "cut": dict, "dedup": dict, "chunks_sent": int, "generator": str,
    },
    "environment": {"cpu": str, "cores": int, "reported": str},
    "manifest": {"cost_scope": str, "scenario": str, "sweep": dict, "printed": dict},
}  # fmt: skip
"""What is read of each map, and of which kind it is."""
_METHOD = ("chunker", "cut", "dedup")
"""Settings that name a method."""
_LARGEST = 1 << 31


def collections(piece: Piece | None) -> tuple[Collection, ...]:
    """The collections of ``collections.jsonl``; none without it."""
    return tuple(_records(piece, lambda row, where: _small(Collection, row, where), "collection_id"))


def golden_sets(piece: Piece | None) -> tuple[GoldenSet, ...]:
    """The golden sets of ``golden_sets.jsonl``."""
    return tuple(_records(piece, lambda row, where: _small(GoldenSet, row, where), "golden_set_id"))


def runs(piece: Piece | None) -> tuple[Run, ...]:
    """The runs of ``runs.jsonl``."""
    return tuple(_records(piece, _run, "run_id"))


def _records(piece: Piece | None, make: Callable[[Json, str], Record], key: str) -> Iterator[Record]:
    """The records of a file, each once by its id."""
    if piece is None:
        return
    ids: set[str] = set()
    for line, row in json_rows(piece):
        where = place(piece.name, line)
        try:
            json.dumps(row, allow_nan=False)
            record = make(row, where)
        except (TypeError, ValueError) as error:
            raise InputError(f"The record cannot be used: {shown(error, 200)}.", where=where) from error
        own = getattr(record, key)
        if own in ids:
            raise InputError(f"The {key} {quoted(own)} stands twice.", where=where)
        ids.add(own)
        yield record


def _small(kind: type[_Small], row: Json, where: str) -> _Small:
    """A record whose fields are texts; those without a default have to be there."""
    known = {each.name: each for each in fields(kind)}
    _refuse_unknown(row, set(known), where)
    given = {
        name: expect(row, name, str, where) if each.default is MISSING else optional(row, name, str, where)
        for name, each in known.items()
    }
    return kind(**{name: value for name, value in given.items() if value is not None})


def _run(row: Json, where: str) -> Run:
    _refuse_unknown(row, {each.name for each in fields(Run)} - {"stack"} | {"spec"}, where)
    created = datetime.fromisoformat(expect(row, "created_at", str, where))
    if created.tzinfo is None:
        raise ValueError("created_at has no time zone")
    kept = {name: _kept(row, name, where) for name in _KINDS}
    return Run(
        run_id=expect(row, "run_id", str, where),
        collection_id=expect(row, "collection_id", str, where),
        stack=Stack(kept["spec"]),
        label=expect(row, "label", str, where),
        origin=Origin(expect(row, "origin", str, where)),
        pool=optional(row, "pool", str, where),
        environment=kept["environment"],
        manifest=kept["manifest"],
        created_at=created,
        chunking=optional(row, "chunking", str, where),
    )


def _refuse_unknown(row: Json, known: set[str], where: str) -> None:
    if strange := sorted(set(row) - known):
        raise InputError(f"A record of this kind has no {shown(strange[0])!r}.", where=where)


def _kept(row: Json, name: str, where: str) -> Json:
    """One of the maps of a run, with what is read of it of its kind."""
    held = expect(row, name, dict, where) if name == "spec" else optional(row, name, dict, where) or {}
    spot = f"{where}, key `{name}`"
    for key, kind in _KINDS[name].items():
        value: Any = optional(held, key, kind, spot)
        if kind is int and value is not None and not 0 <= value < _LARGEST:
            raise InputError(f"{key!r} is {value:,}.", where=spot)
        if key in _METHOD and value is not None:
            expect(value, "method", str, f"{where}, key `{name}.{key}`")
    return held
