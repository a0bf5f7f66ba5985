"""The demo: a collection that every machine has, and its stacks really run and measured here."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from core.pipeline import demo_data, docstrings
from core.pipeline.evaluate import Job, Protocol, Status, corpus_of, merged, run_job
from core.pipeline.spec import grid
from core.records import Batch, Run, Sink, Stack

Progress = Callable[[int, int, str], None]
"""Told about every step: steps done, steps in all, what is happening now."""

REPEATS = 5


@dataclass(frozen=True, slots=True)
class Demo:
    """What the demo put into the sink.

    Attributes:
        runs: One per stack.
        judged: Frame of `TABLES["judgements"]`.
        missing: (query_id, passage_id) of judgements whose passage is not in the installed versions.
    """

    runs: tuple[Run, ...]
    judged: pl.DataFrame
    missing: tuple[tuple[str, str], ...]

    @property
    def summary(self) -> str:
        """What was made, in one line for people."""
        return f"{len(self.runs)} stacks measured; {demo_data.describe(self.judged, list(self.missing))}"


def run_demo(sink: Sink, progress: Progress | None = None, *, stacks: Sequence[Stack] | None = None) -> Demo:
    """Make the demo collection with its golden set, then run the stacks on it.

    Args:
        sink: Receives two batches: the collection, then all runs.
        progress: Told about every step.
        stacks: What to run; the grid of 76 stacks by default.

    Returns:
        What was made.

    Raises:
        InputError: If the questions or judgements that ship with the product cannot be read.
    """
    tell = progress or (lambda *_: None)
    tell(0, 1, "read the documentation of the installed packages")
    passages, queries = docstrings.passages(), demo_data.queries()
    judged, missing = demo_data.judgements(set(passages["passage_id"]))
    sink(
        Batch(
            collections=(demo_data.collection(),),
            golden_sets=(demo_data.golden_set(),),
            frames={"passages": passages, "queries": queries, "judgements": judged},
        )
    )
    job = Job(
        name="demo",
        collection_id=docstrings.COLLECTION_ID,
        corpora={None: corpus_of(docstrings.for_indexing(passages))},
        queries=queries,
        stacks=grid() if stacks is None else stacks,
        protocol=Protocol(repeats=REPEATS, shuffled=True),
    )

    def told(status: Status) -> None:
        tell(status.done, status.total, status.stage)

    batches: list[Batch] = []
    # Nothing is paid for and all of it takes a minute: there is nothing to go on with another time.
    with tempfile.TemporaryDirectory(prefix="clq-demo-") as folder:
        run_job(job, batches.append, work=Path(folder), progress=told)
    runs = merged(batches)
    sink(runs)
    return Demo(runs.runs, judged, tuple(missing))
