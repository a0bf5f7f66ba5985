"""Builds of golden sets as a kind of paid work. Loading it loads the engines, which takes a second."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from core.pipeline.evaluate.session import Result, Site
from core.pipeline.sweep.problems import Problem
from core.records import Batch
from core.store import Store
from core.work import paid
from core.work.golden import words
from core.work.golden.job import GoldenJob, read
from core.work.golden.plan import GoldenPlan, candidates, plan
from core.work.golden.run import run_job
from core.work.golden.spec import GoldenSpec
from core.work.golden.stored import store_results
from core.work.work import Work


def _plan(job: GoldenJob, problems: Sequence[Problem]) -> GoldenPlan:
    return plan(job, candidates(job), problems=problems)


def _build(store: Store, job: GoldenJob, site: Site) -> Result:
    def sink(batch: Batch) -> None:
        with store.write("golden set", f"{job.spec.name}: what is judged", on_wait=site.on_wait) as writer:
            writer.add(batch)

    return run_job(job, sink=sink, store_results=partial(store_results, store), site=site)


GOLDEN: Work[GoldenJob, GoldenPlan, Result] = Work(
    noun="build",
    kept="what was judged is kept, and golden resume goes on",
    folder="golden",
    begins=("golden", "build", "--yes"),
    resumes=("golden", "resume"),
    model=GoldenSpec,
    read=read,
    plan=_plan,
    run=_build,
    size_of=words.planned,
    costs=paid.dollars,
    button=words.button,
    ended=words.ended,
    table=words.table,
)
