"""The fields of passages: JSON metadata read into one typed column per field."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import polars as pl

_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?)?", re.ASCII)


Typed = str | float | bool | datetime | tuple[str, ...]
"""A value in the type of its field."""


class Kind(StrEnum):
    """The type of a field, the same for all passages of a collection."""

    TEXT = "text"
    NUMBER = "number"
    DATE = "date"
    BOOL = "yes or no"
    TEXTS = "list of texts"


_DTYPES: Mapping[Kind, pl.DataType] = {
    Kind.TEXT: pl.String(),
    Kind.NUMBER: pl.Float64(),
    Kind.DATE: pl.Datetime("us", "UTC"),
    Kind.BOOL: pl.Boolean(),
    Kind.TEXTS: pl.List(pl.String),
}


def date_of(value: object) -> datetime | None:
    """Return an ISO date or time in UTC, a date being its midnight; None for anything else."""
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        return None
    try:
        read = datetime.fromisoformat(value)
        return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def number_of(value: object) -> float | None:
    """Return a number, or None for anything else, and for integers that a float would change."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number == value else None


def texts_of(value: object) -> tuple[str, ...] | None:
    """Return a list of texts, whole numbers among them as text; None for anything else."""
    if not isinstance(value, list | tuple):
        return None
    read = tuple(element_of(each) for each in value)
    return None if None in read else tuple(each for each in read if each is not None)


def element_of(value: object) -> str | None:
    """Return an element of a list of texts: a text, or a whole number as text."""
    if isinstance(value, str):
        return text_of(value)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def is_sound(text: str) -> bool:
    """Return whether a text is Unicode: JSON may hold halves of characters, which no engine takes."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def text_of(value: object) -> str | None:
    """Return a text that is Unicode, or None for anything else."""
    return value if isinstance(value, str) and is_sound(value) else None


def _bool_of(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


_READ: Mapping[Kind, Callable[[object], Typed | None]] = {
    Kind.TEXT: text_of,
    Kind.NUMBER: number_of,
    Kind.DATE: date_of,
    Kind.BOOL: _bool_of,
    Kind.TEXTS: texts_of,
}
_OF_VALUES = (Kind.TEXT, Kind.NUMBER, Kind.BOOL, Kind.TEXTS)  # in this order where two are as common


def as_kind(value: object, kind: Kind) -> Typed | None:
    """Return a JSON value as one of a type, or None where it is of another type."""
    return _READ[kind](value)


def decoded(texts: Collection[str | None]) -> list[Mapping[str, Any] | None]:
    """Return metadata from its JSON; None where it is missing, unreadable or no object."""
    return [_object(text) for text in texts]


def _object(text: str | None) -> Mapping[str, Any] | None:
    try:
        read = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def fields_of(
    metadata: Sequence[Mapping[str, Any] | None],
    declared: Mapping[str, Kind] | None = None,
    names: Collection[str] | None = None,
) -> pl.DataFrame:
    """Read metadata of passages into one typed column per field.

    A field's type is the one declared, else that of most of its values; texts that are all dates
    (``2025-01-31``, ``2025-01-31T10:00Z``) are dates. A value of another type is null, like a missing one.

    Args:
        metadata: One object per passage, in the order that the rows get; None = nothing is known.
        declared: The types of fields where they are declared.
        names: The fields that are wanted; None = all. One that no passage has gets no column.
    """
    columns: dict[str, list[object]] = {}
    for row, of_passage in enumerate(metadata):
        for name, value in (of_passage or {}).items():
            if value is not None and (is_sound(name) if names is None else name in names):
                column = columns.get(name)
                if column is None:
                    column = columns[name] = [None] * len(metadata)
                column[row] = value
    read = [_typed(name, columns[name], (declared or {}).get(name)) for name in sorted(columns)]
    return pl.DataFrame(height=len(metadata)).hstack([column for column in read if column is not None])


def _typed(name: str, values: list[object], declared: Kind | None) -> pl.Series | None:
    """Return a field as a column, or None if none of its values has a type that can be filtered."""
    kind = declared or _inferred(values)
    if kind is None:
        return None
    read = [as_kind(value, kind) for value in values]
    return pl.Series(name, read, dtype=_DTYPES[kind], strict=False)


def _inferred(values: Sequence[object]) -> Kind | None:
    counts: Counter[Kind] = Counter()
    for value in values:
        kind = None if value is None else next((k for k in _OF_VALUES if as_kind(value, k) is not None), None)
        if kind is not None:
            counts[kind] += 1
    if not counts:
        return None
    most = max(_OF_VALUES, key=lambda kind: counts[kind])
    dates = most is Kind.TEXT and all(date_of(value) for value in values if isinstance(value, str))
    return Kind.DATE if dates else most


_BY_DTYPE = {dtype: kind for kind, dtype in _DTYPES.items()}


def kind_of(column: pl.Series) -> Kind:
    """Return the type of a column that `fields_of` made."""
    return _BY_DTYPE[column.dtype]


def kinds(fields: pl.DataFrame) -> dict[str, Kind]:
    """Return the type of every field in a frame that `fields_of` made."""
    return {name: _BY_DTYPE[dtype] for name, dtype in fields.schema.items()}
