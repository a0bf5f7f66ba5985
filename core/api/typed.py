"""Arguments in Python, checked as options of a command are: unknown names and wrong types are refused."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import cache, wraps
from importlib import import_module
from inspect import Parameter
from typing import Any, ParamSpec, TypeVar, Unpack, get_args, get_origin, get_type_hints

import polars as pl

from core.decide.axes import nearest_setting
from core.errors import ClqError, InputError, UnknownNameError, cut, nearest

P = ParamSpec("P")
T = TypeVar("T")
_PLACES: Mapping[str, tuple[str, ...]] = {
    "core.importers": ("RowMeaning",),
    "core.importers.read.number_format": ("Reading",),
    "core.importers.read.ordering": ("OwnIds", "TieOrder"),
    "core.pipeline.own.config": ("MatchBy",),
    "core.work.imports.background": ("IfStored",),
    "core.work.imports.matching": ("Unmatched",),
    "core.analysis.workspace.query_sets": ("LeastJudged",),
    "core.analysis.workspace.scope": ("LatencyScope", "Per", "Percentile"),
    "core.api.results": ("Added", "Measured"),
    "core.decide.rules": ("Rule",),
    "core.prices": ("PriceBook",),
    "core.records": ("JsonMap", "Origin"),
    "core.stats.latency": ("Generation",),
    "core.store": ("Snapshot", "Store"),
}
"""Types that annotations name and that are loaded on demand only, by module."""
_KINDS: Mapping[str, str] = {
    "string_type": "text", "int_type": "a whole number", "float_type": "a number",
    "bool_type": "true or false", "dict_type": "a mapping", "mapping_type": "a mapping",
    "list_type": "a list", "sequence_type": "a list", "sequence_str": "a list", "iterable_type": "a list",
    "tuple_type": "a list", "set_type": "a set", "frozen_set_type": "a set", "path_type": "a path",
}  # fmt: skip
"""What a value should have been, by pydantic's name of the error."""
_CLASSES: Mapping[str, str] = {
    "Sequence": "a list",
    "Collection": "a list",
    "PathLike": "a path",
    "Path": "a path",
}
"""What a value should have been, by its expected class."""


def typed(function: Callable[P, T]) -> Callable[P, T]:
    """Check a function's arguments, those unpacked from a TypedDict included, before it is called.

    Raises:
        UnknownNameError: If there is no such argument, or no such value of it; with the nearest.
        InputError: If a value is of another type.
    """

    @wraps(function)
    def run(*args: P.args, **given: P.kwargs) -> T:
        known = _arguments(function)
        for name in given:
            if name not in known:
                raise unknown(name, known)
        signature = inspect.signature(function)
        for name, value in signature.bind(*args, **given).arguments.items():
            kind = signature.parameters[name].kind
            if kind is Parameter.VAR_KEYWORD:
                for key, more in value.items():
                    _check(key, more, known[key])
            elif name != "self":
                for one in value if kind is Parameter.VAR_POSITIONAL else [value]:
                    _check(name, one, known[name])
        return function(*args, **given)

    return run


def unknown(name: str, known: Collection[str]) -> ClqError:
    """Report an unknown argument; a limit may go by the name of what it limits."""
    near = nearest_setting(name, known)
    if near and near != nearest(name, known):
        return InputError(f"No argument {cut(name, 40)!r}.", do=f"Nearest: {near}.")
    return UnknownNameError("argument", name, known)


@cache
def _arguments(function: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the type of every argument that may be given by name."""
    names = {name: getattr(import_module(place), name) for place, names in _PLACES.items() for name in names}
    hints = get_type_hints(function, localns=names | {"pl": pl})
    known: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints.get(name, Any)
        if parameter.kind is Parameter.VAR_KEYWORD and get_origin(hint) is Unpack:
            known |= get_type_hints(get_args(hint)[0], localns=names)
        elif name != "self":
            known[name] = hint
    return known


def _check(name: str, value: object, hint: Any) -> None:  # noqa: ANN401 - any type
    from pydantic import ValidationError  # noqa: PLC0415 - for errors only

    try:
        _adapter(hint).validate_python(plain(value), strict=True)
    except ValidationError as error:
        found = error.errors(include_url=False)
    else:
        return
    for details in found:
        if details["type"] == "literal_error":
            known = details["ctx"]["expected"].replace(" or ", ", ").replace("'", "").split(", ")
            raise UnknownNameError(name, str(details["input"]), known)
    where = f"{name}{''.join(f'[{part!r}]' for part in found[0]['loc'] if part in _keys(value))}"
    kinds = dict.fromkeys(map(_kind, found))
    raise InputError(f"{where}={cut(repr(found[0]['input']), 60)} is not {' or '.join(kinds)}.")


def _kind(details: Mapping[str, Any]) -> str:
    wanted = details.get("ctx", {}).get("class", "")
    return _CLASSES.get(wanted) or _KINDS.get(details["type"], details["msg"])


def _keys(value: object) -> tuple[object, ...]:
    if isinstance(value, Mapping):
        return tuple(value)
    return tuple(range(len(value))) if isinstance(value, list | tuple) else ()


def plain(value: object) -> object:
    """Return a number of NumPy as one of Python, and any mapping as a dict."""
    if isinstance(value, Mapping):
        return dict(value)
    return value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value


@cache
def _adapter(hint: Any) -> Any:  # noqa: ANN401 - a class of pydantic
    from pydantic import ConfigDict, TypeAdapter  # noqa: PLC0415

    return TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True))
