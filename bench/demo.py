"""The demo's store for a bench of pages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from core.paths import ROOT

ADDRESS = "?ws=docs-search&sla_ms=20"


def demo(folder: Path) -> str:
    """Write the demo into a store, once; return the store."""
    store = folder / "demo"
    if not store.exists():
        command = [sys.executable, "-m", "core", "--store", str(store), "demo"]
        subprocess.run(command, check=True, cwd=ROOT)
    return str(store)
