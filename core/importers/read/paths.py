"""Values of JSON by paths, as the tables of importers name them.

A path is keys joined by dots (``extra.metadata.top_k``; a single key may also contain dots). Slashes separate
alternative keys, of which the first present one counts (``usage/usageDetails.input``), bars separate whole
paths, and ``=TEXT`` at the end of one requires a text that contains TEXT. camelCase stands for all spellings.

`values` takes whatever is there; a `PathRow` refuses values of the wrong kind. Its paths have no
alternatives, and end in ``!`` if a value is required.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, reduce
from itertools import product
from typing import Any

from core.errors import InputError
from core.importers.read.jsons import items, mapping
from core.importers.read.text import shown

ValueReader = Callable[[object, str, str], Any]
"""Reads the value of a key: object, key, where. None if it is absent, InputError if it is of another kind."""
Fields = Mapping[str, "tuple[str, ValueReader | Fields]"]
"""Name of a field → its path, and its reader; or the fields of the objects in a list at the path."""


def values(holder: object, path: str) -> Iterator[object]:
    """Yield the values at the alternatives of a path, in order, skipping absent and null ones."""
    for way, steps, text in _ways(path):
        value = holder.get(way) if isinstance(holder, dict) else None
        if value is None and steps:
            value = reduce(_first, steps, holder)
        if value is not None and (not text or text in str(value).upper()):
            yield value


def value(holder: object, path: str) -> object:
    """Return the first of `values`, or None if there are none."""
    return next(values(holder, path), None)


def spellings(key: str) -> list[str]:
    """Return a key unchanged, without capitals, and in snake_case: traceId, traceid, trace_id."""
    return list(dict.fromkeys((key, key.lower(), re.sub(r"(?=[A-Z])", "_", key).lower())))


@cache
def _ways(path: str) -> list[tuple[str, list[list[str]], str]]:
    """Split a path into its alternatives, each with the possible keys of its steps, and its text."""
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


@dataclass(frozen=True, slots=True)
class PathRow:
    """An object whose fields a table names; each is read and checked on access."""

    holder: object
    table: Fields
    where: str  # file and place, for messages

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401
        """Return a field, or None if it, or a key on the way to it, is absent or null.

        Raises:
            InputError: The value is of another kind, or is required but absent.
        """
        path, reader = self.table[name]
        held: Any = self.holder
        where = self.where
        *above, last = _steps(path)
        final = reader if callable(reader) else items
        for keys in (*above, last):
            read = final if keys is last else mapping
            held = next((value for key in keys if (value := read(held, key, where)) is not None), None)
            if held is None and path.endswith("!"):
                raise InputError(f"There is no {shown(keys[0])!r} here.", where=where)
            if held is None:
                return None
            where = f"{where}, {keys[0]}"
        if callable(reader):
            return held
        return [PathRow(entry, reader, f"{where} {place}") for place, entry in enumerate(held)]


def keys_of(table: Fields, within: str = "") -> Iterator[str]:
    """Yield the keys that fields use, in all spellings; `within` precedes each."""
    for path, reader in table.values():
        for steps in product(*_steps(path)):
            key = within + ".".join(steps)
            yield from (key,) if callable(reader) else keys_of(reader, f"{key}.")


@cache
def _steps(path: str) -> tuple[list[str], ...]:
    steps = path.removesuffix("!").split(".")
    return tuple([form for key in step.split("/") for form in spellings(key)] for step in steps)
