"""Small sound files of each format, as its tests offer them (`OFFERS`), for the tests of damaged input.

A format that is registered without one fails `test_fuzz.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules

import pytest

from tests.importers import formats

TESTS = [import_module(f"{formats.__name__}.{each.name}") for each in iter_modules(formats.__path__)]
SAMPLES: dict[str, tuple[str, bytes]] = {
    name: offer for module in TESTS for name, offer in getattr(module, "OFFERS", {}).items()
}
"""Name → the format that it is read as, and the file."""
LONG = {"autorag"}
"""Samples of so many files that reading one anew for each of its parts takes seconds."""


def by_name(names: Iterable[str] = SAMPLES) -> list[object]:
    """Names of samples to run a test on that reads each many times; those that take long are slow."""
    return [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else ()) for name in names]
