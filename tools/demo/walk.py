"""Finds the documented public objects of an installed package.

Objects are inspected and never called. The walk follows the files of the package, not what happens to be
imported already, so that every process finds the same objects.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple

MIN_CHARACTERS = 60
MAX_SIGNATURE = 120

# Parts of a module's name without reference text: tests, bundled code, build tools, deprecated aliases,
# and modules that need an extra package or start something when they are imported.
_SKIPPED_PARTS = frozenset(
    {
        "__main__",
        "bootstrap",
        "conftest",
        "core",
        "distutils",
        "f2py",
        "hello",
        "matlib",
        "mypy_plugin",
        "parametric",
        "proto",
        "tests",
        "torch",
        "vendor",
    }
)
# Whole modules: the server's own machinery, which no app imports; testing creates a folder when imported.
_SKIPPED_MODULES = frozenset(
    {
        "streamlit.dataframe",
        "streamlit.elements.lib",
        "streamlit.runtime",
        "streamlit.testing",
        "streamlit.watcher",
        "streamlit.web",
    }
)
# Instances whose members have a better name: containers repeat every element of `streamlit`.
_SKIPPED_INSTANCES = frozenset({"streamlit.bottom", "streamlit.sidebar"})
_OPAQUE = re.compile(r"=<[^>]*>")  # a default without a literal, such as <no value>


class Documented(NamedTuple):
    """A documented object under one of its names.

    Attributes:
        name: Qualified name by which it can be reached.
        module: The module that exposes it under that name.
        text: The cleaned docstring.
        target: The object itself.
    """

    name: str
    module: str
    text: str
    target: object

    @property
    def rank(self) -> tuple[int, bool, int, str]:
        """Return a sort key for names of one text: the most public first, a function's own before aliases."""
        own = _attribute(self.target, "__name__") if _is_defined(self.target) else None
        alias = own != self.name.rpartition(".")[2]
        return (self.name.count("."), alias, len(self.name), self.name)


def walk(package: str) -> Iterator[Documented]:
    """Find every documented public object of a package, under each of its names.

    Args:
        package: An importable top-level package.

    Yields:
        Objects with a docstring of at least `MIN_CHARACTERS`, in an order that depends only on the installed
        files; an object with several names is yielded several times.

    Raises:
        ModuleNotFoundError: If the package is not installed.
    """
    for module in _modules(package):
        yield from _documented(module.__name__, module.__name__, module)
        for name in _public_names(module):
            target = _attribute(module, name)
            if target is not None and not isinstance(target, ModuleType):
                yield from _object(f"{module.__name__}.{name}", module.__name__, target, package)


def _modules(package: str) -> Iterator[ModuleType]:
    """Yield the importable public modules of a package, in the order of their names."""
    pending = [importlib.import_module(package)]
    while pending:
        module = pending.pop()
        yield module
        names = sorted(info.name for info in pkgutil.iter_modules(getattr(module, "__path__", ())))
        children = (_import(module.__name__, name) for name in names)
        pending.extend(child for child in children if child is not None)


def _import(parent: str, name: str) -> ModuleType | None:
    """Return a module of a package, or None if it is left out or cannot be imported here."""
    path = f"{parent}.{name}"
    if name.startswith(("_", "test_")) or name in _SKIPPED_PARTS or path in _SKIPPED_MODULES:
        return None
    try:
        return importlib.import_module(path)
    except Exception:  # it needs a package, a system or a setting that is missing here
        return None


def _object(name: str, module: str, target: object, package: str) -> Iterator[Documented]:
    """Yield a class with its members, a function, or an instance with the members of its class."""
    if type(target).__module__ == "typing":  # type variables have the documentation of their kind
        return
    if inspect.isclass(target):
        if _belongs(target, package):
            yield from _documented(name, module, target)
            yield from _members(name, module, target, package)
    elif _is_defined(target):
        if _belongs(target, package):
            yield from _documented(name, module, target)
    elif _belongs(type(target), package) and name not in _SKIPPED_INSTANCES:
        yield from _documented(name, module, _documentation(target))
        yield from _members(name, module, type(target), package)


def _documentation(instance: object) -> object:
    """Return what documents an instance: its call (for Streamlit's caches the decorator) or its class."""
    methods = (vars(type(instance)).get(method) for method in ("__call__", "_decorator"))
    return next((method for method in methods if getattr(method, "__doc__", None)), instance)


def _members(name: str, module: str, owner: type, package: str) -> Iterator[Documented]:
    """Yield the documented public members of a class, of its private bases, and of its accessors."""
    for base in owner.__mro__:
        if base is not owner and not (_belongs(base, package) and _is_private(base)):
            continue
        for member, value in sorted(vars(base).items()):
            if member.startswith("_"):
                continue
            target = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            accessor = _accessor(target, owner)
            if accessor is not None:
                yield from _members(f"{name}.{member}", module, accessor, package)
            elif not inspect.isclass(target):
                yield from _documented(f"{name}.{member}", module, target)


def _accessor(target: object, owner: type) -> type | None:
    """Return the class behind a namespace property such as ``polars.Expr.str``, or None for other members."""
    getter = getattr(target, "fget", None)
    returned = str(getattr(getter, "__annotations__", {}).get("return", ""))
    if not returned.endswith("NameSpace"):
        return None
    found = getattr(getter, "__globals__", {}).get(returned)
    return found if inspect.isclass(found) and found is not owner else None


def _documented(name: str, module: str, target: object) -> Iterator[Documented]:
    text = _attribute(target, "__doc__")
    if not isinstance(text, str):
        return
    text = inspect.cleandoc(text).strip()
    if len(text) >= MIN_CHARACTERS:
        yield Documented(name, module, text, target)


def _public_names(module: ModuleType) -> list[str]:
    """Return the names a module offers: declared, all of a package's, or those a plain module defines."""
    declared = getattr(module, "__all__", None)
    if declared is None and not hasattr(module, "__path__"):
        own = module.__name__
        found = vars(module).items()
        declared = [name for name, value in found if _attribute(value, "__module__") in (None, own)]
    names = set(vars(module) if declared is None else declared)
    return sorted(name for name in names if not name.startswith("_"))


def _attribute(owner: object, name: str) -> object:
    """Return an attribute, or None if reading it raises: lazy attributes may fail in any way."""
    try:
        return getattr(owner, name)
    except Exception:
        return None


def _belongs(target: object, package: str) -> bool:
    """Return whether the object says that it was defined in the package."""
    module = _attribute(target, "__module__")
    return module is None or str(module).partition(".")[0] == package


def _is_defined(target: object) -> bool:
    """Return whether the object is a class or a function of some kind, without running its own code."""
    return (
        inspect.isclass(target)
        or inspect.isroutine(target)
        or inspect.getattr_static(target, "__name__", None) is not None
    )


def _is_private(target: type) -> bool:
    return any(part.startswith("_") for part in (*target.__module__.split("."), target.__name__))


def signature_of(target: object) -> str:
    """Return the parameters of a callable without annotations, or "" if Python doesn't know them."""
    if not callable(target):
        return ""
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return ""
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
        if parameter.name not in {"self", "cls"}
    ]
    plain = signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
    shown = _OPAQUE.sub("=…", str(plain))
    return shown if len(shown) <= MAX_SIGNATURE else shown[: MAX_SIGNATURE - 2] + "…)"
