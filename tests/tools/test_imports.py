"""Benchmarks and tools, which no type checker reads, import only what the product has."""

import importlib
import re
from pathlib import Path

import pytest

from core.paths import ROOT

IMPORT = re.compile(r"^\s*from (core[\w.]*) import (?:\(([^)]*)\)|([^#\n]*))", re.MULTILINE)
FILES = sorted((*(ROOT / "bench").rglob("*.py"), *(ROOT / "tools").rglob("*.py")))


def _exists(module: str, name: str) -> bool:
    if hasattr(importlib.import_module(module), name):
        return True
    try:
        importlib.import_module(f"{module}.{name}")
    except ModuleNotFoundError as lacking:
        return not str(lacking.name).startswith("core")  # a package that is not installed here
    return True


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def test_what_is_imported_exists(path: Path):
    asked = [
        (module, name.split(" as ")[0].strip())
        for module, several, one in IMPORT.findall(path.read_text(encoding="utf-8"))
        for name in (several or one).replace("\n", " ").split(",")
        if name.strip()
    ]
    assert [pair for pair in asked if not _exists(*pair)] == []
