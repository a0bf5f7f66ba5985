"""Small sound files of each format, as its tests offer them (`OFFERS`), for the tests of damaged input.

A format that is registered without one fails `test_fuzz.py`.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from tests.importers import formats

TESTS = [import_module(f"{formats.__name__}.{each.name}") for each in iter_modules(formats.__path__)]
SAMPLES: dict[str, tuple[str, bytes]] = {
    name: offer for module in TESTS for name, offer in getattr(module, "OFFERS", {}).items()
}
"""Name → the format that it is read as, and the file."""
