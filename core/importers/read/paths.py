"""Values of JSON by paths, as the tables of importers name them.

A path is keys joined by dots (``extra.metadata.top_k``; one key may hold them all). Slashes part keys of
which the first that is there counts (``usage/usageDetails.input``), bars part whole ways, and ``=TEXT`` at
the end of one asks for a text that holds this one. A key in camelCase stands for all of its spellings.
"""

import re
from collections.abc import Iterator
from functools import cache, reduce


def values(holder: object, path: str) -> Iterator[object]:
    """Yield what the ways of a path lead to, in order, but what is absent or null."""
    for way, steps, text in _ways(path):
        value = holder.get(way) if isinstance(holder, dict) else None
        if value is None and steps:
            value = reduce(_first, steps, holder)
        if value is not None and (not text or text in str(value).upper()):
            yield value


def value(holder: object, path: str) -> object:
    """Give the first of `values`; None where there is none."""
    return next(values(holder, path), None)


def spellings(key: str) -> list[str]:
    """Spell a key as it stands, without capitals, and in snake_case: traceId, traceid, trace_id."""
    return list(dict.fromkeys((key, key.lower(), re.sub(r"(?=[A-Z])", "_", key).lower())))


@cache
def _ways(path: str) -> list[tuple[str, list[list[str]], str]]:
    """Take a path apart into its ways, each with the keys that its steps may have, and its text."""
    ways = []
    for part in path.split("|"):
        way, _, text = part.partition("=")
        steps = [step.split("/") for step in way.split(".")]
        forms = [keys + [form for key in keys for form in spellings(key)[1:]] for keys in steps]
        ways.append((way, forms if forms != [[way]] else [], text.upper()))
    return ways


def _first(holder: object, keys: list[str]) -> object:
    if not isinstance(holder, dict):
        return None
    return next((held for key in keys if (held := holder.get(key)) is not None), None)
