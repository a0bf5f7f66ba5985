"""The demo: a collection that every machine has, and its stacks really run and measured here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from core.pipeline import demo_data, docstrings
from core.pipeline.run import Progress, run_stacks, step_count
from core.pipeline.spec import grid
from core.records import Batch, Run, Sink, Stack

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
    chosen = grid() if stacks is None else stacks
    total = step_count(len(chosen), REPEATS) + 1
    if progress:
        progress(0, total, "read the documentation of the installed packages")
    passages, queries = docstrings.passages(), demo_data.queries()
    judged, missing = demo_data.judgements(set(passages["passage_id"]))
    sink(
        Batch(
            collections=(demo_data.collection(),),
            golden_sets=(demo_data.golden_set(),),
            frames={"passages": passages, "queries": queries, "judgements": judged},
        )
    )

    def one_step_later(done: int, _: int, label: str) -> None:
        if progress:
            progress(done + 1, total, label)

    runs = run_stacks(
        docstrings.COLLECTION_ID,
        docstrings.for_indexing(passages),
        queries,
        chosen,
        sink=sink,
        repeats=REPEATS,
        progress=one_step_later,
    )
    return Demo(runs, judged, tuple(missing))
