"""Pydantic's errors in the words of the product, with the nearest valid key or value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from core.pipeline.sweep.places import Path
from core.pipeline.sweep.problems import Problem, brief, suggestion

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
_LIMITS: Mapping[str, tuple[str, str]] = {
    "greater_than": ("gt", "must be more than {:g}"),
    "greater_than_equal": ("ge", "must be {:g} or more"),
    "less_than": ("lt", "must be less than {:g}"),
    "less_than_equal": ("le", "must be {:g} or less"),
    "finite_number": ("", "must be a finite number"),
}


def problems(error: ValidationError, model: type[BaseModel], data: object) -> Iterator[tuple[Path, Problem]]:
    """One problem per place of a failed validation, without its file and line.

    Args:
        error: What pydantic found.
        model: What was validated.
        data: What it was given; tells which positions of lists the user wrote.

    Yields:
        The path of the key as the user wrote it, and the problem; `where` is that path as text.
    """
    seen: set[Path] = set()
    for each in error.errors(include_url=False):
        written = _as_written(each["loc"], data)
        if written in seen:  # a value that is none of several kinds is one problem
            continue
        seen.add(written)
        found, do = _words(each, model)
        yield written, Problem(key_path(written), found, do)


def key_path(path: Path) -> str:
    """For example ``axes.mode[2]``; positions count from 1, as people do."""
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _as_written(location: Sequence[str | int], data: object) -> Path:
    path: list[str | int] = []
    for position, part in enumerate(location):
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


def _words(each: Any, model: type[BaseModel]) -> tuple[str, str]:  # noqa: ANN401 - pydantic's ErrorDetails
    kind, value, context = each["type"], each["input"], each.get("ctx", {})
    name = str(each["loc"][-1]) if each["loc"] else ""
    if kind == "extra_forbidden":
        return f"There is no key {name!r} here.", suggestion(name, _keys(each["loc"][:-1], model))
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
    return f"{brief(value)} {_WORDS.get(kind, 'cannot be used: ' + each['msg'])}.", ""


def _keys(location: Sequence[str | int], model: type[BaseModel]) -> list[str]:
    """Keys of the table at a location."""
    tables = [model]
    for part in location:
        inner = [table.model_fields[part].annotation for table in tables if part in table.model_fields]
        if inner:  # positions in lists and names of entries lead to no other table
            tables = [found for annotation in inner for found in _tables(annotation)]
    return [name for table in tables for name in table.model_fields]


def _tables(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in get_args(annotation) for found in _tables(part)]
