"""How the time of an import grows with its runs: a doubling should take twice as long, not four times.

One import into a new store, and the same again into that store, where all is known: a folder of results of
MTEB with ten runs a file, and a table with one row per stack.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.import_speed import row
from core.importers import Options, load
from core.store import Store
from core.work.imports.imports import store_import

SIZES = (4_000, 8_000, 16_000)
SUBSETS, TASKS = 10, 100
STACKS, LIMIT_S = 10_000, 3.0


def run() -> list[dict[str, Any]]:
    """Growth per doubling against the 2 of an import that is linear; a table of stacks against a limit."""
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, written in (("runs of MTEB", results), ("rows of a table", table)):
            times = [timed(written(folder, size), folder / f"store {size} {what}") for size in SIZES]
            for turn, words in enumerate(("imported", "imported again")):
                for size, (before, after) in zip(SIZES[1:], pairwise(times), strict=True):
                    grown = after[turn] / before[turn]
                    told = f"{size:,} {what} {words}, time per half of them"
                    found.append(row(told, grown, "linear", 2.0, "×"))
        fresh, _ = timed(table(folder, STACKS), folder / "store of stacks")
    return [*found, row(f"{STACKS:,} rows of figures into the store", fresh, "limit", LIMIT_S)]


def timed(offered: Path, folder: Path) -> tuple[float, float]:
    """Seconds of the processor to import something, and to import it again."""
    store = Store.open(folder)

    def work() -> None:
        known = frozenset(store.read().collections()["collection_id"])
        store_import(store, load([offered], Options(known_collections=known)), "bench")

    return seconds(work), seconds(work)


def seconds(work: Callable[[], object]) -> float:
    """How long something keeps the processor busy: other work on the machine does not count."""
    began = time.process_time()
    work()
    return time.process_time() - began


def results(folder: Path, runs: int) -> Path:
    """Results of MTEB with so many runs, of as many models as that needs."""
    root = folder / f"results {runs}"
    for number in range(runs // (SUBSETS * TASKS)):
        model = root / f"org__model-{number}" / "revision"
        model.mkdir(parents=True)
        about = {"name": f"org/model-{number}", "revision": "r", "loader": "own", "embed_dim": 8}
        (model / "model_meta.json").write_text(json.dumps(about))
        for task in range(TASKS):
            figures = {"main_score": 0.5, "ndcg_at_10": 0.5, "map_at_10": 0.4, "recall_at_100": 0.8}
            subsets = [{"hf_subset": f"s{subset}", **figures} for subset in range(SUBSETS)]
            told = {"task_name": f"Task{task}Retrieval", "mteb_version": "2", "scores": {"test": subsets}}
            (model / f"Task{task}Retrieval.json").write_text(json.dumps(told))
    return root


def table(folder: Path, runs: int) -> Path:
    """A table with a row and four figures for each of so many stacks."""
    path = folder / f"stacks {runs}.csv"
    lines = (
        f"stack {number},{number % 97 / 97:.4f},{number % 89 / 89:.4f},{number % 501},{number % 7 / 7:.3f}\n"
        for number in range(runs)
    )
    path.write_text("stack,nDCG@10,RA-nWG@10,latency_p50_ms,cost_usd_per_1k\n" + "".join(lines))
    return path
