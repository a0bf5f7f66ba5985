"""Choices given in Python, which no option or widget has checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin

from core.choices import Declared, Declaring, declared
from core.errors import InputError, UnknownNameError

D = TypeVar("D", bound=Declaring)


def asked(kind: type[D], given: Mapping[str, object]) -> D:
    """Return a dataclass of choices; lists of words are checked where they are used.

    Raises:
        UnknownNameError: If a choice doesn't exist, or doesn't accept a word.
        InputError: If a value is of another type, or out of range.
    """
    known, names = declared(kind), [field.name for field in fields(kind)]
    for name in given:
        if name not in names:
            raise UnknownNameError("choice", name, names)
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
    for kind, word in ((bool, "truth"), (str, "text")):
        if kind in kinds and not isinstance(value, kind):
            raise InputError(f"{field.name}={value!r} is no {word}.")
    return [value] if isinstance(value, str) and str not in kinds else value


def _within(field: Declared, value: object, *, whole: bool) -> float:
    low, high = field.choice.low, field.choice.high
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise InputError(f"{field.name}={value!r} is no {'whole number' if whole else 'number'}.")
    if not (low is None or value >= low) or not (high is None or value <= high):
        most = "" if high is None else f" and at most {high:g}"
        raise InputError(f"{field.name}={value} is out of range.", do=f"At least {low:g}{most}.")
    return value
