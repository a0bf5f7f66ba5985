"""Problems of a specification: each with its place, its reason and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from rapidfuzz import fuzz, process

from core.errors import InputError

KeyPath = tuple[str | int, ...]  # The path of a key: ("axes", "mode"), ("stack", 0, "dim")

_ALIKE = 60  # Similarity (0 to 100) from which a known name is suggested
_SHORTEST = 3
_LISTED = 12
_SHOWN = 60
_WORDS: Mapping[str, str] = {
    "int_type": "is not a whole number",
    "float_type": "is not a number",
    "bool_type": "is not true or false",
    "string_type": "is not text",
    "string_too_short": "is empty",
    "string_too_long": "is too long",
    "is_instance_of": "is not a path",
    "path_type": "is not a path",
    "dict_type": "is not a table",
    "model_type": "is not a table",
    "tuple_type": "is not a list",
}
TAGGED = "‹"
"""Prefix of tags for kinds of tables; the name of the table's class follows."""
_LIMITS: Mapping[str, tuple[str, str]] = {
    "greater_than": ("gt", "must be more than {:g}"),
    "greater_than_equal": ("ge", "must be {:g} or more"),
    "less_than": ("lt", "must be less than {:g}"),
    "less_than_equal": ("le", "must be {:g} or less"),
    "finite_number": ("", "must be a finite number"),
}


class Severity(StrEnum):
    """How serious a problem is."""

    ERROR = "error"  # the specification makes no sense: it cannot even be planned
    MISSING = "missing"  # it can be planned; to run, it needs what is missing here
    WARNING = "warning"  # it can run


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that keeps a sweep from running, or that its owner should know."""

    where: str  # file, line and key, or what a stack is called
    found: str  # what was found, as a sentence
    do: str = ""  # what the user can do about it, as a sentence
    severity: Severity = Severity.ERROR  # what it keeps from happening

    def __str__(self) -> str:
        return " ".join(filter(None, (f"{self.where}:" if self.where else "", self.found, self.do)))


class SpecError(InputError):
    """A specification cannot be used; the message has one line per problem."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        first = self.problems[0]
        super().__init__(first.found, where=first.where, do=first.do)
        self.args = ("\nerror: ".join(str(problem) for problem in self.problems),)


def suggestion(name: object, known: Iterable[object]) -> str:
    """Return advice on an unknown name: the nearest one, and the known ones."""
    names = sorted({str(candidate) for candidate in known})
    # Parts of words count as alike, but one letter or two are part of too many.
    scorer = fuzz.WRatio if len(str(name)) >= _SHORTEST else fuzz.ratio
    nearest = process.extractOne(str(name).lower(), names, scorer=scorer, score_cutoff=_ALIKE)
    listed = ", ".join(names[:_LISTED]) or "none"
    more = f" (+{len(names) - _LISTED} more)" if len(names) > _LISTED else ""
    return (f'Did you mean "{nearest[0]}"? ' if nearest else "") + f"Known: {listed}{more}."


def brief(value: object) -> str:
    """Format a value for a message: one short line."""
    text = value if isinstance(value, str) else repr(value)
    text = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    return repr(text) if isinstance(value, str) else text


def problems(
    error: ValidationError, model: type[BaseModel], data: object
) -> Iterator[tuple[KeyPath, Problem]]:
    """Yield one problem per place of a failed validation, without its file and line.

    Args:
        data: What it was given; tells which positions of lists the user wrote.

    Yields:
        The path of the key as the user wrote it, and the problem; `where` is that path as text.
    """
    seen: set[KeyPath] = set()
    for details in error.errors(include_url=False):
        written = _as_written(details["loc"], data)
        if written in seen:  # a value that is none of several kinds is one problem
            continue
        seen.add(written)
        reason, do = _words(details, model)
        yield written, Problem(key_path(written), reason, do)


def key_path(path: KeyPath) -> str:
    """Return the path of a key as text, such as ``axes.mode[2]``; positions count from 1."""
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _as_written(location: Sequence[str | int], data: object) -> KeyPath:
    path: list[str | int] = []
    for position, part in enumerate(location):
        if isinstance(part, str) and part.startswith(TAGGED):  # a kind of table, not written by the user
            continue
        if isinstance(part, int):
            if isinstance(data, list | tuple) and part < len(data):
                path.append(part)
                data = data[part]
        elif isinstance(data, Mapping):
            path.append(part)
            data = data.get(part)
        elif position < len(location) - 1 or data is None:
            path.append(part)
    return tuple(path)


def _words(details: Any, model: type[BaseModel]) -> tuple[str, str]:  # noqa: ANN401 - pydantic's ErrorDetails
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    name = str(details["loc"][-1]) if details["loc"] else ""
    if kind == "extra_forbidden":
        return f"There is no key {name!r} here.", suggestion(name, _keys(details["loc"][:-1], model))
    if kind == "missing":
        return f"The key {name!r} is missing.", ""
    if kind == "literal_error":
        known = [word.strip(" '") for word in context["expected"].replace(" or ", ",").split(",")]
        return f"{brief(value)} is not known here.", suggestion(value, known)
    if kind in _LIMITS:
        key, words = _LIMITS[kind]
        return f"{brief(value)} {words.format(context.get(key))}.", ""
    if kind == "value_error":
        return str(context["error"]), ""
    return f"{brief(value)} {_WORDS.get(kind, 'cannot be used: ' + details['msg'])}.", ""


def _keys(location: Sequence[str | int], model: type[BaseModel]) -> list[str]:
    tables = [model]
    for part in location:
        if isinstance(part, str) and part.startswith(TAGGED):
            tables = [table for table in tables if table.__name__ == part.strip("‹›")]
            continue
        inner = [table.model_fields[part].annotation for table in tables if part in table.model_fields]
        if inner:  # positions in lists and names of entries lead to no other table
            tables = [inner_table for annotation in inner for inner_table in _tables(annotation)]
    return [name for table in tables for name in table.model_fields]


def _tables(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [table for part in get_args(annotation) for table in _tables(part)]
