"""Results of an import and an evaluation, in Python."""

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
    """The things that an import took, left out and decided."""

    fresh: bool  # whether anything was new
    said: str  # whether anything was new, in a sentence
    collection: str | None  # the workspace that it went into; of several the one with most runs
    runs: tuple[str, ...]  # ids of the imported runs
    report: pl.DataFrame  # status, what, count, detail

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The sentence, and the report as a table."""
        return Answer(self.said), Table(self.report, _REPORT)


@dataclass(frozen=True, repr=False)
class Measured(Shown):
    """The outcome of an evaluation."""

    state: str  # "finished", or "cancelled": finished work is kept, and the same call resumes
    runs: pl.DataFrame  # run_id, label, status
    usd: float  # dollars spent
    notes: tuple[str, ...]  # how it ended, and errors of custom pipelines

    @property
    def blocks(self) -> tuple[Block, ...]:
        """How it ended, and its runs as a table."""
        head, *others = self.notes
        return Answer(head), *map(Text, others), Table(self.runs, _RUNS)
