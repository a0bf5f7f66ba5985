"""Parameters as data: what a measure or an engine declares, and given values checked against it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.errors import InputError, UnknownNameError

ParamValue = float | int | str
ParamOptions = dict[str, ParamValue]
_FREE = re.compile(r"[^\s(),=]([^(),=]*[^\s(),=])?")
"""A word without restrictions; one that cannot be read back within a measure is written differently."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """One parameter of a measure or an engine, declared as data."""

    name: str  # as written in a measure or a specification, for example "alpha"
    default: ParamValue  # its default; the type of the default is the type of the parameter
    text: str  # its effect, in one line
    low: float = -math.inf  # smallest number allowed (inclusive)
    high: float = math.inf  # largest number allowed (inclusive)
    choices: tuple[str, ...] = ()  # the allowed words, for a parameter that is a word
    step: float = 0.0  # step of the slider that moves it; 0 if no slider is offered
    free: bool = False  # whether any word is allowed, such as names that come with the data

    @property
    def kind(self) -> str:
        """The type in words."""
        names = {float: "number", int: "whole number", str: "word"}
        return names[type(self.default)]

    @property
    def range(self) -> str:
        """The allowed values in words."""
        if self.free:
            return "any word"
        return " | ".join(self.choices) if self.choices else f"{show(self.low)} to {show(self.high)}"

    def read(self, value: ParamValue, where: str = "") -> ParamValue:
        """Check a value, given as text or already typed, and convert it to the declared type.

        Raises:
            InputError: If it does not have the declared type or lies outside the declared range.
        """
        refused = InputError(
            f"{self.name}={value} is not allowed.",
            where=where,
            do=f"Use {self.range} (default {show(self.default)}).",
        )
        if isinstance(self.default, str):
            free = self.free and isinstance(value, str) and _FREE.fullmatch(value)
            if value not in self.choices and not free:
                raise refused
            return value
        try:
            number = float(value)
        except ValueError:
            raise refused from None
        whole = isinstance(self.default, int)
        if not (math.isfinite(number) and self.low <= number <= self.high) or (whole and number % 1):
            raise refused
        return int(number) if whole else number


def show(value: ParamValue) -> str:
    """Write a parameter's value as briefly as it can be read back: 1.0 as "1", 0.25 as "0.25"."""
    if isinstance(value, float) and math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def read_options(declared: Sequence[Param], given: Mapping[str, Any] | None, *, where: str) -> ParamOptions:
    """Check options and add the defaults of those that are not given.

    Args:
        given: Option name to value, as read from JSON, TOML or YAML; None for no options.
        where: Named in errors, for example "index hnsw-f32".

    Returns:
        Every declared option with its value, in declared order.

    Raises:
        UnknownNameError: If an option is not declared; the message lists the declared ones.
        InputError: If a value is not of the declared type or not in the declared range.
    """
    known = {param.name: param for param in declared}
    options: ParamOptions = {}
    for name, value in (given or {}).items():
        if name not in known:
            raise UnknownNameError("option", str(name), known, where=where)
        if isinstance(value, bool) or not isinstance(value, float | int | str):
            raise InputError(f"{name}={value!r} is not allowed.", where=where, do=f"Use {known[name].range}.")
        options[name] = known[name].read(value, where=where)
    return {name: options.get(name, param.default) for name, param in known.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One of several ways to do something, declared as data."""

    name: str  # as written in a specification
    text: str  # its effect, in one line
    options: tuple[Param, ...] = ()  # what can be set
    needs_vectors: bool = False  # whether it is unavailable to a stack without vectors


def read_method(kind: str, known: Mapping[str, Method], spec: Mapping[str, Any]) -> dict[str, Any]:
    """Check the method that a table names and its options, and fill in the defaults.

    Raises:
        UnknownNameError: If there is no such method of the kind ("fusion", "cut"…), or no such option.
        InputError: If an option is not of the declared type or not in the declared range.
    """
    method, given = method_of(kind, spec, known)
    return {"method": method, **read_options(known[method].options, given, where=f"{kind} {method}")}


def method_of(kind: str, spec: Mapping[str, Any], known: Iterable[str]) -> tuple[str, dict[str, Any]]:
    """Return the method that a table names, and its options, unchecked.

    Raises:
        UnknownNameError: If there is no such method of the kind ("fusion", "cut"…).
    """
    given = dict(spec)
    method = given.pop("method", None)
    if not isinstance(method, str) or method not in known:
        raise UnknownNameError(kind, "" if method is None else str(method), known)
    return method, given


def number(options: Mapping[str, Any], name: str) -> float:
    """Return a numeric option that `read_options` has accepted."""
    return float(options[name])


def whole(options: Mapping[str, Any], name: str) -> int:
    """Return a whole-number option that `read_options` has accepted."""
    return int(options[name])
