"""Reads the options of an engine from a specification against what the engine declares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from core.errors import InputError, UnknownNameError
from core.metrics.info import Param, Value
from core.records import JsonMap

Options = dict[str, Value]


def read_options(declared: Sequence[Param], given: JsonMap | None, *, where: str) -> Options:
    """Check options and add the defaults of those that are not given.

    Args:
        declared: What the engine takes.
        given: Option name to value, as read from JSON, TOML or YAML; None for none.
        where: Named in errors, for example "index hnsw-f32".

    Returns:
        Every declared option with its value, in declared order.

    Raises:
        UnknownNameError: If an option is not declared; the message lists those that are.
        InputError: If a value is not of the declared type or not in the declared range.
    """
    known = {param.name: param for param in declared}
    found: Options = {}
    for name, value in (given or {}).items():
        if name not in known:
            raise UnknownNameError("option", str(name), known, where=where)
        if isinstance(value, bool) or not isinstance(value, float | int | str):
            raise InputError(f"{name}={value!r} is not allowed.", where=where, do=f"Use {known[name].range}.")
        found[name] = known[name].read(value, where=where)
    return {name: found.get(name, param.default) for name, param in known.items()}


def method_of(kind: str, spec: JsonMap, known: Iterable[str]) -> tuple[str, dict[str, Any]]:
    """The method that a table names, and the options beside it, unread.

    Raises:
        UnknownNameError: If there is no such method of the kind ("fusion", "cut"…).
    """
    given = dict(spec)
    method = given.pop("method", None)
    if not isinstance(method, str) or method not in known:
        raise UnknownNameError(kind, "" if method is None else str(method), known)
    return method, given


def number(options: JsonMap, name: str) -> float:
    """A numeric option that `read_options` has accepted."""
    return float(options[name])


def whole(options: JsonMap, name: str) -> int:
    """A whole-number option that `read_options` has accepted."""
    return int(options[name])
