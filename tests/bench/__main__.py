"""Run the benchmarks: ``python -m tests.bench [NAME…]``; a table, and build/bench.json.

Timings decide no test: they are printed as ratios against a named peer measured in the same run.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

from core.errors import UnknownNameError
from core.paths import ROOT

MODULES = ("metrics_speed", "store_concurrency", "slider_server", "repaint", "sessions", "uncertainty")
OUT = ROOT / "build" / "bench.json"


def main(names: list[str]) -> None:
    """Run the named benchmarks, or all, one after the other."""
    for name in names:
        if name not in MODULES:
            raise UnknownNameError("benchmark", name, MODULES)
    console = Console(stderr=True)
    rows: list[dict[str, Any]] = []
    for name in names or MODULES:
        console.print(f"{name}…")
        rows += importlib.import_module(f"tests.bench.{name}").run()
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(rows, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    show(rows)


def show(rows: list[dict[str, Any]]) -> None:
    """Print the results; ratio above 1 means better than the peer."""
    table = Table("what", "value", "peer", "peer's value", "ratio")
    for row in rows:
        ratio = "–" if row["ratio"] is None else f"{row['ratio']:.2f}"
        values = (f"{row[key]:.4g} {row['unit']}" for key in ("value", "peer_value"))
        value, peer_value = values
        table.add_row(row["name"], value, row["peer"], peer_value, ratio)
    Console().print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
