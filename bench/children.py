"""Benchmarks whose cases run in processes of their own, so that each has a peak of memory of its own."""

from __future__ import annotations

import importlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.paths import ROOT

Found = dict[str, Any]
Case = Callable[[Path, int], Found]

LIMIT_GIB = 8.0
TURNS = 3


def in_a_process(module: str, case: str, folder: Path, passages: int) -> Found:
    """Run one of a module's `CASES` and read what it found."""
    out = folder / "found.json"
    command = [sys.executable, "-m", "bench.children", module, case, str(folder), str(passages)]
    subprocess.run(command, check=True, cwd=ROOT)
    found: Found = json.loads(out.read_text(encoding="utf-8"))
    shown = ", ".join(f"{name} {value:.4g}" for name, value in found.items())
    print(f"  {case}: {shown}", file=sys.stderr, flush=True)
    return found


def peak_gib() -> float:
    """The most memory that this process has had, touched pages of mapped files included."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 2**20
    raise RuntimeError("the system does not tell")


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that something took, and what it gave."""
    start = time.perf_counter()
    made = work()
    return time.perf_counter() - start, made


def turns(works: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Median seconds of each of several works that take turns."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(TURNS):
        for name, work in works.items():
            taken[name].append(timed(work)[0])
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def row(name: str, value: float, unit: str, peer: str, peer_value: float | None) -> dict[str, Any]:
    """A result of which more is better."""
    ratio = None if peer_value is None else value / peer_value
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "peer": peer,
        "peer_value": peer_value,
        "ratio": ratio,
    }


def memory(what: str, peak: float) -> dict[str, Any]:
    """A peak of memory beside the limit; ratio = limit / peak."""
    return {**row(f"{what}: peak memory", peak, "GiB", "our limit", LIMIT_GIB), "ratio": LIMIT_GIB / peak}


if __name__ == "__main__":
    MODULE, CASE, FOLDER, PASSAGES = sys.argv[1:]
    cases: dict[str, Case] = importlib.import_module(MODULE).CASES
    found = cases[CASE](Path(FOLDER), int(PASSAGES))
    (Path(FOLDER) / "found.json").write_text(json.dumps(found), encoding="utf-8")
