"""Small evaluations for the tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from core.pipeline.demo import grid
from core.pipeline.evaluate import Job, Outcome, Protocol, corpus_of, merged, run_job
from core.pipeline.evaluate.session import Site
from core.records import Batch, Stack
from tests.pipeline.corpora import passages, queries, random_texts

STACKS = grid(embedder="fake", dims=(16, 32), depths=(5, 20))
QUESTIONS = ["sort a frame", "lazy window mean", "zebra", "join columns by row"]


def job(
    stacks: Sequence[Stack] = STACKS,
    *,
    texts: pl.DataFrame | None = None,
    asked: Sequence[str] = QUESTIONS,
    protocol: Protocol | None = None,
    **options: Any,
) -> Job:
    searched = passages(random_texts(80, seed=7)) if texts is None else texts
    return Job(
        **{
            "name": "t",
            "collection_id": "c",
            "corpora": {None: corpus_of(searched)},
            "queries": queries(asked),
            "stacks": stacks,
            "protocol": protocol or Protocol(shuffled=True),
            **options,
        }
    )


class Sunk(list[Batch]):
    """A sink that remembers; the runs and rows of everything but the set-up are in `all`."""

    def __call__(self, batch: Batch) -> None:
        self.append(batch)

    @property
    def all(self) -> Batch:
        return merged(self)

    def table(self, name: str) -> pl.DataFrame:
        rows = self.all.frames[name]
        assert isinstance(rows, pl.DataFrame)
        return rows

    @property
    def run_ids(self) -> list[str]:
        return [run.run_id for run in self.all.runs]


def run(work: Path, asked: Job | None = None, **options: Any) -> tuple[Outcome, Sunk]:
    """Run a job and take what it hands over."""
    sunk = Sunk()
    about = {name: options.pop(name) for name in ("progress", "cancelled", "on") if name in options}
    outcome = run_job(asked or job(), sunk, site=Site(work=work / "evaluations", **about), **options)
    return outcome, sunk


def protocol(**changes: Any) -> Protocol:
    return replace(Protocol(), **changes)
