"""Evaluations as a kind of paid work. Loading it loads the engines, which takes a second."""

from __future__ import annotations

from collections.abc import Mapping

from core.analysis.export import StoreShelf
from core.pipeline.evaluate import Job, Outcome, run_job
from core.pipeline.evaluate.folder import EVALUATIONS
from core.pipeline.evaluate.session import Site
from core.pipeline.search.evaluation import searching
from core.pipeline.sweep.model import SweepSpec
from core.pipeline.sweep.plan import Plan, plan
from core.pipeline.sweep.problems import Problem
from core.pipeline.sweep.read import read_job
from core.prices import PriceBook
from core.records import Batch
from core.store import Snapshot, Store
from core.work.imports.anchored import with_chunks_graded
from core.work.incumbent import mark_named
from core.work.readers import landing as answers
from core.work.readers.plan import with_readers
from core.work.sweep import words
from core.work.work import Work


def read(
    snapshot: Snapshot, spec: SweepSpec, books: Mapping[str, PriceBook], *, to_run: bool
) -> tuple[Job, list[Problem]]:
    """Read what a specification names, using a store as its shelf."""
    return read_job(spec, shelf=StoreShelf(snapshot), books=books, to_run=to_run)


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
    return outcome


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
