"""Packages that only some uses need, installed from requirements files of their own."""

from __future__ import annotations

import importlib
import importlib.util
import json
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from types import ModuleType
from typing import Any

from core.errors import ClqError
from core.paths import INSTALLED

RUN_REQUIREMENTS = "requirements.txt"
"""Installs the needs of evaluations: all of a checkout, or the extra `run` if only the base was installed."""
DISTRIBUTION = "clq-explorer"
"""The name of the installed product."""
SEARCH_REQUIREMENTS = "requirements-search.txt"


def needed(package: str, requirements: str, what: str = "This") -> ModuleType:
    """Import and return an optional package.

    Args:
        package: Its import name; a part of it ("ray.util") counts as its own.
        requirements: The file that installs it, such as `requirements-ray.txt`.
        what: What needs it, as the beginning of a sentence.

    Raises:
        ClqError: If it is not installed; the message gives the command that installs it.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise _missing(package, requirements, what) from error


class _Later(ModuleType):
    """A package that is imported on first use."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(needed(self.__name__, RUN_REQUIREMENTS, "An evaluation"), name)


def later(package: str) -> ModuleType:
    """Return a stand-in for a package of `RUN_REQUIREMENTS`, which may be slow to load or missing.

    Raises:
        ClqError: If it is used but not installed, see `needed`.
    """
    return _Later(package)


def installed(package: str) -> bool:
    """Return whether a package is installed, without importing it."""
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # its parent package is missing
        return False


def obstacle(package: str, requirements: str, what: str) -> ClqError | None:
    """Return the error that `needed` would raise, without importing the package."""
    return None if installed(package) else _missing(package, requirements, what)


def _missing(package: str, requirements: str, what: str) -> ClqError:
    problem = f"{what} needs the package {package.partition('.')[0]}."
    return ClqError(problem, do=f"Install it: {installing(requirements)}")


def installing(requirements: str) -> str:
    """Return the command that installs a requirements file, in a checkout or for an installed product."""
    if not INSTALLED:
        return f"pip install -r {requirements}"
    extra = requirements.removeprefix("requirements").removesuffix(".txt").removeprefix("-") or "run"
    return f'pip install "{DISTRIBUTION}[{extra}]{_origin()}"'


def _origin() -> str:
    """Return the origin of the installed wheel in the form of a requirement; "" = a package index."""
    with suppress(PackageNotFoundError, ValueError):
        told = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
        return f" @ {told['url']}" if isinstance(told, dict) and told.get("url") else ""
    return ""
