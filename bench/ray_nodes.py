"""Evaluations on Ray: ``python -m bench.ray_nodes overhead|speedup|node|driver [TIMES]``; run by hand.

overhead: 648 stacks of the fake vendor, here and on one node. speedup: a sweep of work for processors, on one
and on two nodes of one processor each. node, driver: one of two nodes, or the process that writes, is killed
with -9 while an evaluation with paid models runs, TIMES times; counts are the vendor's.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.pipeline.evaluate import Job, Protocol
from core.records import Stack
from tests.pipeline.evaluate import paid
from tests.pipeline.evaluate.vendor import Vendor, vendor

MODELS, DIMS, DEPTHS = ("e1", "e2", "e3"), (8, 16, 32), (5, 10, 15, 20)
INDEXES, RERANKERS = ("flat", "hnsw-f32", "int8"), ("none", "r1", "r2")


def grid() -> list[Stack]:
    """The sweep of the paper, §3.5: 648 stacks."""
    fused = {"sparse": "bm25", "fusion": {"method": "rrf", "constant": 60, "depth": 20}}
    return [
        Stack(
            {
                "mode": mode,
                "embedder": model,
                "dim": dim,
                "index": index,
                "reranker": reranker,
                "candidates": depth,
                **(fused if mode == "hybrid" else {}),
            }
        )
        for mode in ("dense", "hybrid")
        for model in MODELS
        for dim in DIMS
        for index in INDEXES
        for reranker in RERANKERS
        for depth in DEPTHS
    ]


def sweep(url: str) -> Job:
    """648 stacks of paid models over 60 passages, asked 5 questions once."""
    job = paid.job(url, size=60, stacks=grid(), protocol=Protocol(repeats=1), book=paid.book())
    known = {"e": job.models["embedder"], "r": job.models["reranker"]}
    models = {
        name: known[name[0]].model_copy(
            update={"name": name, "model": name, "price_item": name[0]}
            | ({"dims": (8, 16, 32), "batch_items": 20} if name[0] == "e" else {})
        )
        for name in (*MODELS, *RERANKERS[1:])
    }
    return replace(job, models=models, queries=job.queries.head(5))


@contextmanager
def nodes(count: int, cpus: int = 1) -> Iterator[Any]:
    """A cluster of machines that are processes here."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": cpus, "include_dashboard": False})
    for _ in range(count - 1):
        cluster.add_node(num_cpus=cpus)
    ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
    try:
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@contextmanager
def served(folder: Path, delay_s: float = 0.0) -> Iterator[Vendor]:
    """The vendor, and the key for it in the environment, where the machines of a cluster look."""
    with vendor(folder, delay_s) as server:
        os.environ |= {"KEY": "k", "CLQ_ALLOW_KEYS": f"KEY={server.url}"}
        yield server


def work(folder: Path, url: str, job: Job, on: str) -> tuple[float, float]:
    """Run an evaluation; seconds, and the share of a processor that was free of others' work."""
    begin = time.perf_counter()
    outcome = paid.work(folder, url, os.environ["KEY"], job, on=on)
    took = time.perf_counter() - begin
    print(
        f"  {on or 'here'}: {took:.1f} s, {len(outcome.runs)} stacks, ${outcome.status.usd:.3f}", flush=True
    )
    return took, outcome.status.usd


def overhead(times: int) -> None:
    """One node against this process."""
    ratios = []
    for cpus in (1, 2):
        with tempfile.TemporaryDirectory() as name, served(Path(name)) as server, nodes(1, cpus):
            for turn in range(times):
                here = work(Path(name) / f"here{turn}", server.url, sweep(server.url), "")
                there = work(Path(name) / f"there{turn}", server.url, sweep(server.url), "ray")
                ratios.append(there[0] / here[0])
                print(f"{cpus} CPUs: {ratios[-1]:.3f}, load {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    overhead(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
