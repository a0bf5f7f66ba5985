"""Extensions that other packages add by entry points: measures, formats, models, indexes, sections.

A package names them in its `pyproject.toml`, as ``[project.entry-points."clq.measures"]``. Rarely needed ones
are in `core/contrib` and listed in its table of the same form. A plug-in that cannot be loaded is left out
and reported with the reason: it never breaks a page or a command.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any, TypeVar

from core.errors import ClqError, InputError

T = TypeVar("T")

GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "clq.measures": ("core.metrics.measure",),
        "clq.importers": ("core.importers.formats",),
        "clq.providers": ("core.providers.embed", "core.providers.rerank", "core.providers.chat"),
        "clq.indexes": ("core.pipeline.index",),
        "clq.sections": ("core.views.added",),
    }
)
"""Group of entry points to the modules that use its members."""
OFF = "CLQ_PLUGINS"
"""Environment variable that disables other packages' plug-ins if it is ``off``."""
_CONTRIB = "core.contrib"
_PARTS = {"clq.providers": "none of embed, rerank and chat", "clq.sections": "no page"}
_LOADED: dict[tuple[str, str, str], PlugIn] = {}


@dataclass(frozen=True, slots=True)
class PlugIn:
    """An entry point, and whether it was loaded."""

    group: str  # a key of `GROUPS`
    name: str  # as its package names it
    package: str  # distribution with version; "built in" for core/contrib
    problem: str = ""  # why it is left out; "" if it is loaded
    made: Any = None  # what its registry keeps of it; None if it is left out


def loaded(
    group: str, made: Callable[[str, object], T], taken: Container[str] = (), *, part: str = ""
) -> dict[str, T]:
    """Load a group of entry points.

    Args:
        group: A key of `GROUPS`.
        made: Makes the registry's object from a name and the value of the entry point.
        taken: Names that the product uses itself.
        part: Only load names that begin with this and a dot: ``embed.acme`` is acme of embed.

    Returns:
        The objects by name; failures are left out and reported by `plugins`.
    """
    found: dict[str, T] = {}
    for entry, package in _entries(group):
        begins, _, name = entry.name.partition(".") if part else ("", "", entry.name)
        if begins != part:
            continue
        problem = f"{name} is there already. Give it another name." if name in taken or name in found else ""
        try:
            if not problem:
                found[name] = made(name, entry.load())
        except Exception as error:
            problem = _reason(error)
        made_of = None if problem else found[name]
        _LOADED[group, entry.name, package] = PlugIn(group, entry.name, package, problem[:200], made_of)
    return found


def plugins() -> tuple[PlugIn, ...]:
    """Return every plug-in that was found, loaded or not, by group and name; this loads all groups."""
    for group, modules in GROUPS.items():
        for module in modules:
            getattr(import_module(module), "load_all", lambda: None)()
        for entry, package in _entries(group):
            key = group, entry.name, package
            _LOADED.setdefault(key, PlugIn(*key, f"{entry.name} begins with {_PARTS.get(group)}."))
    return tuple(_LOADED[key] for key in sorted(_LOADED))


def own_modules(group: str) -> tuple[str, ...]:
    """Return the modules of the product's own plug-ins in a group, to be imported in advance."""
    targets = import_module(_CONTRIB).ENTRY_POINTS.get(group, {}).values()
    return tuple(target.partition(":")[0] for target in targets)


def _reason(error: Exception) -> str:
    """Explain why a plug-in cannot be loaded, and the way out if there is one."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, ImportError) and "partially initialized" in str(error):
        return "It needs what is not loaded yet: a measure stands in a module that imports no format or page."
    return f"{type(error).__name__}: {error}"


@contextmanager
def blamed(name: str) -> Iterator[None]:
    """Blame a plug-in for the exceptions it raises.

    Raises:
        ClqError: Instead of any other exception.
    """
    try:
        yield
    except ClqError:
        raise
    except Exception as error:
        raise ClqError(
            f"Plug-in {name} failed: {type(error).__name__}: {error}"[:200],
            do=f"Tell its author, or leave plug-ins out with {OFF}=off.",
        ) from error


def subclass_of(base: type) -> Callable[[str, object], Any]:
    """Return a function that accepts a subclass of a class and refuses anything else."""

    def made(name: str, value: object) -> type:
        if isinstance(value, type) and issubclass(value, base):
            return value
        raise InputError(f"{name} is not a subclass of {base.__name__}.")

    return made


def _entries(group: str) -> list[tuple[EntryPoint, str]]:
    """Return the entry points of a group with their packages, each once, the product's own first."""
    own = import_module(_CONTRIB).ENTRY_POINTS.get(group, {})
    entries = [(EntryPoint(name, target, group), "built in") for name, target in own.items()]
    if os.environ.get(OFF, "").lower() != "off":
        others = {(entry.name, entry.value): entry for entry in _installed(group)}
        entries += [(entry, _package(entry)) for _, entry in sorted(others.items())]
    return entries


@cache
def _installed(group: str) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=group))


def _package(entry: EntryPoint) -> str:
    return "unknown package" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
