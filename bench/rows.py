"""2, 20 and 200 million ranking rows in one workspace: import, scores and pages; time and memory of each.

``python -m bench rows --rows 200000000`` for the largest size, which takes an hour and 30 GB of disk; sizes
up to 20,000,000 otherwise.

A stack is a TREC run of 1,000 queries × 1,000 passages, drawn with a seed; a size is so many stacks in a
store of its own. Every step is a process of its own: importing the files, some at a time as they would come;
six measures at every K; the answer of page Decision; the table of page Queries. The peer of a step is the
same with a tenth of the rows, scaled; times are processor seconds.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bench.children import Case, Found, in_a_process, memory, peak_gib
from bench.cpu import faster
from bench.rankings import SIX
from core.analysis.per_query import query_table
from core.analysis.scoring.files import in_parts
from core.analysis.workspace.narrow import narrow
from core.analysis.workspace.scope import Latency, Quality, Scope
from core.importers import Options
from core.paths import PRICES
from core.prices import DEFAULT_BOOK, load_books
from core.store import Snapshot, Store
from core.work.imports.imports import read_into, store_import

SMALLEST, ROWS = 2_000_000, 20_000_000
QUERIES, DEPTH, OFFERED, JUDGED, CORPUS = 1_000, 1_000, 2_000, 150, 5_000_000
PER_STACK, AT_A_TIME = QUERIES * DEPTH, 20
NAME, QUALITY = "rows", Quality("RA-nWG", 10)


def write(folder: Path, rows: int) -> Found:
    """TREC files of so many rows, and judgements of passages that every stack could rank."""
    target = folder / f"{rows}"
    target.mkdir()
    rng = np.random.default_rng(1)
    offered = (rng.integers(0, CORPUS, (QUERIES, 1)) + np.arange(OFFERED) * 7_919) % CORPUS
    grades = rng.choice([1, 2, 3, 4, 5], size=(QUERIES, JUDGED), p=[0.35, 0.25, 0.2, 0.13, 0.07])
    merit = np.zeros((QUERIES, OFFERED), dtype=np.float32)
    merit[:, :JUDGED] = grades
    _lines("q{} 0 doc-{} {}", target / "judged.qrels", offered[:, :JUDGED], grades)
    ranks = np.broadcast_to(np.arange(1, DEPTH + 1), (QUERIES, DEPTH))
    for stack in range(rows // PER_STACK):
        noise = np.random.default_rng((2, stack)).standard_normal(merit.shape, dtype=np.float32)
        order = np.argsort(noise * (1 + stack / 100) - merit, axis=1)[:, :DEPTH]
        name, ranked = f"stack-{stack:03d}", np.take_along_axis(offered, order, axis=1)
        _lines(f"q{{}} Q0 doc-{{}} {{}} {{}} {name}", target / f"{name}.trec", ranked, ranks, DEPTH - ranks)
    return {"gib": sum(file.stat().st_size for file in target.iterdir()) / 2**30}


def _lines(form: str, path: Path, *of_queries: np.ndarray) -> None:
    """Write a line per query and column of some arrays [queries, columns]."""
    numbers = np.repeat(np.arange(QUERIES), of_queries[0].shape[1])
    columns = {f"{at}": each.ravel() for at, each in enumerate((numbers, *of_queries))}
    lines = pl.DataFrame(columns).select(pl.format(form, *columns))
    lines.write_csv(path, include_header=False, quote_style="never")


def bring_in(folder: Path, rows: int) -> Found:
    """Import the files of a size, some at a time, as the command does."""
    started, store = time.perf_counter(), Store.open(folder / f"store-{rows}")
    judged, *runs = sorted((folder / f"{rows}").iterdir())
    for first in range(0, len(runs), AT_A_TIME):
        files = [*([] if first else [judged]), *runs[first : first + AT_A_TIME]]
        snapshot = store.read()
        known = frozenset(snapshot.collections()["collection_id"])
        store_import(
            store, read_into(files, Options(collection_id=NAME, known_collections=known), snapshot), ""
        )
    return _told(started)


def score(folder: Path, rows: int) -> Found:
    """Six measures of every stack and query at every K."""
    started = time.perf_counter()
    snapshot, scope = _workspace(folder, rows)
    runs = snapshot.runs(NAME)["run_id"].to_list()
    seen = sum(part.height for part in in_parts(snapshot, runs, str(scope.golden_set_id), SIX))
    if seen != rows:
        raise RuntimeError(f"{seen} rows instead of {rows}")
    return _told(started)


def decide(folder: Path, rows: int) -> Found:
    """The stack table and what compares: all that page Decision waits for."""
    started = time.perf_counter()
    snapshot, scope = _workspace(folder, rows)
    book = load_books(PRICES)[DEFAULT_BOOK]
    table = narrow(snapshot, scope, QUALITY, Latency(), book).table
    if table["quality"].null_count():
        raise RuntimeError("a stack has no quality")
    return _told(started)


def queries(folder: Path, rows: int) -> Found:
    """The table of page Queries, of two stacks side by side."""
    started = time.perf_counter()
    snapshot, scope = _workspace(folder, rows)
    runs = snapshot.runs(NAME)["run_id"].to_list()
    if query_table(snapshot, scope, QUALITY, runs[0], runs[-1])["delta"].null_count():
        raise RuntimeError("a query has no score")
    return _told(started)


def _workspace(folder: Path, rows: int) -> tuple[Snapshot, Scope]:
    snapshot = Store.open(folder / f"store-{rows}").read()
    return snapshot, Scope(NAME, snapshot.golden_sets(NAME)["golden_set_id"][0])


def _told(started: float) -> Found:
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    return {
        "s": time.perf_counter() - started,
        "cpu_s": time.process_time(),
        "peak": max(peak_gib(), children),
    }


CASES: dict[str, Case] = {
    "write": write,
    "import": bring_in,
    "score": score,
    "decision": decide,
    "queries": queries,
}


def run(rows: int = ROWS) -> list[dict[str, Any]]:
    """Measure.

    Args:
        rows: The largest size, two stacks at least; the others are a tenth of the next.

    Returns:
        Rows of {name, value, unit, peer, peer_value, ratio}; time: ratio = scaled time of a tenth / here;
        memory: ratio = limit / here.
    """
    rows = max(rows, SMALLEST)
    sizes = sorted(rows // 10**power for power in range(9) if rows // 10**power >= SMALLEST)
    found: dict[tuple[str, int], Found] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            for case in CASES:
                found[case, size] = in_a_process(__name__, case, Path(name), size)
    return list(_compared(found, sizes))


def _compared(found: dict[tuple[str, int], Found], sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    for case in list(CASES)[1:]:
        yield memory(f"{sizes[-1]:,} rows, {case}", found[case, sizes[-1]]["peak"])
        for less, size in pairwise(sizes):
            here, scaled = found[case, size]["cpu_s"], found[case, less]["cpu_s"] * size / less
            yield faster(f"{size:,} rows, {case}", here, f"{less:,} rows, scaled", scaled)
