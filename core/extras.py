"""Packages that only some uses need, installed by a file of requirements of their own."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from core.errors import ClqError

SEARCH_REQUIREMENTS = "requirements-search.txt"


def needed(package: str, requirements: str, what: str = "This") -> ModuleType:
    """Return a package that need not be installed.

    Args:
        package: Its name as it is imported; a part of it ("ray.util") counts as its own.
        requirements: The file that brings it, as `requirements-ray.txt`.
        what: What needs it, as the beginning of a sentence.

    Raises:
        ClqError: If it is not installed; says the command that installs it.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise _missing(package, requirements, what) from error


def installed(package: str) -> bool:
    """Return whether a package is there, without importing it."""
    return importlib.util.find_spec(package) is not None


def obstacle(package: str, requirements: str, what: str) -> ClqError | None:
    """Return what `needed` would raise, without importing the package."""
    return None if installed(package) else _missing(package, requirements, what)


def _missing(package: str, requirements: str, what: str) -> ClqError:
    found = f"{what} needs the package {package.partition('.')[0]}."
    return ClqError(found, do=f"Install it: pip install -r {requirements}")
