"""Packages that only some uses need, installed by a file of requirements of their own."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType
from typing import Any

from core.errors import ClqError
from core.paths import INSTALLED

RUN_REQUIREMENTS = "requirements.txt"
"""Brings what evaluations stand on: all of a checkout, the extra `run` where only the base was installed."""
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


class _Later(ModuleType):
    """A package that is imported when something of it is first used."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(needed(self.__name__, RUN_REQUIREMENTS, "An evaluation"), name)


def later(package: str) -> ModuleType:
    """Return a stand-in for a package of `RUN_REQUIREMENTS`, which takes long to load or is not there.

    Raises:
        ClqError: When it is used and not installed, see `needed`.
    """
    return _Later(package)


def installed(package: str) -> bool:
    """Return whether a package is there, without importing it."""
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # what it is a part of is not there
        return False


def obstacle(package: str, requirements: str, what: str) -> ClqError | None:
    """Return what `needed` would raise, without importing the package."""
    return None if installed(package) else _missing(package, requirements, what)


def _missing(package: str, requirements: str, what: str) -> ClqError:
    problem = f"{what} needs the package {package.partition('.')[0]}."
    return ClqError(problem, do=f"Install it: {installing(requirements)}")


def installing(requirements: str) -> str:
    """Return the command that brings what a file of requirements names, in a checkout or installed."""
    if not INSTALLED:
        return f"pip install -r {requirements}"
    extra = requirements.removeprefix("requirements").removesuffix(".txt").removeprefix("-") or "run"
    return f'pip install "clq-explorer[{extra}]"'
