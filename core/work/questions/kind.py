"""Sets of questions as a kind of paid work. Loading it loads the engines, which takes a second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from core.analysis.export import StoreShelf
from core.analysis.spread import spread_of
from core.pipeline.evaluate.session import Result, Site
from core.pipeline.sweep.problems import Problem
from core.prices import PriceBook
from core.store import Snapshot, Store
from core.work import paid
from core.work.questions import words
from core.work.questions.job import QuestionsJob, read_job
from core.work.questions.plan import QuestionsPlan, plan
from core.work.questions.run import run_job
from core.work.questions.spec import QuestionsSpec
from core.work.work import Work


def _read(
    snapshot: Snapshot, spec: QuestionsSpec, books: Mapping[str, PriceBook], *, to_run: bool
) -> tuple[QuestionsJob, list[Problem]]:
    job, problems = read_job(spec, books, StoreShelf(snapshot), to_run=to_run)
    return replace(job, spread=spread_of(snapshot, job.collection_id)), problems


def _ask(store: Store, job: QuestionsJob, site: Site) -> Result:
    del store  # a set of questions is a folder, which evaluations read
    return run_job(job, site=site)


QUESTIONS: Work[QuestionsJob, QuestionsPlan, Result] = Work(
    noun="set of questions",
    kept="what was written is kept, and golden questions-resume goes on",
    folder="questions",
    begins=("golden", "questions", "--yes", "--spec"),
    resumes=("golden", "questions-resume"),
    model=QuestionsSpec,
    in_store=False,
    read=_read,
    plan=lambda job, problems: plan(job, problems=problems),
    run=_ask,
    size_of=words.size_of,
    costs=paid.dollars,
    button=words.button,
    ended=words.ended,
    table=words.table,
)
