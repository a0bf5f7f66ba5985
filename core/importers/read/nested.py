"""Rows of a JSON file that is one value: a list of objects, below a key or not, or an object a stack."""

from __future__ import annotations

from core.errors import InputError
from core.importers.read.jsons import Json
from core.importers.read.text import listed

_USUAL = ("results", "rows", "data", "records", "items", "runs", "stacks", "experiments", "evaluations")
"""Keys below which rows stand, where others hold lists of objects as well."""
_STACK = "stack"  # Column of what was a key


def rows_in(value: object, name: str) -> list[Json]:
    """Return the rows that a JSON value holds; none where it holds none.

    Args:
        value: A list of objects; an object with one such list; or an object with the figures of a stack below
            its name.
        name: File, for messages.

    Raises:
        InputError: Several keys hold lists of objects.
    """
    if isinstance(value, list):
        return value if value and all(isinstance(row, dict) for row in value) else []
    if not isinstance(value, dict):
        return []
    lists = {key: below for key, below in value.items() if isinstance(below, list) and rows_in(below, name)}
    usual = [key for key in lists if key.lower() in _USUAL]
    if len(lists) == 1 or len(usual) == 1:
        return list(lists[(usual or list(lists))[0]])
    if lists:
        do = "Save the list of results as a file of its own."
        raise InputError(f"Several keys hold lists of rows: {listed(list(lists))}.", where=name, do=do)
    return _by_key(value, name)


def _by_key(value: Json, name: str) -> list[Json]:
    """Return the rows of an object without lists of them: itself, or one for each of its keys."""
    objects = {key: below for key, below in value.items() if isinstance(below, dict) and below}
    deep = [key for key, below in objects.items() if all(isinstance(each, dict) for each in below.values())]
    if len(deep) == 1 and (len(objects) == 1 or deep[0].lower() in _USUAL):
        return _by_key(objects[deep[0]], name)
    if len(objects) < len(value) or not objects:
        return [value] if objects else []
    return [{_STACK: key, **below} for key, below in objects.items()]
