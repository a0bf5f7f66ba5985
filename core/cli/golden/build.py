"""``golden plan|build|resume|status``: build golden sets, resumable and within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from core.cli.context import Context
from core.cli.runs.paid import Work
from core.records import Batch
from core.views.golden.build import landing, words

if TYPE_CHECKING:  # the engines take a second to load, which no other command should wait for
    from core.golden.job import GoldenJob
    from core.golden.plan import GoldenPlan
    from core.pipeline.evaluate.launch import Launcher
    from core.pipeline.evaluate.turn import Result, Site
    from core.pipeline.sweep import Problem

_SHOWN = ("golden_set_id", "collection_id", "name", "judge", "queries", "judgements")


def _launcher() -> Launcher:
    from core.golden.build import BUILD  # noqa: PLC0415

    return BUILD


def _plan(job: GoldenJob, problems: Sequence[Problem]) -> GoldenPlan:
    from core.golden.plan import candidates, plan  # noqa: PLC0415

    return plan(job, candidates(job), problems=problems)


def _carry_out(context: Context, job: GoldenJob, site: Site) -> Result:
    from core.golden.build import run_job  # noqa: PLC0415

    store = context.store()

    def sink(batch: Batch) -> None:
        with context.write("golden set", f"{job.spec.name}: what is judged") as writer:
            writer.add(batch)

    return run_job(job, sink=sink, land=lambda batch: landing.land(store, batch), site=site)


def _landed(context: Context, _: GoldenJob, outcome: Result) -> pl.DataFrame:
    return context.store().read().golden_sets().filter(golden_set_id=outcome.landed).select(_SHOWN)


WORK = Work(
    noun="build",
    kept="what was judged is kept, and golden resume goes on",
    helps={
        "plan": "Print how many texts will be judged, with calls, tokens, dollars and time.",
        "build": "Build the golden set of a specification, or what is left of it; nothing is judged or paid "
        "twice.",
        "resume": "Go on with a build where it stopped; the budget counts what was spent before.",
        "status": "List the builds that were begun, newest first.",
    },
    empty="No golden set was built here.",
    launcher=_launcher,
    read=landing.read,
    plan=_plan,
    carry_out=_carry_out,
    landed=_landed,
    words=words,
)
