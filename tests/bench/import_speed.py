"""Ranking files into frames and a store, against ir-measures' reader; how much memory a large one takes.

The large file has as many gigabytes as CLQ_BENCH_GIGABYTES says (0.5 otherwise).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import polars as pl

from core.importers import Options, load
from core.store import Store

ROWS, DEPTH, TIMES = 1_000_000, 1_000, 3
_IN_A_PROCESS = """
import resource, sys
from pathlib import Path
from core.importers import load
from core.store import Store
from core.views.imports import bring
made = load([sys.argv[1]])
bring(Store(Path(sys.argv[2])), made, "")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, made.taken["rankings"])
"""


def run() -> list[dict[str, Any]]:
    """Ratios of time, each the best of some turns; and the peak of a process that imports a large file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.trec"
        written(path, ROWS)
        peer = best(lambda: sum(1 for _ in ir_measures.read_trec_run(str(path))))
        frame = best(lambda: load([path], Options(collection_id="c")))
        stores = iter(range(TIMES))
        store = best(lambda: into_store(path, Path(folder) / f"store{next(stores)}"))
        peer_name = f"ir-measures' reader, {ROWS:,} rows"
        large = Path(folder) / "large.trec"
        size = written(large, 0, float(os.environ.get("CLQ_BENCH_GIGABYTES", "0.5")) * 1e9)
        command = [sys.executable, "-c", _IN_A_PROCESS, str(large), str(Path(folder) / "large")]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return [
        row("TREC file to frame", frame, peer_name, peer),
        row("TREC file into the store", store, peer_name, peer),
        row(f"{size / 1e9:.1f} GB of TREC into the store", float(said[0]), "limit", 2048, "MiB"),
    ]


def row(name: str, value: float, peer: str, peer_value: float, unit: str = "s") -> dict[str, Any]:
    """One line of the result; the ratio is above 1 where it is better than the peer."""
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "peer": peer,
        "peer_value": peer_value,
        "ratio": peer_value / value,
    }


def best(work: Callable[[], object]) -> float:
    """Seconds of the fastest of some turns."""
    seconds = []
    for _ in range(TIMES):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def into_store(path: Path, folder: Path) -> None:
    """Import a file into a new store."""
    with Store(folder).write("import") as writer:
        writer.add(load([path], Options(collection_id="c")).batch)


def written(path: Path, rows: int, size: float = 0) -> int:
    """Write a run of so many rows, or of so many bytes; return its bytes."""
    source, block = np.random.default_rng(0), 200 * DEPTH
    with path.open("wb") as file:
        made = 0
        while made < rows or file.tell() < size:
            numbers = np.arange(made, made + block)
            frame = pl.DataFrame(
                {
                    "query": numbers // DEPTH + 1_000_000,
                    "doc": (numbers * 7919 + source.integers(100)) % 8_841_823,
                    "rank": numbers % DEPTH + 1,
                    "score": 30 - (numbers % DEPTH) / 100,
                }
            )
            line = pl.format("{} Q0 {} {} {} bm25", "query", "doc", "rank", "score")
            file.write(frame.select(line).write_csv(include_header=False, quote_style="never").encode())
            made += block
        return file.tell()
