"""Actors and tasks on the machines of a cluster: the coordinator of an evaluation, and the workers.

A task builds one artefact, or asks the queries of steps and makes the results of stacks.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from core.errors import InputError
from core.extras import needed
from core.files import locked
from core.jobs import Tracker
from core.pipeline.environment import threads
from core.pipeline.evaluate.artifacts import Artifacts
from core.pipeline.evaluate.build import OPEN_BYTES, Models
from core.pipeline.evaluate.cluster.coordinator import Coordinator
from core.pipeline.evaluate.cluster.link import (
    Address,
    FarBudget,
    FarJournal,
    FarTurns,
    Link,
    Served,
    connected,
)
from core.pipeline.evaluate.folder import Measurements, Status, StepTimes
from core.pipeline.evaluate.identity import described
from core.pipeline.evaluate.job import Job
from core.pipeline.evaluate.local import LocalExecutor, Runtime
from core.pipeline.evaluate.measure import StepResults
from core.pipeline.evaluate.steps import Graph
from core.pipeline.ranking import Hits
from core.prices import PriceBook
from core.providers.calls.caller import take_turns
from core.records import Batch

OWN, SHARED = "own", "shared"
"""Journals of replies: one for this evaluation, one for all."""
Rounds = dict[int, tuple[datetime, datetime | None]]
_Answers = dict[str, StepResults]
"""Results of the steps for the queries and their measurements, by step key, for later tasks."""
LAST_S = 20.0
"""Seconds within which tasks must end once they are to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOrder:
    """The order that all tasks share in one process's session of an evaluation."""

    job: Job  # without the data that only the store needs
    every: Graph  # the steps of all stacks
    artifacts: Path  # their folder on each machine; a shared one, unless they are also in object storage
    away: str  # see `Artifacts`


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTask:
    """The part of the query work that one task does."""

    keys: tuple[str, ...]  # steps to ask, each after those it needs
    stacks: tuple[str, ...]  # run ids of the stacks to ask; empty = steps that other tasks need
    number: int  # the round
    repeats: tuple[int, ...]  # which of its repeats to measure
    known: Mapping[tuple[str, str], StepTimes]  # earlier measurements, by label and pass
    rounds: Rounds = field(default_factory=dict)  # when the rounds began and ended


@dataclass(frozen=True, slots=True)
class Done:
    """Results that a task sends to the process that writes."""

    blocks: Mapping[tuple[str, str], StepTimes]  # measurements, by step and pass
    made: Batch | None = None  # the run of the stack and its rows


class _Held(Measurements):
    """Measurements made before this task, and those made now."""

    def __init__(self) -> None:
        self.task: ClusterTask | None = None
        self._new: dict[tuple[str, str], StepTimes] = {}

    def get(self, step: str, of: str) -> StepTimes | None:
        return self.task.known.get((step, of)) if self.task else None

    def put(
        self, step: str, of: str, block: StepTimes, parts: Mapping[str, StepTimes] = MappingProxyType({})
    ) -> None:
        del parts  # of custom pipelines, which are not asked here
        self._new[step, of] = block

    def parts(self, step: str, of: str) -> dict[str, StepTimes]:
        del step, of
        return {}

    def rounds(self) -> Rounds:
        return self.task.rounds if self.task else {}

    def new(self) -> Done:
        """Return the measurements since the last call."""
        new, self._new = self._new, {}
        return Done(new)


class ClusterWorker:
    """One process on a machine, which keeps models and indexes open from task to task."""

    def __init__(self, order: NodeOrder, link: Link) -> None:
        self._every, self._link, job = order.every, link, order.job
        take_turns(lambda line, limits: FarTurns(link, line, limits))
        budget, shared = FarBudget(link), FarJournal(link, SHARED)
        own = FarJournal(link, OWN) if job.protocol.repeats else shared
        self._held = _Held()
        runtime = Runtime(
            artifacts=Artifacts(order.artifacts, order.away),
            models=Models(job.models, shared=shared, own=own, meter=budget),
            kept=self._held,
            tracker=Tracker(Status(name=job.name), told=self._tell),
            stage=budget.begin_stage,
            check=link.check,
            machine={**described(), "cluster": "Ray"},
        )
        self._executor = LocalExecutor(job, order.every, (), runtime)
        self._executor.built.update(order.every.builds)  # separate tasks built them
        self._executor.collector.__enter__()  # for the life of the process
        self._steps = {step.key: step for step in (*order.every.steps, *order.every.builds)}
        self._routes = {job.run_id(route): route for route in order.every.routes}

    def build(self, key: str) -> None:
        """Build a step's result."""
        self._executor.built.discard(self._steps[key])
        self._executor.build(self._steps[key])
        self._executor.builder.release(())

    def ask(self, task: ClusterTask, inputs: Sequence[_Answers]) -> tuple[_Answers, Done]:
        """Ask the queries of a task."""
        with self._at(task, inputs) as here:
            for _ in here.round(task.number, last=False):
                pass
            results = {key: here.measurer.results[self._steps[key]] for key in task.keys}
            answers = {
                key: replace(answered, values=packed(answered.values)) for key, answered in results.items()
            }
            return answers, self._held.new()

    def finish(self, task: ClusterTask, inputs: Sequence[_Answers]) -> Iterator[Done]:
        """Ask the queries of a task, and yield the results of its stacks as they finish."""
        with self._at(task, inputs) as here:
            for finished in here.round(task.number, last=True):
                yield replace(self._held.new(), made=finished)

    @contextmanager
    def _at(self, task: ClusterTask, inputs: Sequence[_Answers]) -> Iterator[LocalExecutor]:
        """Yield the worker set up for a task, with the earlier answers available."""
        self._held.task = task
        results = self._executor.measurer.results
        for key, answered in ((key, answered) for answers in inputs for key, answered in answers.items()):
            results[self._steps[key]] = replace(
                answered, values=unpacked(answered.values), blocks=dict(answered.blocks)
            )
        routes = [self._routes[stack] for stack in task.stacks]
        if not routes:  # the executor works with whole stacks
            steps = tuple(self._steps[key] for key in task.keys)
            routes = [replace(next(iter(self._routes.values())), steps=steps)]
        self._executor.take(routes, task.repeats)
        try:
            with threads(1):
                yield self._executor
        finally:
            results.clear()
            if self._executor.builder.open_bytes > OPEN_BYTES:
                self._executor.builder.release(())

    def _tell(self, status: Status) -> None:
        if status.whole:
            self._link.tell("within", status.stage, status.counted, status.whole, status.unit)


def packed(values: Sequence[Any]) -> Any:
    """Pack many small arrays into a few large ones, which move faster between machines."""
    if not values or not all(isinstance(value, Hits) for value in values):
        return list(values)
    ends = np.cumsum([len(hits.passages) for hits in values])
    return (ends, np.concatenate([h.passages for h in values]), np.concatenate([h.scores for h in values]))


def unpacked(held: Any) -> list[Any]:
    """Restore the values that `packed` packed."""
    if isinstance(held, list):
        return held
    ends, passages, scores = held
    parts = zip(np.split(passages, ends[:-1]), np.split(scores, ends[:-1]), strict=True)
    return [Hits(*part) for part in parts]


def ray() -> ModuleType:
    """Return the Ray package if it is installed."""
    return needed("ray", "requirements-ray.txt", "A cluster")


class TaskContext(NamedTuple):
    """A task's access to the work that it is part of."""

    key: str  # identifies the work
    order: Sequence[Any]  # Ray's reference to the `Order`; a process fetches it once
    coordinator: Address
    proof: bytes


class CoordinatorActor:
    """The coordinator as an actor, on the machine of the process that writes; see `Coordinator`."""

    def __init__(
        self, receipts: Path, journals: Mapping[str, Path], book: PriceBook, limit: float | None, proof: bytes
    ) -> None:
        self._alone = ExitStack()
        self._alone.enter_context(locked(receipts.with_name("desk.lock"), wait=_patience()))
        host = ray().util.get_node_ip_address()
        self._served = Served(Coordinator(receipts, journals, book, limit), host, proof)

    def address(self) -> Address:
        """Return the address at which workers reach it."""
        return self._served.address

    def do(self, method: str, *given: Any) -> Any:
        """Call a method of the coordinator for the process that writes."""
        with self._served.lock:
            return getattr(self._served.coordinator, method)(*given)

    def close(self) -> None:
        """Release the files."""
        self._served.close()
        self._alone.close()


def _patience() -> Callable[[], None]:
    """Wait for the coordinator of a killed process, which Ray ends within moments."""
    end = time.monotonic() + LAST_S

    def wait() -> None:
        if time.monotonic() > end:
            raise InputError(
                "A cluster still works on this evaluation for a process that is gone.",
                where="Ray",
                do="Wait a moment, and resume.",
            )

    return wait


_workers: dict[str, tuple[ClusterWorker, Link]] = {}
"""The worker of this process, by session; at most one."""


@contextmanager
def _at_work(context: TaskContext) -> Iterator[ClusterWorker]:
    if context.key not in _workers:
        _workers.clear()
        with suppress(ValueError):  # only in the main thread; otherwise its pending call is lost
            signal.signal(signal.SIGTERM, lambda *_: os._exit(1))
        link = connected(context.coordinator, context.proof, uuid4().hex)
        order: NodeOrder = ray().get(context.order[0])
        _workers[context.key] = ClusterWorker(order, link), link
    worker, link = _workers[context.key]
    link.ask("begin", ray().get_runtime_context().get_node_id())
    try:
        yield worker
    finally:
        link.tell("end")


def build(context: TaskContext, key: str, *_built: Done) -> Done:
    """Build a step's result, as a task."""
    with _at_work(context) as worker:
        worker.build(key)
    return Done({})


def ask(context: TaskContext, task: ClusterTask, *inputs: _Answers | Done) -> tuple[_Answers, Done]:
    """Ask the queries of a task, given earlier answers and built results."""
    with _at_work(context) as worker:
        return worker.ask(task, [answers for answers in inputs if isinstance(answers, dict)])


def finish(context: TaskContext, task: ClusterTask, *inputs: _Answers | Done) -> Iterator[Done]:
    """Do as `ask`, and yield the results of one stack after another; as many if it is restarted."""
    with _at_work(context) as worker:
        yield from worker.finish(task, [answers for answers in inputs if isinstance(answers, dict)])


def finish_all(context: TaskContext, task: ClusterTask, *inputs: _Answers | Done) -> list[Done]:
    """Do as `finish`, with all results together, as a client of Ray ("ray://") cannot receive them singly."""
    return list(finish(context, task, *inputs))


RETURNS: Mapping[Callable[..., Any], int | str] = {build: 1, ask: 2, finish: "streaming", finish_all: 1}
"""What Ray returns for a task: a reference to its one result, to its two, or to one after another."""


def do(work: Callable[[Any], Any], block: object) -> object:
    """Process a block, as a task."""
    return work(block)
