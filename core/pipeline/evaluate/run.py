"""Runs an evaluation in its folder, or resumes it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Self

from core.errors import InputError
from core.jobs import State
from core.pipeline.evaluate.artifacts import Artifacts
from core.pipeline.evaluate.cluster.executor import ClusterExecutor
from core.pipeline.evaluate.cluster.nodes import CONFIGURED, LOCAL
from core.pipeline.evaluate.folder import ARTIFACTS, Measurements
from core.pipeline.evaluate.identity import billed, described, evaluation_manifest, identities
from core.pipeline.evaluate.job import Job
from core.pipeline.evaluate.local import LocalExecutor, Runtime
from core.pipeline.evaluate.results import Outbox
from core.pipeline.evaluate.session import Result, Session, Site, WorkOrder, begun, stoppable
from core.pipeline.evaluate.steps import NONE, Graph, Route, graph
from core.providers.rerank import make_reranker
from core.records import JsonMap, Run, Sink, Stack, now

Before = Callable[[Session, Job], Sequence[Stack]]
"""Chooses the stacks of an evaluation to run, in its folder and budget, before any runs."""


@dataclass(frozen=True, slots=True)
class After:
    """Work on an evaluation's runs in the same folder and budget, once all runs are stored."""

    do: Callable[[Session, Sequence[str]], object]  # takes the ids of the runs
    billed: Sequence[tuple[str, str]] = ()  # item and unit of its payments


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Result):
    """The end of an evaluation: its status, runs and spending."""

    runs: tuple[Run, ...]  # Runs handed over now
    held: tuple[str, ...]  # Ids of runs that existed before
    repriced: tuple[str, ...] = ()  # Those of them whose price has changed


@dataclass(frozen=True, slots=True)
class Selection:
    """The stacks of an evaluation that run, as routes."""

    job: Job
    every: Graph = field(default_factory=lambda: Graph((), {}))  # The steps of all
    todo: Sequence[Route] = ()  # Those without a run so far

    @classmethod
    def of(cls, job: Job, held: Collection[str]) -> Self:
        """Select all stacks of an evaluation; those whose runs exist are not to do."""
        deepest: list[str] = []
        if job.protocol.deepest:
            names = {stack.spec.get("reranker", NONE) for stack in job.stacks} - {NONE}
            rerankers = [make_reranker(name, models=job.models, ready=False) for name in names]
            deepest = [name for name, reranker in zip(names, rerankers, strict=True) if reranker.pointwise]
        every = graph(job.stacks, identities(job), deepest=deepest)
        return cls(job, every, [route for route in every.routes if job.run_id(route) not in held])

    @property
    def counts(self) -> dict[str, int]:
        """Count the runs, as fields of a status."""
        return {
            "runs_done": len(self.every.routes) - len(self.todo),
            "runs_total": len(self.every.routes),
        }

    def run_ids(self, *, without: Collection[Route] = ()) -> list[str]:
        """List the ids of the runs, except those of some routes."""
        return [self.job.run_id(route) for route in self.every.routes if route not in without]


def run_job(
    job: Job,
    sink: Sink,
    *,
    site: Site,
    held: Collection[str] = (),
    before: Before | None = None,
    after: After | None = None,
) -> Outcome:
    """Run an evaluation, or resume it.

    Args:
        sink: Receives prerequisites (the collection), then batches of finished runs.
        site: Its location and progress reports. The machines of its cluster look up keys themselves, and see
            its folder under the same path.
        held: Ids of runs that the sink already has; they are not repeated.
        before: Chooses the stacks to run; None = all.

    Returns:
        The outcome; its state is `FINISHED` or `CANCELLED`.

    Raises:
        BudgetError: If resuming could cost more than allowed; finished work was handed over.
        InputError: If another process runs it, or something in it cannot be used.
        ClqError: If a provider fails; finished work was handed over, and a rerun resumes.
    """
    _require_place(job, site.on)
    machine = described()
    selection = Selection(job) if before else Selection.of(job, held)
    order = _order(selection, machine, site.on, after)
    with begun(order, site) as session, closing(Measurements(session.folder.measured)) as kept:
        tracker, watch = session.tracker, session.watch
        outbox = Outbox(sink, lambda runs: tracker.tell(runs_done=tracker.status.runs_done + runs))
        with stoppable(watch):
            if before is not None and (stacks := before(session, job)):
                selection = Selection.of(replace(job, stacks=stacks), held)
                tracker.tell(**selection.counts)
            if selection.todo:
                sink(job.setup)
                _run(selection, session, kept=kept, outbox=outbox, machine=machine, on=site.on)
            if after is not None:
                watch.check()
                after.do(session, selection.run_ids())
        state = State.CANCELLED if watch.stopping else State.FINISHED
        session.log.write("end", state=state, usd=session.budget.usd)
        return Outcome(
            folder=session.folder,
            status=tracker.close(state),
            runs=tuple(outbox.runs),
            held=tuple(sorted(selection.run_ids(without=selection.todo))),
            spent=tuple(session.receipts.spent()),
        )


def _require_place(job: Job, on: str) -> None:
    """Refuse a cluster for custom pipelines."""
    if on and job.own:
        raise InputError(
            f"Pipelines of your own ({', '.join(job.own)}) are measured on this machine only.",
            where="stack",
            do="Run them without --on.",
        )


def _order(selection: Selection, machine: JsonMap, on: str, after: After | None) -> WorkOrder:
    job = selection.job
    return WorkOrder(
        work_id=job.evaluation_id,
        name=job.name,
        collection_id=job.collection_id,
        spec=job.spec,
        manifest=evaluation_manifest(job, machine),
        models=job.models,
        book=job.book,
        budget_usd=job.budget_usd,
        billed=[*billed(job), *(after.billed if after else ())],
        own=job.protocol.repeats > 0,
        status={**selection.counts, "on": on if on in (LOCAL, CONFIGURED) else ""},
    )


def _run(
    selection: Selection, session: Session, *, kept: Measurements, outbox: Outbox, machine: JsonMap, on: str
) -> None:
    """Do the remaining work; finished work has been handed over even if this is stopped."""
    job, every, todo = selection.job, selection.every, selection.todo
    if on:
        executor: LocalExecutor | ClusterExecutor = ClusterExecutor(
            on, job, every, todo, session=session, kept=kept
        )
    else:
        runtime = Runtime(
            artifacts=Artifacts(session.folder.path.parent / ARTIFACTS),
            models=session.models,
            kept=kept,
            tracker=session.tracker,
            stage=session.budget.begin_stage,
            check=session.watch.check,
            machine=machine,
            log=session.log.write,
        )
        executor = LocalExecutor(job, every, todo, runtime)
    session.tracker.expect(executor.expects())
    rounds = max(1, job.protocol.rounds)
    try:
        with executor:
            for number in range(1, rounds + 1):
                _await(number, job.protocol.pause_s, kept, session)
                with closing(executor.round(number, last=number == rounds)) as finished:
                    for made in finished:
                        outbox.add(made)
                kept.end_round(number, now())
    finally:
        outbox.flush()


def _await(number: int, pause_s: float, kept: Measurements, session: Session) -> None:
    """Wait until a round is due, unless it began before."""
    known = kept.rounds()
    if number not in known and number - 1 in known:
        ended = known[number - 1][1] or now()
        due = ended + timedelta(seconds=pause_s)
        while (left := (due - now()).total_seconds()) > 0:
            session.tracker.begin("wait", f"wait for round {number}, {due.astimezone():%H:%M}")
            session.watch.wait(min(left, 30.0))
    kept.begin_round(number, now())
    session.log.write("round", number=number)
