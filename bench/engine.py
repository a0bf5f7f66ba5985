"""Two million ranking rows to a table of six measures per run, query and K, against ir-measures and ranx.

Times are processor seconds of all threads, the least of several tries; all sides take turns in one process.

* Here: a fresh snapshot of a store on disk, nothing kept from earlier, to a table with RA-nWG, N-Recall4+,
  PROC[RA-nWG], nDCG, AP and RR of every run and query at every K ≤ 100; and the same from TREC files, parsed
  and checked by the importers, without a store.
* Peers: six measures at one cutoff each, per query, of all runs: from TREC files by their own readers, which
  is how they store results; and with everything in memory already, so that only their measures are timed.
  ranx is warm: its compiler ran before.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from ranx import Qrels, Run, evaluate

from bench import metrics_speed
from bench.cpu import faster, least_cpu
from bench.rankings import DEPTH, QUERIES, RUN_IDS, RUNS, SIX, fill, synthesise, write_trec
from core.analysis.scoring.files import every_k, evidence_of
from core.analysis.workspace.scores import evidence
from core.importers import Options, load
from core.store import Store
from core.store.read.graded import forget

RANX = ["ndcg@10", "map", "mrr", "precision@10", "recall@100", "ndcg@100"]


def from_store(path: Path) -> pl.DataFrame:
    """The table, from files of a store."""
    forget()
    return every_k(evidence(Store.open(path).read(), RUN_IDS, "golden", SIX), SIX)


def from_files(folder: Path) -> pl.DataFrame:
    """The table, from TREC files."""
    files = [*(folder / f"{run}.trec" for run in RUN_IDS), folder / "qrels"]
    return every_k(evidence_of(load(files, Options(collection_id="bench"))), SIX)


def ranx_from_files(folder: Path) -> list[Any]:
    """Six measures per query of every run with ranx, by its own readers."""
    qrels = Qrels.from_file(str(folder / "qrels"), kind="trec")
    runs = [Run.from_file(str(folder / f"{run}.trec"), kind="trec") for run in RUN_IDS]
    return ranx_measure(qrels, runs)


def ranx_measure(qrels: Qrels, runs: list[Run]) -> list[Any]:
    """Six measures per query of every run with ranx."""
    return [evaluate(qrels, run, RANX, return_mean=False) for run in runs]


def check(folder: Path) -> None:
    """Refuse to compare speeds of different results: both ways here, and nDCG@10 of a run with the peer."""
    ours, other = from_store(folder / "store"), from_files(folder)
    assert ours.select(pl.exclude("run")).equals(other.select(pl.exclude("run")))
    first = ours.filter(k=10, run=RUN_IDS[0])
    peer = metrics_speed.peer_from_files(folder)[0]
    theirs = {each.query_id: each.value for each in peer if str(each.measure) == "nDCG@10"}
    assert all(abs(value - theirs[query]) < 1e-9 for query, value in first.select("query_id", "nDCG").rows())


def run() -> list[dict[str, Any]]:
    """Measure and compare.

    Returns:
        Rows of {name, value, unit, peer, peer_value, ratio}; processor seconds, ratio = peer / here.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frames = synthesise()
        fill(Store.open(folder / "store"), frames)
        write_trec(folder, frames)
        check(folder)
        ready = metrics_speed.read_for_peer(folder / "store")
        qrels = Qrels.from_file(str(folder / "qrels"), kind="trec")
        runs = [Run.from_file(str(folder / f"{each}.trec"), kind="trec") for each in RUN_IDS]
        found = least_cpu(
            {
                "store": partial(from_store, folder / "store"),
                "files": partial(from_files, folder),
                "ir-measures from TREC files": partial(metrics_speed.peer_from_files, folder),
                "ir-measures in memory": partial(metrics_speed.peer_measure, *ready),
                "ranx from TREC files": partial(ranx_from_files, folder),
                "ranx in memory": partial(ranx_measure, qrels, runs),
            },
            tries=3,
        )
    rows = f"{RUNS * QUERIES * DEPTH:,} rows, six measures at every K ≤ {DEPTH}"
    peers = [peer for peer in found if " " in peer]
    return [faster(f"{rows}: store to table", found["store"], peer, found[peer]) for peer in peers] + [
        faster(f"{rows}: TREC files to table", found["files"], peer, found[peer])
        for peer in peers
        if "files" in peer
    ]
