"""The library for its users: every name of the package's public interface, from signature and docstring."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from typing import Any

import core
from tools.reference.markdown import cell, code

_DOCUMENTED = ("Args:", "Returns:", "Raises:")
_INNER = ("store", "view", "verdict", "held")
"""Fields that hold what the product works with, whose modules may change."""
_OPTIONS = {"Unpack[AskedOptions]": "options of a decision"}


def library() -> str:
    """Return the reference of `import clq`."""
    names = sorted(core.__all__, key=lambda name: (name[0].isupper(), name))
    parts = [
        "`import clq`; in a checkout `import core as clq`. [In Python](../api.md) shows how. `clq.prices` "
        "has the price books (`load_books()`), `clq.errors` all errors; `ClqError` is the base of them.",
    ]
    for name in names:
        named = getattr(core, name)
        parts += _class(name, named) if inspect.isclass(named) else [_function(f"clq.{name}", named, "##")]
    return "\n\n".join(parts)


def _class(name: str, kind: type) -> list[str]:
    parts = [f"## clq.{name}", _said(kind)[0]]
    shown = [field.name for field in fields(kind) if field.name not in _INNER] if is_dataclass(kind) else []
    if shown:
        parts.append(f"Fields: {', '.join(code(field) for field in shown)}.")
    members = [(own, member) for own, member in _members(kind) if not own.startswith("_")]
    values = [(own, member) for own, member in members if isinstance(member, property)]
    if values:
        parts.append("\n".join(f"- {code(f'.{own}')}: {cell(_said(member)[0])}" for own, member in values))
    parts += [_function(f".{own}", member, "###") for own, member in members if inspect.isfunction(member)]
    return parts


def _members(kind: type) -> list[tuple[str, Any]]:
    """Return the members that a class and its bases declare, its own first."""
    found: dict[str, Any] = {}
    for base in kind.__mro__[:-1]:
        for name, member in vars(base).items():
            if base.__module__.startswith("core.api"):
                found.setdefault(name, member)
    return list(found.items())


def _function(name: str, function: Any, level: str) -> str:  # noqa: ANN401
    first, more = _said(function)
    return "\n\n".join(filter(None, [f"{level} {name}", code(f"{name}{_signature(function)}"), first, more]))


def _signature(function: Any) -> str:  # noqa: ANN401
    shown = inspect.signature(function)
    kept = [
        parameter.replace(annotation=_OPTIONS.get(parameter.annotation, parameter.annotation))
        for name, parameter in shown.parameters.items()
        if name != "self"
    ]
    return str(shown.replace(parameters=kept)).replace("'", "")


def _said(thing: Any) -> tuple[str, str]:  # noqa: ANN401
    """Return a docstring's summary, and its further parts as lists."""
    text = inspect.getdoc(thing) or ""
    parts: list[str] = []
    for paragraph in text.split("\n\n"):
        head, _, rest = paragraph.partition("\n")
        if head not in _DOCUMENTED:
            parts.append(cell(paragraph))
            continue
        lines: list[str] = []
        for line in rest.splitlines():
            own = line.removeprefix("    ")
            if own.startswith(" ") and lines:
                lines[-1] += f" {own.strip()}"
            else:
                lines.append(own.strip())
        parts.append("\n".join([head, "", *(f"- {_named(line)}" for line in lines)]))
    return parts[0], "\n\n".join(parts[1:])


def _named(line: str) -> str:
    name, colon, rest = line.partition(": ")
    return f"{code(name)}: {cell(rest)}" if colon and " " not in name.replace(", ", ",") else cell(line)
