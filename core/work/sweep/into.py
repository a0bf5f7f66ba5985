"""An evaluation with a store for input and output: specification, folder, budget, end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import polars as pl

from core.files import read_json
from core.number_format import count
from core.pipeline.evaluate import Job, Outcome
from core.pipeline.evaluate.folder import EVALUATIONS
from core.pipeline.own.config import OWN, OwnStack
from core.pipeline.own.version import versioned
from core.pipeline.sweep.model import SweepSpec
from core.pipeline.sweep.problems import Problem
from core.prices import PriceBook
from core.records import Run
from core.store import Store
from core.work.sweep.kind import EVALUATION
from core.work.sweep.own import about_words, fault_words
from core.work.sweep.words import search_words


def work_of(store: Store) -> Path:
    """Return the folder of all evaluations whose results go into a store."""
    return store.path.absolute().parent / EVALUATIONS


def read(
    store: Store, books: Mapping[str, PriceBook], spec: SweepSpec, *, to_run: bool
) -> tuple[Job, list[Problem]]:
    """Read what a specification names, including stored collections and golden sets.

    This runs commands that print the versions of custom pipelines.
    """
    stacks = tuple(versioned(stack) if isinstance(stack, OwnStack) else stack for stack in spec.stack)
    spec = spec.model_copy(update={"stack": stacks})
    return EVALUATION.read(store.read(), spec, books, to_run=to_run)


def with_budget(job: Job, usd: float | None) -> Job:
    """Return the evaluation with another budget, if one is given."""
    if usd is None:
        return job
    spec = {**job.spec, "budget": {**job.spec.get("budget", {}), "usd": usd}} if job.spec else job.spec
    return replace(job, budget_usd=usd, spec=spec)


def rows(outcome: Outcome) -> pl.DataFrame:
    """Return the runs of an evaluation: run_id, label (null for existing ones), status.

    Those of custom pipelines also have floor_ms, the time of an empty one (null if it was not measured).
    """
    new = [(run.run_id, run.label, "new", _floor(run)) for run in outcome.runs]
    known = [
        (run_id, None, "there before" + ", price set" * (run_id in outcome.repriced), None)
        for run_id in outcome.held
    ]
    schema = {"run_id": pl.String, "label": pl.String, "status": pl.String, "floor_ms": pl.Float64}
    made = pl.DataFrame(new + known, schema=schema, orient="row")
    return made if any(OWN in run.manifest for run in outcome.runs) else made.drop("floor_ms")


def _floor(run: Run) -> float | None:
    return (run.manifest.get(OWN) or {}).get("floor_ms")


def sentences(outcome: Outcome, job: Job) -> Iterator[str]:
    """Describe how an evaluation ended: its cost, its number of stacks, and errors of custom pipelines."""
    status = outcome.status
    dollars = f"; ${status.usd:.4f} spent" if status.usd or job.budget_usd is not None else ""
    lost = f" and up to ${status.usd_lost:.4f} for calls whose answers were lost" if status.usd_lost else ""
    if status.calls_again:
        calls = count(status.calls_again, "call")
        yield f"{calls} whose answers were lost were sent again and may have been paid twice"
    yield (
        f"{status.state}: {status.runs_done} of {count(status.runs_total, 'stack')},"
        f" {len(outcome.runs)} of them now{dollars}{lost} ({outcome.folder.path.name})"
    )
    if name := (job.spec or {}).get("incumbent"):
        yield f"{name} is marked as the stack that runs today"
    for run in outcome.runs:
        if own := run.manifest.get("own"):
            about = about_words(own)
            for words in ([about] if about else []) + fault_words(own, job.queries.height):
                yield f"{run.label}: {words}"
    search = read_json(outcome.folder.search)
    if search:
        yield f"search: {search_words(search)}"
