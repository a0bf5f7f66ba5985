"""Every chunker, and what a chunker of a specification means. A new one is its file, its tests and a line."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from core.errors import InputError, UnknownNameError
from core.params import Value, read_options
from core.pipeline.chunk.base import Chunker
from core.pipeline.chunk.methods import FIXED, NONE, PAGE, PARAGRAPH, RECURSIVE, SENTENCE
from core.records import JsonMap, canonical_json, short_hash

CHUNKERS: Mapping[str, Chunker] = MappingProxyType(
    {each.method: each for each in (FIXED, SENTENCE, RECURSIVE, PARAGRAPH, PAGE, NONE)}
)
_METHOD = "method"


def canonical(chunker: JsonMap) -> dict[str, Value]:
    """A chunker with all of its parameters: what stands in ``Stack.spec["chunker"]``."""
    method = str(chunker.get(_METHOD, ""))
    if method not in CHUNKERS:
        raise UnknownNameError("chunker", method, CHUNKERS)
    where = f"chunker {method}"
    given = {name: _word(value) for name, value in chunker.items() if name != _METHOD}
    options = read_options(CHUNKERS[method].params, given, where=where)
    overlap, size = options.get("overlap", 0), options.get("size", 0)
    if isinstance(overlap, int) and isinstance(size, int) and overlap and overlap * 2 >= size:
        raise InputError(
            f"overlap={overlap} is not below half of size={size}.",
            where=where,
            do="Lower the overlap or raise the size.",
        )
    return {_METHOD: method, **options}


def _word(value: object) -> object:
    return ("no", "yes")[value] if isinstance(value, bool) else value


def chunking_name(chunker: JsonMap) -> str | None:
    """The name of what a chunker makes: method, size and four digits that stand for all parameters."""
    whole = canonical(chunker)
    if whole[_METHOD] == NONE.method:
        return None
    return f"{whole[_METHOD]}-{whole['size']}-{short_hash(canonical_json(whole))[:4]}"


def is_late(chunker: JsonMap | None) -> bool:
    """Whether vectors come from whole documents (late chunking); only encoders with token vectors fit."""
    return chunker is not None and canonical(chunker).get("late") == "yes"
