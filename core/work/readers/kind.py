"""Readers on stored runs as a kind of paid work. Loading it loads the engines, which takes a second."""

from __future__ import annotations

from functools import partial

from core.pipeline.evaluate.session import Result, Site
from core.store import Store
from core.work import paid
from core.work.readers import words
from core.work.readers.job import ReaderJob
from core.work.readers.plan import ReaderPlan, plan
from core.work.readers.run import ReaderSpec, run_job
from core.work.readers.stored import read, store_results
from core.work.work import Work


def _answer(store: Store, job: ReaderJob, site: Site) -> Result:
    return run_job(job, store_results=partial(store_results, store), site=site)


READERS: Work[ReaderJob, ReaderPlan, Result] = Work(
    noun="reader job",
    kept="what was answered is kept, and readers resume goes on",
    folder="readers",
    begins=("readers", "run", "--yes"),
    resumes=("readers", "resume"),
    model=ReaderSpec,
    read=read,
    plan=lambda job, problems: plan(job, problems=problems),
    run=_answer,
    size_of=words.size_of,
    costs=paid.dollars,
    button=words.button,
    ended=words.ended,
    table=words.table,
)
