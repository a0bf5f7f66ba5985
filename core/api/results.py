"""What an import and an evaluation came to, in Python."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from core.api.shown import Shown
from core.views import columns as cols
from core.views.blocks import Answer, Block, Table, Text

_REPORT = cols.Rows(
    "report", cols.text("status"), cols.text("what"), cols.count("count"), cols.text("detail")
)
_RUNS = cols.Rows("runs", cols.text("label", "run"), cols.text("status"), cols.text("run_id", "id"))


@dataclass(frozen=True, repr=False)
class Added(Shown):
    """What an import took, left out and decided."""

    fresh: bool  # whether anything was new
    said: str  # that it was, in a sentence
    collection: str | None  # the workspace that it went into; of several the one with most runs
    runs: tuple[str, ...]  # ids of the runs that came
    report: pl.DataFrame  # status, what, count, detail

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The sentence, and the report as a table."""
        return Answer(self.said), Table(self.report, _REPORT)


@dataclass(frozen=True, repr=False)
class Measured(Shown):
    """An evaluation as it ended."""

    state: str  # "finished", or "cancelled": what has finished is kept, and the same call goes on
    runs: pl.DataFrame  # run_id, label, status
    usd: float  # dollars that it spent
    notes: tuple[str, ...]  # how it ended, and what own pipelines got wrong

    @property
    def blocks(self) -> tuple[Block, ...]:
        """How it ended, and its runs as a table."""
        head, *others = self.notes
        return Answer(head), *map(Text, others), Table(self.runs, _RUNS)
