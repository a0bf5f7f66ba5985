"""From the store to every measure at every K, against ir-measures on the same data in the same process.

Every time is the median of three repeats after one warm-up; the sides take turns, so that other load on the
machine meets both. Both end with values per query.

* Here: a fresh snapshot of a store on disk, the join of rankings with judgements, and every measure of the
  registry at every K; PROC and %PROC included, the ranking to its full depth being the pool.
* Peer: six measures at one cutoff each with ir-measures' default provider (pytrec_eval), from what it stores
  results in: TREC files, by its own readers. One evaluator serves all runs.
* Stricter: the same peer with its input already in memory, as dictionaries of dictionaries, the form that it
  takes fastest, so that only its measures are timed; against the whole path from the store here, and against
  the measures alone.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import polars as pl
from ir_measures import AP, RR, P, R, nDCG

from bench.rankings import DEPTH, QUERIES, RUN_IDS, RUNS, fill, synthesise, write_trec
from core.metrics import REGISTRY, Measure, score_all
from core.store import Graded, Store

REPEATS = 3
Dictionaries = dict[str, dict[str, Any]]
PEER_MEASURES = (nDCG @ 10, AP, RR, P @ 10, R @ 100, nDCG @ 100)
MEASURES = tuple(Measure(name) for name, info in REGISTRY.items() if not info.needs - {"pool"})


def grade(path: Path) -> Graded:
    """Read every run of the store with its grades, from a fresh snapshot."""
    return Store.open(path).read().graded(RUN_IDS, "golden", depth=DEPTH)


def measure(graded: Graded) -> dict[Measure, Any]:
    """Every registered measure at every K."""
    return score_all(MEASURES, graded.grades, graded.pool_counts, pool_grades=graded.grades)


def by_query(rows: pl.DataFrame, value: str) -> dict[str, dict[str, Any]]:
    """Dictionary of dictionaries of one column; rows of a query follow one another."""
    passages, values = rows["passage_id"].to_list(), rows[value].to_list()
    lengths = rows["query_id"].rle().struct.unnest()
    made, start = {}, 0
    for length, query in lengths.iter_rows():
        made[query] = dict(zip(passages[start : start + length], values[start : start + length], strict=True))
        start += length
    return made


def peer_from_files(folder: Path) -> list[list[Any]]:
    """The peer's six measures per query for every run, from TREC files by its own readers."""
    qrels = ir_measures.read_trec_qrels(str(folder / "qrels"))
    evaluator = ir_measures.evaluator(list(PEER_MEASURES), qrels)
    return [
        list(evaluator.iter_calc(ir_measures.read_trec_run(str(folder / f"{run}.trec")))) for run in RUN_IDS
    ]


def read_for_peer(path: Path) -> tuple[Any, list[Dictionaries]]:
    """The peer's evaluator and its rankings as dictionaries, from a fresh snapshot."""
    snapshot = Store.open(path).read()
    runs = snapshot.rankings(RUN_IDS, stage="final").partition_by("run_id", maintain_order=True)
    evaluator = ir_measures.evaluator(list(PEER_MEASURES), by_query(snapshot.judgements("golden"), "grade"))
    return evaluator, [by_query(run, "score") for run in runs]


def peer_measure(evaluator: Any, runs: list[Dictionaries]) -> list[list[Any]]:
    """The peer's six measures per query for every run."""
    return [list(evaluator.iter_calc(run)) for run in runs]


def median_seconds(actions: Sequence[Callable[[], object]]) -> list[float]:
    """Median time of each action's repeats, all actions taking turns, after one warm-up."""
    taken: list[list[float]] = [[] for _ in actions]
    for repeat in range(REPEATS + 1):
        for action, seconds in zip(actions, taken, strict=True):
            start = time.perf_counter()
            action()
            if repeat:
                seconds.append(time.perf_counter() - start)
    return [statistics.median(seconds) for seconds in taken]


def check(path: Path) -> None:
    """Refuse to compare speeds of different results: P@10 at relevance 4 is Precision4+@10."""
    graded = grade(path)
    ours = score_all([Measure("Precision4+")], graded.grades, graded.pool_counts)[Measure("Precision4+")]
    snapshot = Store.open(path).read()
    qrels = by_query(snapshot.judgements("golden"), "grade")
    ranked = by_query(snapshot.rankings(RUN_IDS[:1], stage="final"), "score")
    theirs = {
        result.query_id: result.value for result in ir_measures.iter_calc([P(rel=4) @ 10], qrels, ranked)
    }
    np.testing.assert_allclose(ours[0, :, 9], [theirs[query] for query in graded.query_ids], atol=1e-9)


def run() -> list[dict[str, Any]]:
    """Measure and compare.

    Returns:
        Rows of {name, value, unit, peer, peer_value, ratio}; seconds, ratio = peer / here.
    """
    with tempfile.TemporaryDirectory() as folder:
        path, files = Path(folder) / "store", Path(folder)
        frames = synthesise()
        fill(Store.open(path), frames)
        write_trec(files, frames)
        check(path)
        graded, ready = grade(path), read_for_peer(path)
        here, arrays, peer, peer_arrays = median_seconds(
            [
                lambda: measure(grade(path)),
                lambda: measure(graded),
                lambda: peer_from_files(files),
                lambda: peer_measure(*ready),
            ]
        )
    all_k = f"{RUNS * QUERIES * DEPTH:,} rows, {len(MEASURES)} measures at every K ≤ {DEPTH}"
    compared = [
        (f"{all_k}: from the store", here, "ir-measures, six measures, from TREC files", peer),
        (f"{all_k}: from the store", here, "ir-measures, six measures, input in memory", peer_arrays),
        (f"{all_k}: from arrays", arrays, "ir-measures, six measures, input in memory", peer_arrays),
    ]
    return [
        {
            "name": name,
            "value": value,
            "unit": "s",
            "peer": other,
            "peer_value": taken,
            "ratio": taken / value,
        }
        for name, value, other, taken in compared
    ]
