"""What a worker does: builds one artefact, or asks the queries of steps and makes the results of stacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from core.jobs import Tracker
from core.pipeline.environment import threads
from core.pipeline.evaluate.artifacts import Artifacts
from core.pipeline.evaluate.build import OPEN_BYTES, Models
from core.pipeline.evaluate.cluster.link import FarBudget, FarJournal, FarTurns, Link
from core.pipeline.evaluate.folder import Block, Measurements, Status
from core.pipeline.evaluate.identity import described
from core.pipeline.evaluate.job import Job
from core.pipeline.evaluate.results import Made
from core.pipeline.evaluate.runner import Here
from core.pipeline.evaluate.steps import Graph, Step
from core.pipeline.ranking.hits import Hits
from core.providers.calls.caller import take_turns

OWN, SHARED = "own", "shared"
"""Journals of replies: of this evaluation, and of all."""
Rounds = dict[int, tuple[datetime, datetime | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What all tasks of one process's turn at an evaluation know."""

    job: Job  # without what only the store needs
    every: Graph  # the steps of all stacks
    artifacts: Path  # where each machine has them; one folder of all, unless they lie away as well
    away: str  # see `Artifacts`


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What a task does with the queries.

    Attributes:
        keys: Identities of the steps that are asked, what is needed before what needs it.
        stacks: Ids of the runs of the stacks that are asked; empty = steps of stacks that others ask.
        number: The round.
        repeats: Which of its repeats are measured.
        known: What was measured before, by step and pass.
        rounds: When the rounds began and ended.
    """

    keys: tuple[str, ...]
    stacks: tuple[str, ...]
    number: int
    repeats: tuple[int, ...]
    known: Mapping[tuple[str, str], Block]
    rounds: Rounds = field(default_factory=dict)


Answers = dict[str, tuple[Any, ...]]
"""What steps made of the queries and what was measured, by their keys; for the tasks that come after."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a task tells the process that writes."""

    blocks: Mapping[tuple[str, str], Block]  # what was measured, by step and pass
    made: Made | None = None  # the run of the stack and its rows


class _Held(Measurements):
    """Times that were measured before this task, and those that are measured now."""

    def __init__(self) -> None:
        self.piece: Piece | None = None
        self._new: dict[tuple[str, str], Block] = {}

    def get(self, step: str, of: str) -> Block | None:
        return self.piece.known.get((step, of)) if self.piece else None

    def put(self, step: str, of: str, block: Block) -> None:
        self._new[step, of] = block

    def rounds(self) -> Rounds:
        return self.piece.rounds if self.piece else {}

    def new(self) -> Done:
        """What was measured since this was asked last."""
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
        self._here = Here(
            job,
            order.every,
            (),
            artifacts=Artifacts(order.artifacts, order.away),
            models=Models(job.models, shared=shared, own=own, meter=budget),
            kept=self._held,
            tracker=Tracker(Status(name=job.name), told=self._tell),
            stage=budget.begin_stage,
            check=link.check,
            machine={**described(), "cluster": "Ray"},
        )
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
            return {key: self._answers(self._steps[key]) for key in piece.keys}, self._held.new()

    def finish(self, piece: Piece, inputs: Sequence[Answers]) -> Iterator[Done]:
        """Ask the queries of a piece, and yield the results of its stacks as they finish."""
        with self._at(piece, inputs) as here:
            for made in here.round(piece.number, last=True):
                yield replace(self._held.new(), made=made)

    @contextmanager
    def _at(self, piece: Piece, inputs: Sequence[Answers]) -> Iterator[Here]:
        """What does the work of a piece, with what was answered before at hand meanwhile."""
        self._held.piece = piece
        results = self._here.measurer.results
        for key, told in ((key, told) for answers in inputs for key, told in answers.items()):
            step, (values, usage, details, blocks) = self._steps[key], told
            results.values[step], results.usage[step] = unpacked(values), usage
            results.details[step], results.blocks[step] = details, dict(blocks)
        routes = [self._routes[each] for each in piece.stacks]
        if not routes:  # what does the work knows stacks alone
            steps = tuple(self._steps[key] for key in piece.keys)
            routes = [replace(next(iter(self._routes.values())), steps=steps)]
        self._here.take(routes, piece.repeats)
        try:
            with threads(1):
                yield self._here
        finally:
            for step in list(results.values):
                results.forget(step)
            if self._here.builder.open_bytes > OPEN_BYTES:
                self._here.builder.release(())

    def _answers(self, step: Step) -> tuple[Any, ...]:
        results = self._here.measurer.results
        told = (results.usage[step], results.details[step], results.blocks.get(step, {}))
        return (packed(results.values[step]), *told)

    def _tell(self, status: Status) -> None:
        if status.whole:
            self._link.tell("within", status.stage, status.counted, status.whole, status.unit)


def packed(values: Sequence[Any]) -> Any:
    """Values as few large arrays where they are many small ones, which go faster from machine to machine."""
    if not values or not all(isinstance(each, Hits) for each in values):
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
