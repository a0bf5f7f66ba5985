"""Runs an evaluation in its folder: begins it, or goes on where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.files import write_json
from core.jobs import State, Tracker, Watch
from core.pipeline.environment import Collector
from core.pipeline.evaluate.artifacts import Artifacts
from core.pipeline.evaluate.asking import Asker
from core.pipeline.evaluate.budget import Budget, Receipts, Spent
from core.pipeline.evaluate.build import Builder, Models
from core.pipeline.evaluate.cluster.executor import Cluster
from core.pipeline.evaluate.cluster.nodes import CONFIGURED, LOCAL
from core.pipeline.evaluate.folder import ARTIFACTS, Folder, Log, Measurements, Progress, Status, folder_of
from core.pipeline.evaluate.identity import billed, described, evaluation_manifest, identities
from core.pipeline.evaluate.job import Job
from core.pipeline.evaluate.measure import Measurer, Signals
from core.pipeline.evaluate.results import Outbox, Writer
from core.pipeline.evaluate.runner import Here, Runner
from core.pipeline.evaluate.steps import NONE, Graph, Route, graph
from core.pipeline.evaluate.turn import REPLIES, Turn, ending, stoppable
from core.providers.calls import Journal, Keys
from core.providers.rerank import make_reranker
from core.records import Run, Sink, Stack


@dataclass(frozen=True, slots=True)
class After:
    """What is done with the runs of an evaluation in the same folder and budget, once all have landed."""

    do: Callable[[Turn, Sequence[str]], object]  # given the ids of the runs
    billed: Sequence[tuple[str, str]] = ()  # item and unit of what it pays for


Before = Callable[[Turn, Job], Sequence[Stack]]
"""Chooses which stacks of an evaluation run, in its folder and budget, before any does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of an evaluation."""

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
    folder = folder_of(work, job.name, job.evaluation_id)
    with folder.held(f"The evaluation {folder.path.name} is running already."):
        session = _Session(job, sink, folder, frozenset(held), steps=(before, after), on=on)
        try:
            return session.run(progress, cancelled, keys)
        finally:
            session.close()


def _pointwise(job: Job) -> list[str]:
    """Rerankers whose scores of a passage do not depend on the passages beside it."""
    names = {stack.spec.get("reranker", NONE) for stack in job.stacks} - {NONE}
    return [name for name in names if make_reranker(name, models=job.models, ready=False).pointwise]


class _Session:
    """One process's turn at an evaluation, its folder locked."""

    def __init__(
        self,
        job: Job,
        sink: Sink,
        folder: Folder,
        held: frozenset[str],
        *,
        steps: tuple[Before | None, After | None],
        on: str,
    ) -> None:
        self._job, self._sink, self._folder, self._held = job, sink, folder, held
        self._before, self._after = steps
        self._on = on
        self._receipts = Receipts(folder.receipts)
        self._kept = Measurements(folder.measured)
        self._log = Log(folder.log)
        self._machine = described()
        self._opened: list[Journal] = []

    def close(self) -> None:
        """Release the files."""
        for journal in self._opened:
            journal.close()
        self._receipts.close()
        self._kept.close()

    def run(self, progress: Progress | None, cancelled: Callable[[], bool], keys: Keys | None) -> Outcome:
        """Do what is left; see `run_job`."""
        job, folder = self._job, self._folder
        every, todo = self._routes() if self._before is None else (Graph((), {}), [])
        budget = Budget(job.book, job.budget_usd, self._receipts)
        budget.require_prices([*billed(job), *(self._after.billed if self._after else ())])
        tracker = self._tracker(progress, len(every.routes), len(todo))
        write_json(folder.spec, job.spec)
        write_json(folder.manifest, evaluation_manifest(job, self._machine))
        self._log.write("begin", stacks=len(every.routes), left=len(todo))
        landed = lambda runs: tracker.tell(runs_done=tracker.status.runs_done + runs)  # noqa: E731
        outbox = Outbox(self._sink, landed)
        models = self._models(budget, keys)
        with ending(tracker, self._log, models), Watch(cancelled, folder.stop, models.interrupt) as watch:
            turn = Turn(models, budget, tracker, watch, folder, self._log)
            if self._before is not None:
                every, todo = self._chosen(self._before, turn)
            if todo:
                self._sink(job.setup)
                begin = self._here if not self._on else self._cluster
                runner = Runner(
                    protocol=job.protocol,
                    executor=begin(every, todo, models, budget, tracker=tracker, watch=watch),
                    outbox=outbox,
                    kept=self._kept,
                    tracker=tracker,
                    watch=watch,
                    log=self._log,
                )
                with stoppable(watch):
                    runner.run()
            if self._after is not None and not watch.stopping:
                with stoppable(watch):
                    self._after.do(turn, [job.run_id(route) for route in every.routes])
        state = State.CANCELLED if watch.stopping else State.FINISHED
        self._log.write("end", state=state, usd=budget.usd)
        return Outcome(
            evaluation_id=job.evaluation_id,
            folder=folder,
            status=tracker.close(state),
            runs=tuple(outbox.runs),
            held=tuple(sorted(job.run_id(route) for route in every.routes if route not in todo)),
            spent=tuple(self._receipts.spent()),
        )

    def _chosen(self, before: Before, turn: Turn) -> tuple[Graph, list[Route]]:
        """The routes of the stacks that are chosen; none where it was stopped meanwhile."""
        stacks: Sequence[Stack] = ()
        with stoppable(turn.watch):
            stacks = before(turn, self._job)
        if not stacks:
            return Graph((), {}), []
        self._job = replace(self._job, stacks=stacks)
        every, todo = self._routes()
        turn.tracker.tell(runs_done=len(every.routes) - len(todo), runs_total=len(every.routes))
        return every, todo

    def _routes(self) -> tuple[Graph, list[Route]]:
        """All routes, and those whose results are not there yet."""
        deepest = _pointwise(self._job) if self._job.protocol.deepest else ()
        every = graph(self._job.stacks, identities(self._job), deepest=deepest)
        return every, [route for route in every.routes if self._job.run_id(route) not in self._held]

    def _tracker(self, progress: Progress | None, runs: int, left: int) -> Tracker[Status]:
        status = Status(
            evaluation_id=self._job.evaluation_id,
            name=self._job.name,
            collection_id=self._job.collection_id,
            usd_limit=self._job.budget_usd,
            runs_done=runs - left,
            runs_total=runs,
            on=self._on if self._on in (LOCAL, CONFIGURED) else "",
        )
        return Tracker(status, path=self._folder.status_file, told=progress, facts=self._receipts.told)

    def _models(self, budget: Budget, keys: Keys | None) -> Models:
        shared = Journal(self._folder.path.parent / REPLIES, self._receipts.sent_again)
        own = Journal(self._folder.journal, self._receipts.sent_again) if self._job.protocol.repeats else None
        self._opened += [each for each in (shared, own) if each is not None]
        return Models(self._job.models, shared=shared, own=own, meter=budget, keys=keys)

    def _here(
        self,
        every: Graph,
        todo: Sequence[Route],
        models: Models,
        budget: Budget,
        *,
        tracker: Tracker[Status],
        watch: Watch,
    ) -> Here:
        job, collector, stage = self._job, Collector(), budget.begin_stage
        corpora = {corpus.hash: corpus for corpus in job.corpora.values()}
        builder = Builder(Artifacts(self._folder.path.parent / ARTIFACTS), models, corpora, stage)
        measurer = Measurer(
            job.queries["text"].to_list(),
            job.protocol,
            Asker(every, builder, models, job.corpora),
            label=lambda step: f"{step.key}@{every.depths.get(step, 0)}",
            kept=self._kept,
            tracker=tracker,
            check=watch.check,
            stage=stage,
            pause=collector.pause,
            first=every.firsts,
            names=job.names,
        )
        writer = Writer(
            job,
            measurer.results,
            builder=builder,
            signals=Signals(every, measurer.results, builder.index),
            machine=self._machine,
            rounds=self._kept.rounds,
        )
        return Here(
            protocol=job.protocol,
            every=every,
            todo=list(todo),
            builder=builder,
            measurer=measurer,
            writer=writer,
            tracker=tracker,
            check=watch.check,
            collector=collector,
            log=self._log.write,
        )

    def _cluster(
        self,
        every: Graph,
        todo: Sequence[Route],
        _models: Models,
        _budget: Budget,
        *,
        tracker: Tracker[Status],
        watch: Watch,
    ) -> Cluster:
        for journal in self._opened:
            journal.close()  # another process writes the files, and perhaps another machine
        return Cluster(
            self._on,
            self._job,
            every,
            todo,
            folder=self._folder,
            kept=self._kept,
            receipts=self._receipts,
            tracker=tracker,
            watch=watch,
            log=self._log,
        )
