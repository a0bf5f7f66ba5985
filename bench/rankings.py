"""Made-up judgements and rankings, for a store and as TREC files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from core.metrics import Measure
from core.records import Batch, Collection, GoldenSet, Origin, Run, Stack
from core.store import Store
from core.tables import frame

RUNS, QUERIES, DEPTH, JUDGED = 20, 1_000, 100, 150
CORPUS = 100_000
RUN_IDS = [f"run-{run:02d}" for run in range(RUNS)]
SIX = tuple(Measure(name) for name in ("RA-nWG", "N-Recall4+", "PROC[RA-nWG]", "nDCG", "AP", "RR"))


def synthesise(seed: int = 7, *, runs: int = RUNS, part: int = 0) -> dict[str, pl.DataFrame]:
    """Draw judgements and rankings; about half of what a run ranks is judged, the better the earlier.

    Args:
        seed: Equal seeds give equal judgements.
        runs: How many rankings there are of every query.
        part: Which lot of runs; their names go on from the last one's.
    """
    rng, noise = np.random.default_rng(seed), np.random.default_rng((seed, part))
    near = np.argsort(rng.random((QUERIES, 1_000)), axis=1)[:, : JUDGED * 2]
    offered = near + rng.integers(0, CORPUS - 1_000, (QUERIES, 1))
    grades = rng.choice([1, 2, 3, 4, 5], size=(QUERIES, JUDGED), p=[0.35, 0.25, 0.2, 0.13, 0.07])
    merit = np.concatenate([grades, np.ones((QUERIES, JUDGED))], axis=1)
    order = np.argsort(noise.normal(0, 2, (runs, *merit.shape)) - merit, axis=-1)[..., :DEPTH]
    ranked = np.take_along_axis(np.broadcast_to(offered, (runs, *offered.shape)), order, axis=-1)
    names = [f"q{query:04d}" for query in range(QUERIES)]
    passages = np.array([f"doc-{number:06d}" for number in range(CORPUS)])
    judgements = {
        "golden_set_id": ["golden"] * (QUERIES * JUDGED),
        "query_id": np.repeat(names, JUDGED),
        "passage_id": passages[offered[:, :JUDGED]].ravel(),
        "grade": grades.ravel(),
    }
    rankings = {
        "run_id": np.repeat(run_ids(runs, part), QUERIES * DEPTH),
        "query_id": np.tile(np.repeat(names, DEPTH), runs),
        "stage": ["final"] * (runs * QUERIES * DEPTH),
        "rank": np.tile(np.arange(1, DEPTH + 1), runs * QUERIES),
        "passage_id": passages[ranked].ravel(),
        "score": np.tile(np.linspace(20, 1, DEPTH), runs * QUERIES),
    }
    return {"judgements": frame("judgements", judgements), "rankings": frame("rankings", rankings)}


def run_ids(runs: int = RUNS, part: int = 0) -> list[str]:
    """Names of the runs of a lot."""
    return [f"run-{part * RUNS + run:02d}" for run in range(runs)]


def fill(store: Store, frames: dict[str, pl.DataFrame]) -> None:
    """Put the data into a store; what it has already is left as it is."""
    collection = Collection(collection_id="bench", name="Synthetic")
    golden = GoldenSet(golden_set_id="golden", collection_id="bench", name="Synthetic")
    names = frames["rankings"]["run_id"].unique(maintain_order=True)
    runs = tuple(
        Run(run_id=name, collection_id="bench", stack=Stack({"name": name}), label=name, origin=Origin.IMPORT)
        for name in names
    )
    with store.write("bench") as writer:
        writer.add(Batch(collections=(collection,), golden_sets=(golden,), runs=runs, frames=frames))


def write_trec(folder: Path, frames: dict[str, pl.DataFrame]) -> None:
    """Write TREC files, one per run, and a qrels file."""
    rankings, judgements = frames["rankings"], frames["judgements"]
    for run in RUN_IDS:
        rows = rankings.filter(pl.col("run_id") == run)
        lines = rows.select("query_id", pl.lit("Q0"), "passage_id", "rank", "score", "run_id")
        lines.write_csv(folder / f"{run}.trec", separator=" ", include_header=False)
    lines = judgements.select("query_id", pl.lit("0"), "passage_id", "grade")
    lines.write_csv(folder / "qrels", separator=" ", include_header=False)
