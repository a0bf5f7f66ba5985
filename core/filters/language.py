"""The language of filters: parsing it, and which passages a filter leaves.

An object names fields and what each has to hold; all of it has to be true::

    {"tenant": "a"}                              equal: a text, a number, true or false, a date
    {"lang": ["en", "de"]}                       one of several
    {"date": {"gte": "2025-01-01"}}              a range: gte, gt, lte, lt of a number or a date
    {"acl": {"any": ["group:sales", "user:17"]}} a list that holds one of these; all: each of these
    {"lang": {"not": "fr"}}                      anything else, where the field is there
    {"not": {"tenant": "b", "draft": true}}      not all of this, where both fields are there

``{}`` leaves every passage.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import polars as pl

from core.arrays import Mask
from core.errors import InputError, UnknownNameError, cut
from core.filters.fields import Kind, Typed, as_kind, date_of, element_of, is_sound, kind_of, kinds, number_of

Value = str | float | bool

RANGES = ("gte", "gt", "lte", "lt")
_LISTS = ("any", "all")
_NOT = "not"
_OPERATORS = (*RANGES, *_LISTS, _NOT)
_DEPTH = 16  # Maximum nesting of `not`
_VALUES = 100_000  # Maximum number of values and fields of a filter
_BYTES = 16 * 1024**2  # Maximum length of its JSON
_EXAMPLE = 'Write it like {"tenant": "a", "lang": ["en", "de"], "date": {"gte": "2025-01-01"}}.'
_FITTING: Mapping[str, tuple[Kind, ...]] = {
    "in": (Kind.TEXT, Kind.NUMBER, Kind.DATE, Kind.BOOL),
    **dict.fromkeys(RANGES, (Kind.NUMBER, Kind.DATE)),
    **dict.fromkeys(_LISTS, (Kind.TEXTS,)),
}


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition on one field."""

    name: str  # the field
    operator: str  # "in" (equal to one of the values), "gte", "gt", "lte", "lt", "any" or "all"
    values: tuple[Value, ...]  # of one JSON type; one value for a range

    def values_as(self, kind: Kind) -> tuple[Typed, ...] | None:
        """Return the values in the type of the field; None where it never matches that type."""
        if kind not in _FITTING[self.operator]:
            return None
        if kind is Kind.TEXTS:
            return self.values
        read = [as_kind(value, kind) for value in self.values]
        return None if None in read else tuple(value for value in read if value is not None)


@dataclass(frozen=True, slots=True)
class Not:
    """Conditions that do not all hold, on passages that have all of their fields."""

    parts: tuple[Condition | Not, ...]
    name: str | None = None  # the field whose conditions they are; None = of several fields


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter that was read; equal filters are equal and hash alike."""

    text: str  # canonical JSON: sorted keys and values, no spaces
    parts: tuple[Condition | Not, ...] = field(compare=False, repr=False)  # conditions, all of which hold

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that a passage has to have, sorted."""
        return tuple(sorted({condition.name for condition in _conditions(self.parts)}))

    def check(self, fields: pl.DataFrame, where: str = "") -> None:
        """Refuse a filter that can match nothing: an unknown field, or a value of another type.

        Args:
            fields: The fields of the passages, of `fields_of`.
            where: The place of the filter, for the message.

        Raises:
            UnknownNameError: If no passage has a field.
            InputError: If a field has another type than the filter asks for.
        """
        known = kinds(fields)
        for condition in _conditions(self.parts):
            if condition.name not in known:
                raise UnknownNameError("field of passages", condition.name, known, where=where)
            if condition.values_as(known[condition.name]) is None:
                shown = json.dumps(list(condition.values[:3]), ensure_ascii=False)
                raise InputError(
                    f"The field {cut(condition.name, 40)!r} holds {known[condition.name].value}; "
                    f"the filter asks for {condition.operator} {cut(shown, 60)}.",
                    where=where,
                    do=_fitting(known[condition.name]),
                )

    def mask(self, fields: pl.DataFrame) -> Mask:
        """Return which passages the filter leaves.

        Args:
            fields: The fields of the passages, of `fields_of`; at least those that the filter names.

        Raises:
            UnknownNameError: If no passage has a field.
        """
        left = np.ones(fields.height, dtype=np.bool_)
        for condition in _conditions(self.parts):
            if condition.name not in fields.columns:
                raise UnknownNameError("field of passages", condition.name, fields.columns)
            column = _column(fields, condition.name)
            if condition.values_as(kind_of(column)) is None:
                return np.zeros(fields.height, dtype=np.bool_)
            left &= column.is_not_null().to_numpy()
        return left & _all(self.parts, fields)


def _fitting(kind: Kind) -> str:
    fitting = [name for name, of in _FITTING.items() if kind in of]
    shown = ", ".join("equality, lists" if name == "in" else name for name in fitting)
    dates = ", with dates like 2025-01-31" if kind is Kind.DATE else ""
    return f"Of such a field ask for: {shown}{dates}; or declare its type."


def _conditions(parts: Sequence[Condition | Not]) -> Iterator[Condition]:
    for part in parts:
        if isinstance(part, Not):
            yield from _conditions(part.parts)
        else:
            yield part


def _column(fields: pl.DataFrame, name: str) -> pl.Series:
    """Return a field under another name, as the engine reads one such as ``^tenant$`` as a pattern."""
    return fields.get_column(name).alias("held")


def _all(parts: Sequence[Condition | Not], fields: pl.DataFrame) -> Mask:
    held = np.ones(fields.height, dtype=np.bool_)
    for part in parts:
        held &= ~_all(part.parts, fields) if isinstance(part, Not) else _holds(part, fields)
    return held


def _holds(condition: Condition, fields: pl.DataFrame) -> Mask:
    """Return where a condition holds; what it says of a missing value does not matter."""
    column = _column(fields, condition.name)
    values = condition.values_as(kind_of(column)) or ()
    if condition.operator in _LISTS:
        wanted = pl.Series([list(values)], dtype=pl.List(pl.String))
        found = column.list.set_intersection(wanted).list.len()
        held = found > 0 if condition.operator == "any" else found == len(values)
    elif condition.operator == "in":
        held = column.is_in(pl.Series([list(values)], dtype=pl.List(column.dtype)))
    else:
        bound = pl.Series([values[0]], dtype=column.dtype)
        held = getattr(column, {"gte": "ge", "lte": "le"}.get(condition.operator, condition.operator))(bound)
    return held.fill_null(False).to_numpy()


def parse(given: str | Mapping[str, Any], where: str = "") -> Filter:
    """Read a filter.

    Args:
        given: Its JSON, or the object that it stands for.
        where: The place of the filter, for the message: a file and line, a query.

    Raises:
        InputError: If it is no filter, or exceeds the bounds of nesting and size.
    """
    reading = _Reading(where)
    parts = reading.parts(reading.asked(given), 0, "")
    return Filter(json.dumps(_written(parts), ensure_ascii=False, separators=(",", ":")), parts)


class _Reading:
    """One filter while it is read."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._values = 0

    def error(self, found: str, do: str = _EXAMPLE) -> InputError:
        return InputError(found, where=self._where, do=do)

    def asked(self, given: str | Mapping[str, Any]) -> Mapping[str, Any]:
        if not isinstance(given, str):
            return given
        if len(given) > _BYTES:
            raise self.error(
                f"The filter is {len(given):,} characters long.", f"Bring at most {_BYTES:,} characters."
            )
        try:
            read = json.loads(given, object_pairs_hook=self._once, parse_constant=self._constant)
        except RecursionError as error:
            raise self.error("The filter is nested too deeply.", f"Nest at most {_DEPTH} levels.") from error
        except ValueError as error:
            raise self.error(f"The filter {cut(given, 60)!r} is no JSON: {error}.") from error
        if not isinstance(read, dict):
            raise self.error(f"A filter is a JSON object; found {cut(given, 60)!r}.")
        return read

    def _once(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        read = dict(pairs)
        if len(read) < len(pairs):
            twice = next(name for name, _ in pairs if [key for key, _ in pairs].count(name) > 1)
            raise self.error(
                f"{cut(twice, 40)!r} occurs twice in one object of the filter.", "Give each name once."
            )
        return read

    def _constant(self, name: str) -> None:
        raise self.error(f"{name} is no value of a filter.", "Give a finite number.")

    def _count(self, more: int) -> None:
        self._values += more
        if self._values > _VALUES:
            raise self.error(
                f"The filter has more than {_VALUES:,} values.", "Name a group in place of its members."
            )

    def parts(self, given: Mapping[str, Any], depth: int, at: str) -> tuple[Condition | Not, ...]:
        """Return the conditions of an object of fields, ordered by name."""
        if depth > _DEPTH:
            raise self.error("The filter is nested too deeply.", f"Nest at most {_DEPTH} levels.")
        self._count(len(given))
        read: list[Condition | Not] = []
        for name, value in sorted(given.items()):
            place = f"{at}{cut(name, 40)}"
            if not is_sound(name):
                raise self.error("A field's name is no Unicode text.", "Write it in UTF-8.")
            if name == _NOT:
                if not isinstance(value, Mapping) or not value:
                    raise self.error(
                        f"{place!r} holds {_shown(value)}, not fields.", 'Write {"not": {"field": value}}.'
                    )
                read.append(Not(self.parts(value, depth + 1, f"{place}.")))
            else:
                read += self._field(name, value, depth, place)
        return tuple(read)

    def _field(self, name: str, value: object, depth: int, at: str) -> list[Condition | Not]:
        if not isinstance(value, Mapping):
            values = value if isinstance(value, list | tuple) else [value]
            return [Condition(name, "in", self._scalars(values, at))]
        if depth > _DEPTH:
            raise self.error("The filter is nested too deeply.", f"Nest at most {_DEPTH} levels.")
        unknown = [key for key in value if key not in _OPERATORS]
        if unknown or not value:
            found = cut(str(unknown[0]), 40) if unknown else "nothing"
            raise self.error(f"{at!r} asks for {found!r}.", f"Known are: {', '.join(_OPERATORS)}.")
        read: list[Condition | Not] = []
        for operator, asked in sorted(value.items()):
            if operator == _NOT:
                read.append(Not(tuple(self._field(name, asked, depth + 1, f"{at}.{_NOT}")), name))
            elif operator in _LISTS:
                read.append(Condition(name, operator, self._elements(asked, f"{at}.{operator}")))
            else:
                read.append(Condition(name, operator, (self._bound(asked, f"{at}.{operator}"),)))
        return read

    def _scalars(self, values: Sequence[object], at: str) -> tuple[Value, ...]:
        self._count(len(values))
        for value in values:
            sound = is_sound(value) if isinstance(value, str) else isinstance(value, bool)
            if not sound and number_of(value) is None:
                raise self.error(
                    f"{at!r} holds {_shown(value)}.", "Give a text, a number, true, false, or a list of them."
                )
        read = [_scalar(value) for value in values]
        if len({type(value) for value in read}) > 1:
            raise self.error(f"{at!r} lists values of several types.", "Give texts, or numbers, not both.")
        return tuple(sorted(set(read)))

    def _elements(self, asked: object, at: str) -> tuple[Value, ...]:
        values = asked if isinstance(asked, list | tuple) else [asked]
        self._count(len(values))
        read = [element_of(value) for value in values]
        if None in read:
            raise self.error(f"{at!r} holds {_shown(values[read.index(None)])}.", "Give a list of texts.")
        return tuple(sorted({value for value in read if value is not None}))

    def _bound(self, asked: object, at: str) -> Value:
        number = number_of(asked)
        if number is not None:
            return number
        if isinstance(asked, str) and date_of(asked) is not None:
            return asked
        raise self.error(f"{at!r} holds {_shown(asked)}.", "Give a number, or a date like 2025-01-31.")


def _scalar(value: object) -> Value:
    number = number_of(value)
    return value if isinstance(value, str | bool) else 0.0 if number is None else number


def _shown(value: object) -> str:
    return cut(json.dumps(value, ensure_ascii=False, default=str, skipkeys=True), 60)


def _written(parts: Sequence[Condition | Not]) -> dict[str, Any]:
    """Return the conditions of an object of fields as JSON, in canonical form."""
    read: dict[str, Any] = {}
    for name, of_name in groupby(parts, key=lambda part: part.name):
        several = list(of_name)
        if name is None:
            read[_NOT] = _written([each for part in several if isinstance(part, Not) for each in part.parts])
        else:
            read[name] = _written_field(several)
    return dict(sorted(read.items()))


def _written_field(parts: Sequence[Condition | Not]) -> object:
    """Return what a field has to hold as JSON: a value, a list of values, or operators."""
    read: dict[str, Any] = {}
    for part in parts:
        if isinstance(part, Not):
            read[_NOT] = _written_field(part.parts)
            continue
        values = [_plain(value) for value in part.values]
        alone = values[0] if len(values) == 1 and part.operator not in _LISTS else values
        if part.operator == "in":
            return alone
        read[part.operator] = alone
    return read


def _plain(value: Value) -> Value:
    whole = isinstance(value, float) and value.is_integer()
    return int(value) if whole else value
