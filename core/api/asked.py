"""Choices given in Python, which no option or widget has checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin

from core.api.typed import plain, unknown
from core.choices import Declared, Declaring, declared
from core.errors import InputError, UnknownNameError, cut
from core.stats.latency import Generation

D = TypeVar("D", bound=Declaring)
_LARGEST = 1e300  # Anything larger counts nothing real, and may not fit in a float
_WORDS: Mapping[type, str] = {bool: "true or false", str: "text", Generation: "a Generation"}
"""Types of single values, and what they are called."""


def asked(kind: type[D], given: Mapping[str, object]) -> D:
    """Return a dataclass of choices; lists of words are checked where they are used.

    Raises:
        UnknownNameError: If a choice doesn't exist, or doesn't accept a word.
        InputError: If a value is of another type, or out of range.
    """
    known, names = declared(kind), [field.name for field in fields(kind)]
    for name in given:
        if name not in names:
            raise unknown(name, names)
    values: dict[str, Any] = {
        name: _fit(known[name], value) if name in known else value for name, value in given.items()
    }
    return kind(**values)


def _fit(field: Declared, value: object) -> object:
    kinds = get_args(field.type) or (field.type,)
    if value is None and NoneType in kinds:
        return None
    for kind in (field.type, *kinds):
        if get_origin(kind) is Literal:
            if value not in get_args(kind):
                raise UnknownNameError(field.name, str(value), map(str, get_args(kind)))
            return value
    if field.number:
        return _within(field, value, whole=int in kinds)
    for kind, word in _WORDS.items():
        if kind in kinds and not isinstance(value, kind):
            raise InputError(f"{field.name}={cut(repr(value), 60)} is not {word}.")
    lists = [get_args(kind)[0] for kind in (field.type, *kinds) if get_origin(kind) is list]
    return _listed(field.name, value, lists[0]) if lists else value


def _listed(name: str, value: object, kind: type) -> list[object]:
    """Return a list of words, each in the form of its kind; one word is a list of one."""
    words = list(value) if isinstance(value, list | tuple) else [value]
    if not all(isinstance(word, str) for word in words):
        raise InputError(f"{name}={cut(repr(value), 60)} is not a list of texts.")
    if not issubclass(kind, Enum):
        return words
    known = {str(one.value): one for one in kind}
    for word in words:
        if word not in known:
            raise UnknownNameError(name, str(word), known)
    return [known[str(word)] for word in words]


def _within(field: Declared, given: object, *, whole: bool) -> float:
    value: Any = plain(given)
    low, high = field.choice.low, field.choice.high
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        kind = "a whole number" if whole else "a number"
        raise InputError(f"{field.name}={cut(repr(value), 60)} is not {kind}.")
    if abs(value) > _LARGEST:
        raise InputError(f"{field.name}={cut(str(value), 60)} is out of range.", do=f"At most {_LARGEST:g}.")
    if not (low is None or value >= low) or not (high is None or value <= high):
        most = "" if high is None else f" and at most {high:g}"
        raise InputError(f"{field.name}={value} is out of range.", do=f"At least {low:g}{most}.")
    number: float = value
    return number
