"""Rows of a JSON file that is one value: a list of objects, possibly below a key, or an object per stack."""

from __future__ import annotations

from core.errors import InputError
from core.importers.read.jsons import Json
from core.importers.read.text import listed

_USUAL = ("results", "rows", "data", "records", "items", "runs", "stacks", "experiments", "evaluations")
"""Keys under which rows are found, even if others hold lists of objects as well."""
_STACK = "stack"  # Column made of keys


def rows_in(value: object, name: str) -> tuple[list[Json], tuple[str, ...]]:
    """Return the rows that a JSON value holds, possibly none, and the keys beside them.

    Args:
        value: A list of objects; an object with one such list; or an object with the figures of each stack
            below the stack's name.
        name: File, for messages.

    Raises:
        InputError: Several keys hold lists of objects.
    """
    if isinstance(value, list):
        return (value, ()) if value and all(isinstance(row, dict) for row in value) else ([], ())
    if not isinstance(value, dict):
        return [], ()
    lists = {
        key: below for key, below in value.items() if isinstance(below, list) and rows_in(below, name)[0]
    }
    usual = [key for key in lists if key.lower() in _USUAL]
    if len(lists) == 1 or len(usual) == 1:
        taken = (usual or list(lists))[0]
        return list(lists[taken]), _but(value, taken)
    if lists:
        do = "Save the list of results as a file of its own."
        raise InputError(f"Several keys hold lists of rows: {listed(list(lists))}.", where=name, do=do)
    return _by_key(value, name)


def _but(value: Json, taken: str) -> tuple[str, ...]:
    return tuple(key for key in value if key != taken)


def _by_key(value: Json, name: str) -> tuple[list[Json], tuple[str, ...]]:
    """Return the rows of an object without lists of objects: itself, or one for each of its keys."""
    objects = {key: below for key, below in value.items() if isinstance(below, dict) and below}
    deep = [key for key, below in objects.items() if all(isinstance(each, dict) for each in below.values())]
    if len(deep) == 1 and (len(objects) == 1 or deep[0].lower() in _USUAL):
        rows, beside = _by_key(objects[deep[0]], name)
        return rows, (*_but(value, deep[0]), *(f"{deep[0]}.{key}" for key in beside))
    if len(objects) < len(value) or not objects:
        return [value] if objects else [], ()
    return [{_STACK: key, **below} for key, below in objects.items()], ()
