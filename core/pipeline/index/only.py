"""Filters in the form in which databases take them: columns without names of others, values without texts.

A field is a column ``f0``, ``f1``…; a text is known by its digest, a date by its microseconds. So nothing of
a filter or of metadata can be read as a part of a query, whatever it holds, and every engine compares alike.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import polars as pl

from core.filters import Condition, Filter, Kind, Not, kinds

_Value = str | float | int | bool
OnlyRow = tuple[list[_Value] | _Value | None, ...]
"""The values of a passage, in the order of the columns; None = it has none."""
HELD = "held"  # The column that lists which fields a passage has
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class OnlyTest(NamedTuple):
    """One condition on a column."""

    column: str
    kind: Kind
    operator: str  # see `core.filters.Condition`
    values: tuple[_Value, ...]  # as they are stored


class NotAll(NamedTuple):
    """Conditions that do not all hold."""

    parts: tuple[OnlyTest | NotAll, ...]


class Only(NamedTuple):
    """What a passage has to hold: all of these columns, and all of these conditions."""

    columns: tuple[str, ...]
    parts: tuple[OnlyTest | NotAll, ...]


def only_of(asked: Filter, types: Mapping[str, Kind], names: Sequence[str]) -> Only:
    """Return a filter for a table.

    Args:
        types: The types of the fields.
        names: The fields in the order of their columns.
    """
    place = {name: f"f{number}" for number, name in enumerate(names)}
    return Only(tuple(place[name] for name in asked.names), _parts(asked.parts, types, place))


def _parts(
    parts: Sequence[Condition | Not], types: Mapping[str, Kind], place: Mapping[str, str]
) -> tuple[OnlyTest | NotAll, ...]:
    return tuple(
        NotAll(_parts(part.parts, types, place))
        if isinstance(part, Not)
        else OnlyTest(
            place[part.name],
            types[part.name],
            part.operator,
            tuple(map(_stored, part.values_as(types[part.name]) or ())),
        )
        for part in parts
    )


def rows_of(fields: pl.DataFrame) -> tuple[list[Kind], list[OnlyRow]]:
    """Return the types of the columns, and the values of each passage as they are stored."""
    columns = [
        [None if value is None else _stored_value(value) for value in fields.get_column(name)]
        for name in fields.columns
    ]
    rows: list[OnlyRow] = list(zip(*columns, strict=True)) if columns else [()] * fields.height
    return list(kinds(fields).values()), rows


def held_by(row: Sequence[object]) -> list[str]:
    """Return the columns that a passage has a value for."""
    return [f"f{number}" for number, value in enumerate(row) if value is not None]


def literal(value: _Value) -> str:
    """Write a digest, number or boolean for an engine that takes no parameters; nothing else comes here."""
    if isinstance(value, str):
        return f"'{int(value, 16):032x}'"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _stored_value(value: object) -> list[_Value] | _Value:
    return (
        [_stored(each) for each in value] if isinstance(value, pl.Series | list | tuple) else _stored(value)
    )


def _stored(value: object) -> _Value:
    if isinstance(value, str):
        return hashlib.sha256(value.encode()).hexdigest()[:32]
    if isinstance(value, datetime):
        return (value - _EPOCH) // timedelta(microseconds=1)
    return value if isinstance(value, bool | float) else float(str(value))
