"""Evaluations as a kind of paid work. Loading it loads the engines, which takes a second."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from core.analysis.export import StoreShelf
from core.analysis.hourly import usd_per_query
from core.analysis.workspace.figures.costs import costs
from core.importers.read.text import shown
from core.importers.runs import slug
from core.pipeline.evaluate import Job, Outcome, run_job
from core.pipeline.evaluate.folder import EVALUATIONS
from core.pipeline.evaluate.session import Site
from core.pipeline.search.evaluation import searching
from core.pipeline.sweep.model import SweepSpec
from core.pipeline.sweep.plan import Plan, plan
from core.pipeline.sweep.problems import Problem, Severity
from core.pipeline.sweep.read import read_job
from core.prices import PriceBook, own_folder
from core.prices.stacks import set_prices, stack_costs
from core.records import Batch, now
from core.store import Snapshot, Store
from core.work.imports.anchored import with_chunks_graded
from core.work.incumbent import mark_named
from core.work.readers import stored as answers
from core.work.readers.plan import with_readers
from core.work.sweep import words
from core.work.sweep.near import near
from core.work.work import Work


def read(
    snapshot: Snapshot, spec: SweepSpec, books: Mapping[str, PriceBook], *, to_run: bool
) -> tuple[Job, list[Problem]]:
    """Read what a specification names, using a store as its shelf; a search may keep near what runs.

    Questions of a file about documents whose workspace has other questions go into a workspace of their own,
    unless the specification names one.
    """
    job, problems = read_job(spec, shelf=StoreShelf(snapshot), books=books, to_run=to_run)
    asked, taken = spec.queries.path, _with_other_questions(snapshot, job)
    if taken and asked is not None and spec.collection.id is None:
        apart = spec.collection.model_copy(update={"id": f"{job.collection_id}-{slug(asked.stem, 'asked')}"})
        spec = spec.model_copy(update={"collection": apart})
        job, problems = read_job(spec, shelf=StoreShelf(snapshot), books=books, to_run=to_run)
        said = f"{taken} This run makes a workspace of its own, {apart.id}."
        problems = [*problems, Problem("queries", said, "", Severity.WARNING)]
        taken = _with_other_questions(snapshot, job)
    if taken:
        do = "Give these documents another id: set id under [collection]."
        problems = [*problems, Problem("queries", taken, do, Severity.WARNING)]
    job, notes = near(snapshot, job)
    return job, [*problems, *notes]


def _with_other_questions(snapshot: Snapshot, job: Job) -> str:
    """Say that the store has other questions about the documents of a job; "" if it has not."""
    new, own = job.setup.frames.get("queries"), job.collection_id
    if (
        not isinstance(new, pl.DataFrame)
        or new.is_empty()
        or own not in snapshot.collections()["collection_id"]
    ):
        return ""
    stored = snapshot.queries(own)
    if stored.is_empty():
        return ""
    keys = ["query_id", "text"]
    if stored.height == new.height == new.join(stored, on=keys, how="semi").height:
        return ""
    return f"The workspace {shown(own, 60)} has {stored.height:,} other questions."


def _evaluate(store: Store, job: Job, site: Site) -> Outcome:
    def sink(batch: Batch) -> None:
        note = f"{job.name}: {len(batch.runs)} runs" if batch.runs else f"{job.name}: what is evaluated"
        snapshot = store.read()
        batch = with_chunks_graded(snapshot, answers.with_scores(snapshot, job.collection_id, batch))
        with store.write("evaluate", note, on_wait=site.on_wait) as writer:
            writer.add(batch)

    snapshot, readers = store.read(), answers.after(store, job)
    held = {*snapshot.runs()["run_id"], *snapshot.runs(removed=True)["run_id"]}  # deleted ones stay deleted
    outcome = run_job(job, sink, site=site, held=held, before=searching(job), after=readers)
    mark_named(store, job.spec.get("incumbent"), [*(run.run_id for run in outcome.runs), *outcome.held])
    return replace(outcome, repriced=_repriced(store, job, outcome.held))


def _repriced(store: Store, job: Job, held: Sequence[str]) -> tuple[str, ...]:
    """Price existing runs as their pipelines say now; return those whose price has changed."""
    snapshot = store.read()
    runs = snapshot.runs(job.collection_id).filter(pl.col("run_id").is_in(held))
    said = _said(snapshot, job, runs)
    if not said:
        return ()
    known = dict(costs(snapshot, runs, job.book).select("run_id", "cost").iter_rows())
    other = {
        run_id: usd
        for run_id, usd in said.items()
        if known[run_id] is None or not math.isclose(known[run_id], 1000 * usd, rel_tol=1e-9)
    }
    names = dict(runs.select("run_id", "label").iter_rows())
    return set_prices(own_folder(store.path), other, names=names, today=now().date())


def _said(snapshot: Snapshot, job: Job, runs: pl.DataFrame) -> dict[str, float]:
    """Return what a query of runs costs as their pipelines say now, in dollars.

    A run that was measured at the same hourly price, and has no later one, keeps its cost.
    """
    usd: dict[str, float] = {}
    hourly: dict[str, float] = {}
    later = stack_costs(job.book, runs["run_id"])
    for run_id, text, manifest in runs.select("run_id", "spec", "manifest").iter_rows():
        name = json.loads(text).get("name", "")
        own = job.own.get(name)
        if own is not None and own.usd_per_query is not None:
            usd[run_id] = own.usd_per_query
        elif own is not None and own.usd_per_hour is not None:
            before = json.loads(manifest).get("sweep", {}).get("stack", [])
            measured_at = [stack.get("usd_per_hour") for stack in before if stack.get("name") == name]
            if run_id in later or measured_at != [own.usd_per_hour]:
                hourly[run_id] = own.usd_per_hour
    return usd | usd_per_query(snapshot, hourly)


EVALUATION: Work[Job, Plan, Outcome] = Work(
    noun="evaluation",
    kept="what has finished is kept, and resume goes on",
    folder=EVALUATIONS,
    begins=("run", "--yes"),
    resumes=("resume",),
    model=SweepSpec,
    read=read,
    plan=lambda job, problems: with_readers(plan(job, problems=problems), job),
    run=_evaluate,
    size_of=words.size_of,
    costs=words.dollars,
    button=words.button,
    progress=words.progress,
    ended=words.ended,
    table=words.table,
)
