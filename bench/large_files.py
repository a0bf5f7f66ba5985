"""Files of rankings of any size and form, and the peak of memory of a process that imports one."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, cast

import numpy as np
import polars as pl

DEPTH = 1_000
"""Passages per query."""
FORMS = {"TREC": "run.trec", "CSV": "run.csv", "JSONL": "run.jsonl", "TREC, .gz,": "run.trec.gz"}
"""What people read → a file name of that form."""
_IN_A_PROCESS = """
import resource, sys
from pathlib import Path
from core.importers import load
from core.store import Store
from core.work.imports.imports import store_import
made = load([sys.argv[1]])
store_import(Store(Path(sys.argv[2])), made, "")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, made.taken["rankings"])
"""


def written(path: Path, rows: int, size: float = 0) -> int:
    """Write a run of so many rows, or of so many bytes.

    Args:
        path: Its name says the form: .trec, .csv or .jsonl, and .gz behind that.
        rows: Least rows.
        size: Least bytes, unpacked.

    Returns:
        Its bytes, unpacked.
    """
    source, block, made, total = np.random.default_rng(0), 200 * DEPTH, 0, 0
    with _opener(path)(path, "wb") as file:
        while made < rows or total < size:
            data = _text(_block(made, block, int(source.integers(100))), path.suffixes[0], first=made == 0)
            file.write(data)
            made, total = made + block, total + len(data)
    return total


def _opener(path: Path) -> Callable[..., IO[bytes]]:
    packs = partial(gzip.open, compresslevel=1)
    return cast("Callable[..., IO[bytes]]", packs if path.suffix == ".gz" else open)


def _block(first: int, rows: int, shift: int) -> pl.DataFrame:
    numbers = np.arange(first, first + rows)
    return pl.DataFrame(
        {
            "query_id": (numbers // DEPTH + 1_000_000).astype(str),
            "passage_id": ((numbers * 7919 + shift) % 8_841_823).astype(str),
            "rank": numbers % DEPTH + 1,
            "score": 30 - (numbers % DEPTH) / 100,
        }
    )


def _text(rows: pl.DataFrame, form: str, *, first: bool) -> bytes:
    """A block of a file; the first one of a table has the header."""
    if form == ".csv":
        return rows.write_csv(include_header=first).encode()
    if form == ".jsonl":
        return rows.write_ndjson().encode()
    line = pl.format("{} Q0 {} {} {} bm25", *rows.columns)
    return rows.select(line).write_csv(include_header=False, quote_style="never").encode()


def peak(path: Path, store: Path) -> tuple[float, int]:
    """Import a file into a new store, in a process of its own.

    Returns:
        The most memory that it held in MiB, and the rows that it took.
    """
    command = [sys.executable, "-c", _IN_A_PROCESS, str(path), str(store)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(said[0]), int(said[1])
