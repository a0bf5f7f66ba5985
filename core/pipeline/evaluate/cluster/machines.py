"""Actors and tasks on the machines of a cluster: the desk of an evaluation, and its work.

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
from core.pipeline.evaluate.cluster.desk import Desk
from core.pipeline.evaluate.cluster.link import (
    Address,
    FarBudget,
    FarJournal,
    FarTurns,
    Link,
    Served,
    connected,
)
from core.pipeline.evaluate.folder import Block, Measurements, Status
from core.pipeline.evaluate.identity import described
from core.pipeline.evaluate.job import Job
from core.pipeline.evaluate.measure import Answered
from core.pipeline.evaluate.results import Made
from core.pipeline.evaluate.runner import Here, Means
from core.pipeline.evaluate.steps import Graph
from core.pipeline.ranking import Hits
from core.prices import PriceBook
from core.providers.calls.caller import take_turns

OWN, SHARED = "own", "shared"
"""Journals of replies: of this evaluation, and of all."""
Rounds = dict[int, tuple[datetime, datetime | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The order that all tasks of one process's turn at an evaluation share."""

    job: Job  # without what only the store needs
    every: Graph  # the steps of all stacks
    artifacts: Path  # where each machine has them; one folder of all, unless they lie away as well
    away: str  # see `Artifacts`


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """The part of the queries' work that one task does."""

    keys: tuple[str, ...]  # steps that are asked, what is needed before what needs it
    stacks: tuple[str, ...]  # ids of the runs of the stacks that are asked; empty = steps that others need
    number: int  # the round
    repeats: tuple[int, ...]  # which of its repeats are measured
    known: Mapping[tuple[str, str], Block]  # what was measured before, by label and pass
    rounds: Rounds = field(default_factory=dict)  # when the rounds began and ended


Answers = dict[str, Answered]
"""What steps made of the queries and what was measured, by their keys; for the tasks that come after."""


@dataclass(frozen=True, slots=True)
class Done:
    """Results that a task sends to the process that writes."""

    blocks: Mapping[tuple[str, str], Block]  # what was measured, by step and pass
    made: Made | None = None  # the run of the stack and its rows


class _Held(Measurements):
    """Times that were measured before this task, and those that are measured now."""

    def __init__(self) -> None:
        self.piece: Piece | None = None
        self._new: dict[tuple[str, str], Block] = {}

    def get(self, step: str, of: str) -> Block | None:
        return self.piece.known.get((step, of)) if self.piece else None

    def put(
        self, step: str, of: str, block: Block, parts: Mapping[str, Block] = MappingProxyType({})
    ) -> None:
        del parts  # of pipelines of one's own, which are not asked here
        self._new[step, of] = block

    def parts(self, step: str, of: str) -> dict[str, Block]:
        del step, of
        return {}

    def rounds(self) -> Rounds:
        return self.piece.rounds if self.piece else {}

    def new(self) -> Done:
        """Return the measurements since the last call."""
        new, self._new = self._new, {}
        return Done(new)


class Worker:
    """One process of a machine, which keeps models and indexes open from task to task."""

    def __init__(self, order: Order, link: Link) -> None:
        self._every, self._link, job = order.every, link, order.job
        take_turns(lambda line, limits: FarTurns(link, line, limits))
        budget, shared = FarBudget(link), FarJournal(link, SHARED)
        own = FarJournal(link, OWN) if job.protocol.repeats else shared
        self._held = _Held()
        means = Means(
            artifacts=Artifacts(order.artifacts, order.away),
            models=Models(job.models, shared=shared, own=own, meter=budget),
            kept=self._held,
            tracker=Tracker(Status(name=job.name), told=self._tell),
            stage=budget.begin_stage,
            check=link.check,
            machine={**described(), "cluster": "Ray"},
        )
        self._here = Here(job, order.every, (), means)
        self._here.built.update(order.every.builds)  # by tasks of their own
        self._here.collector.__enter__()  # for as long as the process lives
        self._steps = {step.key: step for step in (*order.every.steps, *order.every.builds)}
        self._routes = {job.run_id(route): route for route in order.every.routes}

    def build(self, key: str) -> None:
        """Build what a step is."""
        self._here.built.discard(self._steps[key])
        self._here.build(self._steps[key])
        self._here.builder.release(())

    def ask(self, piece: Piece, inputs: Sequence[Answers]) -> tuple[Answers, Done]:
        """Ask the queries of a piece."""
        with self._at(piece, inputs) as here:
            for _ in here.round(piece.number, last=False):
                pass
            results = {key: here.measurer.results[self._steps[key]] for key in piece.keys}
            answers = {
                key: replace(answered, values=packed(answered.values)) for key, answered in results.items()
            }
            return answers, self._held.new()

    def finish(self, piece: Piece, inputs: Sequence[Answers]) -> Iterator[Done]:
        """Ask the queries of a piece, and yield the results of its stacks as they finish."""
        with self._at(piece, inputs) as here:
            for finished in here.round(piece.number, last=True):
                yield replace(self._held.new(), made=finished)

    @contextmanager
    def _at(self, piece: Piece, inputs: Sequence[Answers]) -> Iterator[Here]:
        """Yield the worker at a piece, with the earlier answers at hand meanwhile."""
        self._held.piece = piece
        results = self._here.measurer.results
        for key, answered in ((key, answered) for answers in inputs for key, answered in answers.items()):
            results[self._steps[key]] = replace(
                answered, values=unpacked(answered.values), blocks=dict(answered.blocks)
            )
        routes = [self._routes[stack] for stack in piece.stacks]
        if not routes:  # what does the work knows stacks alone
            steps = tuple(self._steps[key] for key in piece.keys)
            routes = [replace(next(iter(self._routes.values())), steps=steps)]
        self._here.take(routes, piece.repeats)
        try:
            with threads(1):
                yield self._here
        finally:
            results.clear()
            if self._here.builder.open_bytes > OPEN_BYTES:
                self._here.builder.release(())

    def _tell(self, status: Status) -> None:
        if status.whole:
            self._link.tell("within", status.stage, status.counted, status.whole, status.unit)


def packed(values: Sequence[Any]) -> Any:
    """Values as few large arrays where they are many small ones, which go faster from machine to machine."""
    if not values or not all(isinstance(value, Hits) for value in values):
        return list(values)
    ends = np.cumsum([len(hits.passages) for hits in values])
    return (ends, np.concatenate([h.passages for h in values]), np.concatenate([h.scores for h in values]))


def unpacked(held: Any) -> list[Any]:
    """Values again."""
    if isinstance(held, list):
        return held
    ends, passages, scores = held
    parts = zip(np.split(passages, ends[:-1]), np.split(scores, ends[:-1]), strict=True)
    return [Hits(*part) for part in parts]


LAST_S = 20.0
"""Seconds that tasks have to end in when they are to stop."""


def ray() -> ModuleType:
    """Return Ray, where it is installed."""
    return needed("ray", "requirements-ray.txt", "A cluster")


class Turn(NamedTuple):
    """A task's way to the work that it is a part of."""

    key: str  # tells it from others
    order: Sequence[Any]  # where Ray holds the `Order`; a process fetches it once
    desk: Address
    proof: bytes


class Keeper:
    """The desk as an actor, on the machine of the process that writes; see `Desk`."""

    def __init__(
        self, receipts: Path, journals: Mapping[str, Path], book: PriceBook, limit: float | None, proof: bytes
    ) -> None:
        self._alone = ExitStack()
        self._alone.enter_context(locked(receipts.with_name("desk.lock"), wait=_patience()))
        host = ray().util.get_node_ip_address()
        self._served = Served(Desk(receipts, journals, book, limit), host, proof)

    def address(self) -> Address:
        """Return where workers find it."""
        return self._served.address

    def do(self, method: str, *given: Any) -> Any:
        """Call a method of the desk for the process that writes."""
        with self._served.lock:
            return getattr(self._served.desk, method)(*given)

    def close(self) -> None:
        """Release the files."""
        self._served.close()
        self._alone.close()


def _patience() -> Callable[[], None]:
    """Wait for the desk of a process that was killed, which Ray ends within moments."""
    end = time.monotonic() + LAST_S

    def wait() -> None:
        if time.monotonic() > end:
            raise InputError(
                "A cluster still works on this evaluation for a process that is gone.",
                where="Ray",
                do="Wait a moment, and resume.",
            )

    return wait


_workers: dict[str, tuple[Worker, Link]] = {}
"""The worker of this process, by turn; there is one at most."""


@contextmanager
def _at_work(turn: Turn) -> Iterator[Worker]:
    if turn.key not in _workers:
        _workers.clear()
        with suppress(ValueError):  # in its first thread alone; the call under way is lost
            signal.signal(signal.SIGTERM, lambda *_: os._exit(1))
        link = connected(turn.desk, turn.proof, uuid4().hex)
        order: Order = ray().get(turn.order[0])
        _workers[turn.key] = Worker(order, link), link
    worker, link = _workers[turn.key]
    link.ask("begin", ray().get_runtime_context().get_node_id())
    try:
        yield worker
    finally:
        link.tell("end")


def build(turn: Turn, key: str, *_built: Done) -> Done:
    """Build what a step is; a task."""
    with _at_work(turn) as worker:
        worker.build(key)
    return Done({})


def ask(turn: Turn, piece: Piece, *inputs: Answers | Done) -> tuple[Answers, Done]:
    """Ask the queries of a piece, given the answers of those before it and what was built; a task."""
    with _at_work(turn) as worker:
        return worker.ask(piece, [answers for answers in inputs if isinstance(answers, dict)])


def finish(turn: Turn, piece: Piece, *inputs: Answers | Done) -> Iterator[Done]:
    """As `ask`, and bring the results of one stack after the other; as many if it is begun again."""
    with _at_work(turn) as worker:
        yield from worker.finish(piece, [answers for answers in inputs if isinstance(answers, dict)])


def finish_all(turn: Turn, piece: Piece, *inputs: Answers | Done) -> list[Done]:
    """As `finish`, all results together: a client of Ray ("ray://") takes none as they come."""
    return list(finish(turn, piece, *inputs))


RETURNS: Mapping[Callable[..., Any], int | str] = {build: 1, ask: 2, finish: "streaming", finish_all: 1}
"""What Ray hands out for a task: where its one result will be, or its two, or one after the other."""


def do(work: Callable[[Any], Any], block: object) -> object:
    """Do something with a block; a task."""
    return work(block)
