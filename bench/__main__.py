"""Run the benchmarks: ``python -m bench [NAME…]``; a table, and build/bench.json.

Without names all run but the long ones: ``growth`` (about three minutes), ``rows`` (five; ``--rows N`` sets
another size), ``scale`` and ``scale_texts`` (half an hour for corpora of a million passages; ``--passages N``
sets another size). Name them, or say ``--all``.

Timings decide no test: they are printed as ratios against a named peer measured in the same run.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

from core.errors import UnknownNameError
from core.paths import ROOT

MODULES = (
    "metrics_speed",
    "store_concurrency",
    "slider_server",
    "repaint",
    "drag",
    "sessions",
    "uncertainty",
    "import_speed",
    "import_growth",
    "engine",
    "rescore",
    "verifying",
)
LONG = ("growth", "rows", "scale", "scale_texts", "search", "selection", "calibration")
OUT = ROOT / "build" / "bench.json"


def main(arguments: list[str]) -> None:
    """Run the named benchmarks, or all, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"{', '.join(MODULES)}; long, only by name: {', '.join(LONG)}",
    )
    parser.add_argument("--passages", type=int, help="size of the corpora of scale and scale_texts")
    parser.add_argument("--rows", type=int, help="largest size of rows")
    parser.add_argument("--soak", type=int, help="runs of a soak of sessions, such as 3000")
    parser.add_argument("--only", help="one topic of calibration")
    parser.add_argument("--all", action="store_true", help="the long ones too")
    given = parser.parse_args(arguments)
    names = given.names
    for name in names:
        if name not in MODULES + LONG:
            raise UnknownNameError("benchmark", name, MODULES + LONG)
    console = Console(stderr=True)
    rows: list[dict[str, Any]] = []
    for name in names or MODULES + (LONG if given.all else ()):
        console.print(f"{name}…")
        sizes = {"passages": given.passages} if name.startswith("scale") and given.passages else {}
        sizes |= {"rows": given.rows} if name == "rows" and given.rows else {}
        sizes |= {"soak": given.soak} if name == "sessions" and given.soak else {}
        sizes |= {"only": given.only} if name == "calibration" and given.only else {}
        rows += importlib.import_module(f"bench.{name}").run(**sizes)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(rows, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    show(rows)


def show(rows: list[dict[str, Any]]) -> None:
    """Print the results; ratio above 1 means better than the peer."""
    table = Table("what", "value", "peer", "peer's value", "ratio")
    for row in rows:
        ratio = "–" if row["ratio"] is None else f"{row['ratio']:.2f}"
        measured = (row["value"], row["peer_value"])
        value, peer_value = ("–" if each is None else f"{each:.4g} {row['unit']}" for each in measured)
        table.add_row(row["name"], value, row["peer"], peer_value, ratio)
    Console().print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
