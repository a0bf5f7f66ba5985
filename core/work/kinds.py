"""Kinds of paid work, stated once for commands, pages and processes that run by themselves.

Loading them loads the engines, which takes a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from core.analysis.export import StoreShelf
from core.diagnostics.names import job as diagnosis
from core.diagnostics.names.job import NamesJob, NamesPlan, NamesSpec
from core.golden import build
from core.golden import plan as judging
from core.golden.job import GoldenJob
from core.golden.plan import GoldenPlan
from core.golden.questions import planned as questions_planned
from core.golden.questions import run as questions_run
from core.golden.questions.job import QuestionsJob
from core.golden.questions.planned import QuestionsPlan
from core.golden.questions.spec import QuestionsSpec
from core.golden.spec import GoldenSpec
from core.pipeline.evaluate import Job, Outcome, run_job
from core.pipeline.evaluate.folder import EVALUATIONS
from core.pipeline.evaluate.session import Result, Site
from core.pipeline.search.evaluation import searching
from core.pipeline.sweep.model import SweepSpec
from core.pipeline.sweep.plan import Plan, plan
from core.pipeline.sweep.problems import Problem
from core.pipeline.sweep.read import read_job
from core.prices import PriceBook
from core.readers import plan as asking
from core.readers import run as reading
from core.readers.job import ReaderJob
from core.readers.plan import ReaderPlan
from core.readers.run import ReaderSpec
from core.records import Batch
from core.store import Snapshot, Store
from core.work import golden_set as golden
from core.work import names as diagnosed
from core.work import paid, questions
from core.work import readers as answered
from core.work.imports.anchored import with_chunks_graded
from core.work.sweep import plan as evaluated
from core.work.work import Work


def _read_sweep(
    snapshot: Snapshot, spec: SweepSpec, books: Mapping[str, PriceBook], *, to_run: bool
) -> tuple[Job, list[Problem]]:
    return read_job(spec, shelf=StoreShelf(snapshot), books=books, to_run=to_run)


def _evaluate(store: Store, job: Job, site: Site) -> Outcome:
    def sink(batch: Batch) -> None:
        note = f"{job.name}: {len(batch.runs)} runs" if batch.runs else f"{job.name}: what is evaluated"
        snapshot = store.read()
        batch = with_chunks_graded(snapshot, answered.with_scores(snapshot, job.collection_id, batch))
        with store.write("evaluate", note, on_wait=site.on_wait) as writer:
            writer.add(batch)

    snapshot, readers = store.read(), answered.after(store, job)
    held = {*snapshot.runs()["run_id"], *snapshot.runs(removed=True)["run_id"]}  # deleted ones stay deleted
    return run_job(job, sink, site=site, held=held, before=searching(job), after=readers)


def _build(store: Store, job: GoldenJob, site: Site) -> Result:
    def sink(batch: Batch) -> None:
        with store.write("golden set", f"{job.spec.name}: what is judged", on_wait=site.on_wait) as writer:
            writer.add(batch)

    return build.run_job(job, sink=sink, land=partial(golden.land, store), site=site)


def _answer(store: Store, job: ReaderJob, site: Site) -> Result:
    return reading.run_job(job, land=partial(answered.land, store), site=site)


def _read_names(
    snapshot: Snapshot, spec: NamesSpec, books: Mapping[str, PriceBook], *, to_run: bool
) -> tuple[NamesJob, list[Problem]]:
    del to_run  # nothing that it needs is missing only to run
    return diagnosis.read_job(spec, books, snapshot.passages), []


def _diagnose(store: Store, job: NamesJob, site: Site) -> Result:
    return diagnosis.run_job(job, land=partial(diagnosed.land, store), site=site)


def _ask(store: Store, job: QuestionsJob, site: Site) -> Result:
    del store  # a set of questions is a folder, which evaluations read
    return questions_run.run_job(job, site=site)


def _plan_golden(job: GoldenJob, problems: Sequence[Problem]) -> GoldenPlan:
    return judging.plan(job, judging.candidates(job), problems=problems)


EVALUATION: Work[Job, Plan, Outcome] = Work(
    noun="evaluation",
    kept="what has finished is kept, and resume goes on",
    folder=EVALUATIONS,
    begins=("run", "--yes"),
    resumes=("resume",),
    model=SweepSpec,
    read=_read_sweep,
    plan=lambda job, problems: asking.with_readers(plan(job, problems=problems), job),
    run=_evaluate,
    size_of=evaluated.size_of,
    costs=evaluated.dollars,
    button=evaluated.button,
    progress=evaluated.progress,
    ended=evaluated.ended,
    table=evaluated.table,
)
GOLDEN: Work[GoldenJob, GoldenPlan, Result] = Work(
    noun="build",
    kept="what was judged is kept, and golden resume goes on",
    folder="golden",
    begins=("golden", "build", "--yes"),
    resumes=("golden", "resume"),
    model=GoldenSpec,
    read=golden.read,
    plan=_plan_golden,
    run=_build,
    size_of=golden.planned,
    costs=paid.dollars,
    button=golden.button,
    ended=golden.ended,
    table=golden.table,
)
READERS: Work[ReaderJob, ReaderPlan, Result] = Work(
    noun="reader job",
    kept="what was answered is kept, and readers resume goes on",
    folder="readers",
    begins=("readers", "run", "--yes"),
    resumes=("readers", "resume"),
    model=ReaderSpec,
    read=answered.read,
    plan=lambda job, problems: asking.plan(job, problems=problems),
    run=_answer,
    size_of=answered.size_of,
    costs=paid.dollars,
    button=answered.button,
    ended=answered.ended,
    table=answered.table,
)
NAMES: Work[NamesJob, NamesPlan, Result] = Work(
    noun="diagnosis",
    kept="what was embedded is kept, and the same command goes on",
    folder="diagnostics",
    begins=("diagnose", "names", "--yes", "--spec"),
    resumes=("diagnose", "resume"),
    model=NamesSpec,
    read=_read_names,
    plan=lambda job, _: diagnosis.plan(job),
    run=_diagnose,
    size_of=diagnosed.size_of,
    costs=lambda _: "",
    button=diagnosed.button,
    ended=diagnosed.ended,
    table=diagnosed.table,
)
QUESTIONS: Work[QuestionsJob, QuestionsPlan, Result] = Work(
    noun="set of questions",
    kept="what was written is kept, and golden questions-resume goes on",
    folder="questions",
    begins=("golden", "questions", "--yes", "--spec"),
    resumes=("golden", "questions-resume"),
    model=QuestionsSpec,
    lands=False,
    read=questions.read,
    plan=lambda job, problems: questions_planned.plan(job, problems=problems),
    run=_ask,
    size_of=questions.size_of,
    costs=questions.costs,
    button=questions.button,
    ended=questions.ended,
    table=questions.table,
)
