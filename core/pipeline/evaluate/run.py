"""Runs an evaluation in its folder: begins it, or goes on where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from core.errors import InputError
from core.jobs import State
from core.pipeline.evaluate.artifacts import Artifacts
from core.pipeline.evaluate.budget import Spent
from core.pipeline.evaluate.cluster.executor import Cluster
from core.pipeline.evaluate.cluster.nodes import CONFIGURED, LOCAL
from core.pipeline.evaluate.folder import ARTIFACTS, Folder, Measurements, Progress, Status
from core.pipeline.evaluate.identity import billed, described, evaluation_manifest, identities
from core.pipeline.evaluate.job import Job
from core.pipeline.evaluate.results import Outbox
from core.pipeline.evaluate.runner import Here
from core.pipeline.evaluate.steps import NONE, Graph, Route, graph
from core.pipeline.evaluate.turn import Order, Site, Turn, begun, stoppable
from core.providers.calls import Keys
from core.providers.rerank import make_reranker
from core.records import JsonMap, Run, Sink, Stack, now


@dataclass(frozen=True, slots=True)
class After:
    """Work on an evaluation's runs in the same folder and budget, once all have landed."""

    do: Callable[[Turn, Sequence[str]], object]  # given the ids of the runs
    billed: Sequence[tuple[str, str]] = ()  # item and unit of what it pays for


Before = Callable[[Turn, Job], Sequence[Stack]]
"""Chooses which stacks of an evaluation run, in its folder and budget, before any does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """An evaluation as it ended: its status, runs and spending."""

    evaluation_id: str  # Its identity
    folder: Folder  # Where it is
    status: Status  # How far it came, and why it ended
    runs: tuple[Run, ...]  # What was handed over now
    held: tuple[str, ...]  # Ids of runs that were there before
    spent: tuple[Spent, ...]  # What it has paid for, resumed runs included


def run_job(
    job: Job,
    sink: Sink,
    *,
    work: Path,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    held: Collection[str] = (),
    keys: Keys | None = None,
    before: Before | None = None,
    after: After | None = None,
    on: str = "",
) -> Outcome:
    """Run an evaluation, or what is left of it.

    Args:
        sink: Receives what must be there before (the collection), then batches of finished runs.
        held: Ids of runs that the sink has already; they are not run again.
        before: What chooses the stacks that run; None = all do.
        on: The cluster that does it: "ray" for one that is started here, or its address; empty = none. Its
            machines look keys up themselves, and see `work` under the same path.

    Returns:
        What became of it; its state is `FINISHED` or `CANCELLED`.

    Raises:
        BudgetError: If going on could cost more than allowed; what has finished was handed over.
        InputError: If another process runs it, or something in it cannot be used.
        ClqError: If a provider fails; what has finished was handed over, and running again goes on.
    """
    if on and job.own:
        raise InputError(
            f"Pipelines of your own ({', '.join(job.own)}) are measured on this machine only.",
            where="stack",
            do="Run them without --on.",
        )
    site = Site(work=work, shared=work, progress=progress, cancelled=cancelled, keys=keys)
    machine = described()
    every, todo = (Graph((), {}), []) if before else _routes(job, held)
    order = Order(
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
        status={
            "runs_done": len(every.routes) - len(todo),
            "runs_total": len(every.routes),
            "on": on if on in (LOCAL, CONFIGURED) else "",
        },
    )
    with begun(order, site) as turn, closing(Measurements(turn.folder.measured)) as kept:
        tracker, watch = turn.tracker, turn.watch
        if before is not None:
            stacks: Sequence[Stack] = ()
            with stoppable(watch):
                stacks = before(turn, job)
            if stacks:
                job = replace(job, stacks=stacks)
                every, todo = _routes(job, held)
                tracker.tell(runs_done=len(every.routes) - len(todo), runs_total=len(every.routes))
        outbox = Outbox(sink, lambda runs: tracker.tell(runs_done=tracker.status.runs_done + runs))
        if todo:
            sink(job.setup)
            with stoppable(watch):
                _run(job, every, todo, turn, kept=kept, outbox=outbox, machine=machine, on=on)
        ids = {route: job.run_id(route) for route in every.routes}
        if after is not None and not watch.stopping:
            with stoppable(watch):
                after.do(turn, list(ids.values()))
        state = State.CANCELLED if watch.stopping else State.FINISHED
        turn.log.write("end", state=state, usd=turn.budget.usd)
        return Outcome(
            evaluation_id=job.evaluation_id,
            folder=turn.folder,
            status=tracker.close(state),
            runs=tuple(outbox.runs),
            held=tuple(sorted(run_id for route, run_id in ids.items() if route not in todo)),
            spent=tuple(turn.receipts.spent()),
        )


def _routes(job: Job, held: Collection[str]) -> tuple[Graph, list[Route]]:
    deepest: list[str] = []
    if job.protocol.deepest:
        names = {stack.spec.get("reranker", NONE) for stack in job.stacks} - {NONE}
        rerankers = [make_reranker(name, models=job.models, ready=False) for name in names]
        deepest = [name for name, reranker in zip(names, rerankers, strict=True) if reranker.pointwise]
    every = graph(job.stacks, identities(job), deepest=deepest)
    return every, [route for route in every.routes if job.run_id(route) not in held]


def _run(
    job: Job,
    every: Graph,
    todo: Sequence[Route],
    turn: Turn,
    *,
    kept: Measurements,
    outbox: Outbox,
    machine: JsonMap,
    on: str,
) -> None:
    """Do all of it; what has finished when it is stopped has been handed over."""
    if on:
        executor: Here | Cluster = Cluster(on, job, every, todo, turn=turn, kept=kept)
    else:
        executor = Here(
            job,
            every,
            todo,
            artifacts=Artifacts(turn.folder.path.parent / ARTIFACTS),
            models=turn.models,
            kept=kept,
            tracker=turn.tracker,
            stage=turn.budget.begin_stage,
            check=turn.watch.check,
            machine=machine,
            log=turn.log.write,
        )
    turn.tracker.expect(executor.expects())
    rounds = max(1, job.protocol.rounds)
    try:
        with executor:
            for number in range(1, rounds + 1):
                _await(number, job.protocol.pause_s, kept, turn)
                with closing(executor.round(number, last=number == rounds)) as finished:
                    for run, frames in finished:
                        outbox.add(run, frames)
                kept.end_round(number, now())
    finally:
        outbox.flush()


def _await(number: int, pause_s: float, kept: Measurements, turn: Turn) -> None:
    """Wait until a round is due, unless it began before."""
    known = kept.rounds()
    if number not in known and number - 1 in known:
        ended = known[number - 1][1] or now()
        due = ended + timedelta(seconds=pause_s)
        while (left := (due - now()).total_seconds()) > 0:
            turn.tracker.begin("wait", f"wait for round {number}, {due.astimezone():%H:%M}")
            turn.watch.wait(min(left, 30.0))
    kept.begin_round(number, now())
    turn.log.write("round", number=number)
