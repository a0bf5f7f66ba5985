"""``readers plan|run|resume|status``: answers of readers, resumable and within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from core.cli.context import Context
from core.cli.runs.paid import Work
from core.views.readers import asking, landing

if TYPE_CHECKING:  # the engines take a second to load, which no other command should wait for
    from core.pipeline.evaluate.launch import Launcher
    from core.pipeline.evaluate.turn import Result, Site
    from core.pipeline.sweep import Problem
    from core.readers.job import ReaderJob
    from core.readers.plan import ReaderPlan


def _launcher() -> Launcher:
    from core.readers.run import READING  # noqa: PLC0415

    return READING


def _plan(job: ReaderJob, problems: Sequence[Problem]) -> ReaderPlan:
    from core.readers.plan import plan  # noqa: PLC0415

    return plan(job, problems=problems)


def _carry_out(context: Context, job: ReaderJob, site: Site) -> Result:
    from core.readers.run import run_job  # noqa: PLC0415

    store = context.store()
    return run_job(job, land=lambda batch: landing.land(store, batch), site=site)


def _landed(context: Context, job: ReaderJob, _: Result) -> pl.DataFrame:
    return asking.answered(context.store().read().answers([each.run_id for each in job.material.replays]))


WORK = Work(
    noun="reader job",
    kept="what was answered is kept, and readers resume goes on",
    helps={
        "plan": "Print how many answers there will be, with calls, tokens, dollars and time; nothing is "
        "spent.",
        "run": "Have the readers of a specification answer, or what is left of it; nothing is paid twice.",
        "resume": "Go on where readers stopped; the budget counts what was spent before.",
        "status": "List the reader jobs that were begun, newest first.",
    },
    empty="No reader was asked here.",
    launcher=_launcher,
    read=landing.read,
    plan=_plan,
    carry_out=_carry_out,
    landed=_landed,
    words=asking,
)
