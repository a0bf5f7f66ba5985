"""Untrusted YAML of foreign tools: plain values only, no aliases (a page of them can unfold to gigabytes)."""

from __future__ import annotations

import yaml

from core.errors import InputError
from core.importers.read.jsons import DEEPEST, plain
from core.importers.read.limits import MIB
from core.importers.read.piece import Piece
from core.importers.read.text import place, shown, whole

MOST_BYTES = 4 * MIB
_TEXT_LIMIT = 100_000


def read_yaml(piece: Piece) -> object:
    """The one document of a YAML file: maps, lists, texts (dates too), finite numbers, booleans, None."""
    if piece.size > MOST_BYTES:
        raise InputError("A YAML file of this size is not read.", where=piece.name)
    text = whole(piece).decode()
    try:
        _check(text, piece.name)
        return plain(yaml.safe_load(text), _TEXT_LIMIT)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = place(piece.name, mark.line + 1 if mark else None)
        raise InputError(f"This is not valid YAML: {shown(error.problem, 120)}.", where=at) from error
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(f"This is not valid YAML: {shown(error, 120)}.", where=piece.name) from error


def _check(text: str, name: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            at = place(name, event.start_mark.line + 1)
            raise InputError("YAML with anchors or aliases is not read.", where=at, do="Write it out.")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise InputError(f"The YAML is nested deeper than {DEEPEST} levels.", where=name)
