"""Ranking files into frames and a store, against ir-measures' reader; how much memory large ones take.

A large file of each form has as many gigabytes, unpacked, as CLQ_BENCH_GIGABYTES says (0.5 otherwise).
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ir_measures

from bench.large_files import FORMS, peak, written
from core.importers import Options, load
from core.store import Store

ROWS, TIMES = 1_000_000, 3


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
        gigabytes = float(os.environ.get("CLQ_BENCH_GIGABYTES", "0.5"))
        large = [in_store(form, gigabytes, Path(folder)) for form in FORMS]
    return [
        row("TREC file to frame", frame, peer_name, peer),
        row("TREC file into the store", store, peer_name, peer),
        *large,
    ]


def in_store(form: str, gigabytes: float, folder: Path) -> dict[str, Any]:
    """The line for a large file of one form; it is gone afterwards."""
    path, store = folder / f"large-{FORMS[form]}", folder / "large"
    size = written(path, 0, gigabytes * 1e9)
    held, rows = peak(path, store)
    path.unlink()
    shutil.rmtree(store)
    name = f"{size / 1e9:.1f} GB of {form} into the store, {rows:,} rows"
    return row(name, held, "limit", 2048, "MiB")


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
