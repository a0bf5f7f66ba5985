"""Evaluations on Ray: ``python -m bench.ray_nodes overhead|speedup|node|driver|client [TIMES]``; run by hand.

overhead: 648 stacks of the fake vendor, here and on one node. speedup: a sweep of work for processors, on one
and on two nodes of one processor each. node, driver: one of two nodes, or the process that writes, is killed
with -9 while an evaluation with paid models runs, TIMES times; counts are the vendor's. client: results of a
process that comes by ray:// are equal.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from core.paths import ROOT
from core.pipeline.evaluate import Job, Protocol
from core.pipeline.evaluate.budget import Receipts
from core.records import Stack
from tests.pipeline.corpora import WORDS, passages, random_texts
from tests.pipeline.evaluate import helpers, paid
from tests.pipeline.evaluate.machines import lose_a_machine, nodes, wait_for
from tests.pipeline.evaluate.vendor import Vendor, vendor

MODELS, DIMS, DEPTHS = ("e1", "e2", "e3"), (8, 16, 32), (5, 10, 15, 20)
SEARCHED, ASKED, REPEATS = 20_000, 256, 45
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
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
def served(folder: Path, delay_s: float = 0.0) -> Iterator[Vendor]:
    """The vendor, and the key for it in the environment, where the machines of a cluster look."""
    with vendor(folder, delay_s) as server:
        os.environ |= {"KEY": "k", "CLQ_ALLOW_KEYS": f"KEY={server.url}"}
        yield server


def work(folder: Path, url: str, job: Job, on: str) -> tuple[float, float]:
    """Run an evaluation; seconds, and the share of a processor that was free of others' work."""
    begin = time.perf_counter()
    outcome = paid.work(folder, url, "k", job, on=on)
    took = time.perf_counter() - begin
    print(
        f"  {on or 'here'}: {took:.1f} s, {len(outcome.runs)} stacks, ${outcome.status.usd:.3f}", flush=True
    )
    return took, outcome.status.usd


def overhead(times: int) -> None:
    """One node against this process; starting Ray is told beside it."""
    for cpus in (1, 2):
        ratios, begin = [], time.perf_counter()
        with tempfile.TemporaryDirectory() as name, served(Path(name)) as server, nodes(1, cpus):
            print(f"{cpus} CPUs: Ray is up after {time.perf_counter() - begin:.1f} s", flush=True)
            work(Path(name) / "warm", server.url, sweep(server.url), "ray")
            for turn in range(times):
                here = work(Path(name) / f"here{turn}", server.url, sweep(server.url), "")
                there = work(Path(name) / f"there{turn}", server.url, sweep(server.url), "ray")
                assert np.isclose(there[1], here[1]), "other dollars"
                ratios.append(there[0] / here[0])
                print(f"{cpus} CPUs: {ratios[-1]:.3f}, load {os.getloadavg()[0]:.1f}", flush=True)
        print(f"{cpus} CPUs: median {np.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}")


def ranked(part: int, parts: int, questions: int) -> Job:
    """Each so-many-th of 48 BM25 stacks over many passages: work for a processor, none of it shared."""
    stacks = [
        Stack(
            {
                "mode": "sparse",
                "sparse": "bm25",
                "bm25": {"k1": k1, "b": b},
                "reranker": "none",
                "candidates": 50,
            }
        )
        for k1 in (0.6, 0.9, 1.2, 1.5, 1.8, 2.1)
        for b in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    ]
    asked = [f"{one} {other}" for one in WORDS for other in WORDS][:questions]
    texts = passages(random_texts(SEARCHED, seed=5))
    return helpers.job(stacks[part::parts], texts=texts, asked=asked, protocol=Protocol(repeats=REPEATS))


def speedup(_: int) -> None:
    """Two nodes of one processor each against one, and two plain processes against one; threads are one."""
    os.environ |= ONE_THREAD
    plain, nodes_s = {count: bare(count) for count in (1, 2)}, {}
    for count in (1, 2):
        with tempfile.TemporaryDirectory() as name, nodes(count):
            for questions in (5, ASKED):  # the first starts the workers
                job, begin = ranked(0, 1, questions), time.perf_counter()
                helpers.run(Path(name) / str(questions), job, on="ray")
                nodes_s[count] = time.perf_counter() - begin
            print(f"  {count} nodes: {nodes_s[count]:.1f} s, load {os.getloadavg()[0]:.1f}", flush=True)
    gain, most = (took[1] / took[2] for took in (nodes_s, plain))
    print(
        f"{gain:.2f} times as fast; plain processes {most:.2f} times; {gain / most:.0%} of that", flush=True
    )


def bare(count: int) -> float:
    """Seconds in which so many processes do the work between them, each without a cluster."""
    with tempfile.TemporaryDirectory() as name:
        command = [sys.executable, "-m", "bench.ray_nodes", "part", name]
        begin = time.perf_counter()
        processes = [
            subprocess.Popen([*command, str(part), str(count)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
            for part in range(count)
        ]
        took = [float(process.communicate()[0]) for process in processes]
        whole = time.perf_counter() - begin
    print(f"  {count} plain processes: {max(took):.1f} s; {whole:.1f} s with their start", flush=True)
    return max(took)


def do_part(name: str, part: str, parts: str) -> None:
    """Do one process's share of the work; prints its seconds."""
    job = ranked(int(part), int(parts), ASKED)
    begin = time.perf_counter()
    helpers.run(Path(name) / part, job)
    print(time.perf_counter() - begin)


def node(times: int) -> None:
    """Kill one of two machines while it works."""
    draw = np.random.default_rng(2026)
    with tempfile.TemporaryDirectory() as name, served(Path(name), 0.004) as server, nodes(2) as cluster:
        folder = Path(name)
        paid.work_much(folder / "whole", server.url, "k")
        needed, seen = server.paid(), len(server.lines())
        for turn in range(times):
            while not cluster.worker_nodes:
                with suppress(Exception):  # a busy machine does not start one in time
                    cluster.add_node(num_cpus=1)
            after = int(draw.integers(1, 100))
            hunter = threading.Thread(daemon=True, target=lose, args=(cluster, server, seen + after))
            hunter.start()
            paid.work_much(folder / str(turn), server.url, "k", "ray")
            hunter.join(timeout=5)
            assert not hunter.is_alive(), "it was done before a machine was lost"
            bought = Counter(thing for things in server.requests()[seen:] for thing in things)
            billed = sum(line["units"] for line in server.lines()[seen:]) * paid.USD_PER_TOKEN
            seen = len(server.lines())
            tell(turn, needed, bought, billed, whole=folder / "whole", other=folder / str(turn))


def lose(cluster: Any, server: Vendor, requests: int) -> None:
    """After so many requests kill the second machine."""
    wait_for(server, requests)
    lose_a_machine(cluster)


def driver(times: int) -> None:
    """Kill the process that writes, and begin it again until it finishes."""
    draw = np.random.default_rng(2027)
    with tempfile.TemporaryDirectory() as name, served(Path(name), 0.004) as server, nodes(2) as cluster:
        folder, kills = Path(name), 0
        paid.work_much(folder / "whole", server.url, "k")
        needed, seen = server.paid(), len(server.lines())
        while True:
            command = [sys.executable, "-m", "bench.ray_nodes", "work", str(folder / "killed"), server.url]
            process = subprocess.Popen([*command, cluster.address], cwd=ROOT)
            if kills < times:
                begun, after = len(server.lines()), int(draw.integers(0, 25))
                while process.poll() is None and len(server.lines()) < begun + after:
                    time.sleep(0.005)
                time.sleep(float(draw.uniform(0, 0.05)))
                process.kill()
            if process.wait() == 0:
                break
            kills += process.returncode == -9
            print(f"  kill {kills}: {len(server.lines()) - seen} requests", flush=True)
        bought = Counter(thing for things in server.requests()[seen:] for thing in things)
        billed = sum(line["units"] for line in server.lines()[seen:]) * paid.USD_PER_TOKEN
        tell(kills, needed, bought, billed, whole=folder / "whole", other=folder / "killed")


def client(_: int) -> None:
    """Come as a client of Ray, from a process of its own."""
    os.environ["PYTHONPATH"] = str(ROOT)  # a client does not tell machines where it has the checkout
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (
        tempfile.TemporaryDirectory() as name,
        served(Path(name)) as server,
        nodes(1, ray_client_server_port=port),
    ):
        paid.work_much(Path(name) / "whole", server.url, "k")
        command = [sys.executable, "-m", "bench.ray_nodes", "work", f"{name}/far", server.url]
        subprocess.run([*command, f"ray://127.0.0.1:{port}"], cwd=ROOT, check=True)
        paid.require_same(Path(name) / "whole", Path(name) / "far")
        print("equal results by ray://", flush=True)


def tell(
    turn: int, needed: Counter[str], bought: Counter[str], billed: float, *, whole: Path, other: Path
) -> None:
    """What was paid again, what the receipts say of that, and whether the results are equal."""
    paid.require_same(whole, other)
    receipts = Receipts(paid.folder_of(other).receipts)
    assert not needed - bought, "something was never asked"
    assert receipts.settled <= billed + 1e-9
    assert billed <= receipts.settled + receipts.lost + 1e-9
    again = bought - needed
    print(
        f"{turn}: {needed.total()} paid things, {again.total()} paid again, told {receipts.again} calls;"
        f" billed ${billed:.3f}, settled ${receipts.settled:.3f}, lost at most ${receipts.lost:.3f};"
        " equal results",
        flush=True,
    )
    assert again.total() == 0 or receipts.again
    receipts.close()


if __name__ == "__main__":
    task, *given = sys.argv[1:]
    if task == "work":
        paid.work_much(Path(given[0]), given[1], "k", given[2])
    elif task == "part":
        do_part(*given)
    else:
        tasks = {"overhead": overhead, "speedup": speedup, "node": node, "driver": driver, "client": client}
        tasks[task](int(given[0]) if given else 1)
