"""How the cost of scoring grows from 200,000 to 20,000,000 ranking rows, and in how much memory.

``python -m bench growth``; about three minutes, most of them for writing the stores.

Every size is a store of its own with runs of 100,000 rows (1,000 queries × 100), and is read in a process of
its own: from the files to tables of six measures per run, query and K, some runs at a time as the product
reads what does not fit at once; the largest also as one table. The peer of a size is the smallest one, scaled
to as many rows.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import polars as pl

from bench.children import Case, Found, in_a_process, peak_gib
from bench.cpu import faster
from bench.rankings import DEPTH, QUERIES, RUNS, SIX, fill, run_ids, synthesise
from core.analysis.scoring.files import every_k, in_parts
from core.analysis.workspace.scores import evidence
from core.store import Snapshot, Store
from core.store.read.graded import forget

SIZES = (200_000, 2_000_000, 20_000_000)
LIMIT_GIB = 4.0
PER_RUN, TRIES = QUERIES * DEPTH, 3


def write(folder: Path, rows: int) -> Found:
    """A store with so many ranking rows."""
    store, runs = Store.open(folder / f"store-{rows}"), rows // PER_RUN
    for part in range(math.ceil(runs / RUNS)):
        fill(store, synthesise(part=part, runs=min(RUNS, runs - part * RUNS)))
    return {"rows": float(rows)}


def in_lots(folder: Path, rows: int) -> Found:
    """From a store to its tables, some runs at a time."""
    return _read(folder, rows, lambda snapshot, names: in_parts(snapshot, names, "golden", SIX))


def at_once(folder: Path, rows: int) -> Found:
    """From a store to one table."""
    return _read(
        folder, rows, lambda snapshot, names: [every_k(evidence(snapshot, names, "golden", SIX), SIX)]
    )


def _read(folder: Path, rows: int, read: Callable[[Snapshot, list[str]], Iterable[pl.DataFrame]]) -> Found:
    """Processor seconds and peak of memory of one way to read; each try begins at the files."""
    snapshot, names = Store.open(folder / f"store-{rows}").read(), run_ids(rows // PER_RUN)
    least = math.inf
    for _ in range(TRIES):
        forget()
        start = time.process_time()
        seen = sum(table.height for table in read(snapshot, names))
        least = min(least, time.process_time() - start)
        if seen != rows:
            raise RuntimeError(f"{seen} rows instead of {rows}")
    return {"cpu_s": least, "peak": peak_gib()}


CASES: dict[str, Case] = {"write": write, "in lots": in_lots, "at once": at_once}


def run() -> list[dict[str, Any]]:
    """Measure.

    Returns:
        Rows of {name, value, unit, peer, peer_value, ratio}; time: ratio = scaled time of the smallest size /
        here; memory: ratio = limit / here.
    """
    found: dict[tuple[str, int], Found] = {}
    with tempfile.TemporaryDirectory() as name:
        for rows in SIZES:
            for case in ("write", "in lots", *(["at once"] if rows == SIZES[-1] else [])):
                found[case, rows] = in_a_process(__name__, case, Path(name), rows)
    smallest = found["in lots", SIZES[0]]["cpu_s"] / SIZES[0]
    made = []
    for (case, rows), each in found.items():
        if case == "write":
            continue
        what = f"{rows:,} rows, six measures at every K, {case}"
        per_row = f" ({1e9 * each['cpu_s'] / rows:.0f} ns a row)"
        scaled = None if rows == SIZES[0] else smallest * rows
        made.append(faster(what + per_row, each["cpu_s"], f"{SIZES[0]:,} rows, scaled", scaled))
        made.append(faster(f"{what}: peak memory", each["peak"], "our limit", LIMIT_GIB, "GiB"))
    return made
