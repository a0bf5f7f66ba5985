"""Measures stacks that honour filters in several ways and writes them into data/demo/filtered.

    python -m tools.demo.filtered FOLDER

The clock, the encoder and the folder are those of `tools.demo.stacks`, which has to be read first for its one
thread.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from tools.demo import stacks as first_look

from core.exporters import write  # isort: skip
from core.files import replacing
from core.pipeline import demo, demo_filters
from core.pipeline.evaluate import Job, Protocol, Status, corpus_of, merged, run_job
from core.pipeline.evaluate.session import Site
from core.pipeline.sweep.expand import grid
from core.pipeline.sweep.fields import Encoder, Index, Methodic
from core.pipeline.sweep.filters import filters_of
from core.pipeline.sweep.model import Axes
from core.records import Batch, Stack

K, PASSES = 20, 5
WAYS = ("pre", "post:4", f"partition:{demo_filters.PERMISSION}", "none")


def stacks() -> list[Stack]:
    """Return BM25 and exact dense search that filter first, and an approximate and a fused one each way."""
    encoder = (Encoder(name=first_look.ENCODER, dim=384),)
    fusion = (Methodic(method="rrf", constant=10, weights=[1.0, 1.3]),)
    graph = (Index(name="hnsw-f32"),)
    axes = (
        Axes(mode=("sparse",), candidates=(K,), filtering=WAYS[:2]),
        Axes(mode=("dense",), embedder=encoder, candidates=(K,), filtering=WAYS[:1]),
        Axes(mode=("dense",), embedder=encoder, index=graph, candidates=(K,), filtering=WAYS),
        Axes(mode=("hybrid",), embedder=encoder, fusion=fusion, candidates=(K,), filtering=WAYS),
    )
    return list({stack.stack_id: stack for one in axes for stack in grid(one)}.values())


def plain(stack: Stack) -> str:
    """Name a stack without the parts that all of them share."""
    return first_look.plain(stack).replace(f", K = {K}", "").replace(" · rrf 1 : 1.3", "")


def measure(folder: Path) -> Batch:
    """Run the stacks on the texts, with the filters of the questions."""
    frames = demo_filters.texts().frames
    asked = frames["queries"].lazy().collect()
    filters = filters_of({name: rows.lazy().collect() for name, rows in frames.items()}, asked)
    if filters is None:
        raise SystemExit(f"{demo_filters.FILTERS} has no filter")
    job = Job(
        name="ways of filtering",
        collection_id=demo_filters.COLLECTION_ID,
        corpora={None: filters.apply(corpus_of(demo.passages()), demo.passages()["source"])},
        queries=asked,
        filters=filters.asked,
        stacks=stacks(),
        models=first_look.models(folder),
        protocol=Protocol(repeats=PASSES, shuffled=True),
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
    first_look.by_processor()
    batch = measure(Path(sys.argv[1]))
    runs = tuple(
        replace(
            run,
            label=plain(run.stack),
            environment={**run.environment, "reported": first_look.CLOCK},
        )
        for run in batch.runs
    )
    frames = {name: rows for name, rows in batch.frames.items() if name not in ("passages", "queries")}
    near = frames["rankings"].lazy().sort("query_id", "run_id", "stage", "rank").collect()  # a sixth smaller
    with replacing(demo_filters.RESULTS) as draft:
        held = {**frames, "rankings": near}
        write(replace(batch, collections=(), golden_sets=(), runs=runs, frames=held), draft, "own")


if __name__ == "__main__":
    main()
