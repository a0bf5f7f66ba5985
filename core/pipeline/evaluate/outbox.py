"""Results on their way to the sink: several stacks that finish within seconds share one transaction."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import polars as pl

from core.records import Batch, Run, Sink

_EVERY_S = 5.0


class Outbox:
    """Collects runs with their rows; a run and all of its rows are always in one batch.

    Args:
        sink: Receives batches.
        landed: Told how many runs a batch had.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        sink: Sink,
        landed: Callable[[int], None] = lambda _: None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sink, self._landed, self._clock = sink, landed, clock
        self._waiting: list[tuple[Run, Mapping[str, pl.DataFrame]]] = []
        self._sent = clock()
        self.runs: list[Run] = []

    def add(self, run: Run, frames: Mapping[str, pl.DataFrame]) -> None:
        """Take a run; it is handed over now, or with those that follow it soon."""
        self._waiting.append((run, frames))
        if self._clock() - self._sent >= _EVERY_S:
            self.flush()

    def flush(self) -> None:
        """Hand over what is waiting."""
        if not self._waiting:
            return
        batches = [Batch(runs=(run,), frames=frames) for run, frames in self._waiting]
        batch = merged(batches)
        self._sink(batch)
        self._waiting.clear()
        self._sent = self._clock()
        self.runs += batch.runs
        self._landed(len(batch.runs))


def merged(batches: Sequence[Batch]) -> Batch:
    """Runs and rows of several batches in one, tables without rows left out."""
    tables: defaultdict[str, list[pl.LazyFrame]] = defaultdict(list)
    for batch in batches:
        for table, rows in batch.frames.items():
            tables[table].append(rows.lazy())
    frames = {table: pl.concat(parts).collect() for table, parts in tables.items()}
    return Batch(
        runs=tuple(run for batch in batches for run in batch.runs),
        frames={table: rows for table, rows in frames.items() if rows.height},
    )
