"""Has a cluster do the steps of an evaluation, and takes in what comes back; this process alone writes.

What must survive the cluster (indexes, paid replies, receipts, times) lies in the folder of evaluations.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

import numpy as np

from core.jobs import Tracker, Watch
from core.pipeline.evaluate.budget import Receipts
from core.pipeline.evaluate.cluster import nodes
from core.pipeline.evaluate.cluster.tasks import OWN, SHARED, Done, Order, Piece
from core.pipeline.evaluate.folder import ARTIFACTS, Block, Folder, Log, Measurements, Status
from core.pipeline.evaluate.job import Job
from core.pipeline.evaluate.measure import Pass, name, words
from core.pipeline.evaluate.results import Made
from core.pipeline.evaluate.runner import units
from core.pipeline.evaluate.steps import Graph, Route, Step
from core.pipeline.evaluate.turn import REPLIES
from core.records import Batch

_EVERY_S = 0.25
_AT_ONCE = 256
"""Tasks that are looked at together."""


@dataclass(slots=True)
class _Group:
    """Steps that the same stacks need, which one task asks."""

    steps: list[Step] = field(default_factory=list)
    stacks: int = 0  # how many need it
    needs: list[int] = field(default_factory=list)  # groups whose answers it takes; more stacks need those
    answers: Any = None  # where Ray holds the answers


class Cluster:
    """Does the work of stacks on a cluster; see `core.pipeline.evaluate.runner.Executor`.

    Args:
        address: See `nodes.Nodes`.
        job: What is asked for.
        every: The steps of all stacks.
        todo: The stacks whose results are not there yet.
        folder: Of the evaluation.
        kept: Times that were measured.
        receipts: What was spent; written by the cluster until it is left.
    """

    def __init__(
        self,
        address: str,
        job: Job,
        every: Graph,
        todo: Sequence[Route],
        *,
        folder: Folder,
        kept: Measurements,
        receipts: Receipts,
        tracker: Tracker[Status],
        watch: Watch,
        log: Log,
    ) -> None:
        self._job, self._every, self._todo = job, every, list(todo)
        self._folder, self._kept, self._receipts = folder, kept, receipts
        self._tracker, self._watch, self._log = tracker, watch, log
        self._nodes = nodes.Nodes(address)
        self._left = Graph(tuple(self._todo), every.depths)
        self._groups, self._group_of = _grouped(self._todo)
        self._labels = {step.key: f"{step.key}@{every.depths.get(step, 0)}" for step in every.steps}
        self._shuffle = np.random.default_rng(job.protocol.seed)
        self._built: dict[Step, Any] = {}
        self._running: dict[Any, tuple[dict[str, int], str]] = {}  # units and words of a task, by its result
        self._looked = 0.0

    def expects(self) -> dict[str, int]:
        """Return how many units of each kind of work there are."""
        return units(self._left, self._job.protocol)

    def __enter__(self) -> Self:
        self._tracker.begin("build", "start the cluster")
        self._nodes.join()
        self._receipts.close()
        try:
            self._open()
        except BaseException:
            self._leave()
            raise
        return self

    def _open(self) -> None:
        root = self._folder.path.parent
        order = Order(job=replace(self._job, setup=Batch()), every=self._every, artifacts=root / ARTIFACTS)
        journals = {SHARED: root / REPLIES, OWN: self._folder.journal}
        self._nodes.open(order, self._folder.receipts, journals, self._job.book, self._job.budget_usd)
        self._look()
        self._log.write("cluster", **self._nodes.size())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        self._nodes.leave(list(self._running))
        self._receipts.resume()

    def round(self, number: int, *, last: bool) -> Generator[Made]:
        """Measure all stacks in a round; in the last yield their results as they finish."""
        repeats = tuple(range(1, self._job.protocol.repeats + 1))
        turns = [(each,) for each in repeats] if self._job.protocol.shuffled and repeats else [repeats]
        for step in self._left.builds:
            self._begin_build(step)
        for turn in turns:
            final, routes, asked = last and turn is turns[-1], self._todo, set[int]()
            if self._job.protocol.shuffled:
                routes = [routes[place] for place in self._shuffle.permutation(len(routes))]
            for route in routes:
                self._begin_asking(route, number, turn, asked, final=final)
            if final:
                for group in self._groups:
                    group.answers = None  # Ray lets go of what no task waits for
        yield from self._finished()

    def _finished(self) -> Iterator[Made]:
        """Take in what tasks bring, as they end."""
        while self._running:
            ready = self._nodes.ready(list(self._running)[:_AT_ONCE], _EVERY_S)
            self._look()
            self._watch.check()
            for ref in ready:
                done: Done = self._nodes.get(ref)
                counts, said = self._running.pop(ref)
                for kind, count in counts.items():
                    self._log.write(kind, step=said)
                    self._tracker.did(kind, count)
                for key, of, block in done.blocks:
                    self._kept.put(self._labels[key], name(of), block)
                if done.made is not None:
                    yield done.made

    def _begin_build(self, step: Step) -> None:
        if step not in self._built:
            share = self._job.resources["embed" if step.kind in ("vectors", "slice") else "index"]
            before = [self._built[each] for each in step.needs]
            self._built[step] = self._nodes.begin(nodes.build, share, 1, step.key, *before)
            self._running[self._built[step]] = ({"build": 1}, words(step))

    def _begin_asking(
        self, route: Route, number: int, turn: tuple[int, ...], asked: set[int], *, final: bool
    ) -> None:
        """Have the groups of a stack asked that no stack before it needed, and its results made."""
        places = list(dict.fromkeys(self._group_of[step] for step in route.steps))
        places.sort(key=lambda place: -self._groups[place].stacks)
        own = places[-1] if final and self._groups[places[-1]].stacks == 1 else None
        for place in places:
            if place not in asked:
                asked.add(place)
                inputs = places[:-1] if place == own else self._groups[place].needs
                self._begin(self._groups[place], number, turn, inputs, route if place == own else None)
        if final and own is None:
            self._begin(_Group(), number, (), places, route)

    def _begin(
        self, group: _Group, number: int, turn: tuple[int, ...], inputs: Sequence[int], route: Route | None
    ) -> None:
        first = group.answers is None
        piece = Piece(
            keys=tuple(step.key for step in group.steps),
            number=number,
            repeats=turn,
            known={(step.key, of): block for step in group.steps if first for of, block in self._known(step)},
            route=None if route is None else self._job.run_id(route),
            rounds=self._kept.rounds() if route is not None else {},
        )
        held = [self._groups[each].answers for each in inputs]
        held += [] if first else [group.answers]
        held += [self._built[each] for step in group.steps for each in step.needs if not each.asks]
        share = self._job.resources["query"]
        group.answers, done = self._nodes.begin(nodes.ask, share, 2, piece, *held)
        count = len(group.steps)
        counts = {"answer": count if first else 0, "measure": count * len(turn)}
        said = words(group.steps[-1]) if group.steps else ""
        self._running[done] = ({kind: units for kind, units in counts.items() if units}, said)

    def _known(self, step: Step) -> Iterator[tuple[Pass, Block]]:
        """What was measured of a step before."""
        protocol = self._job.protocol
        for number in range(1, protocol.rounds + 1):
            for repeat in range(1, protocol.repeats + 1):
                block = self._kept.get(self._labels[step.key], name((number, repeat)))
                if block is not None:
                    yield (number, repeat), block

    def _look(self) -> None:
        """Say how far the work is, a few times a second."""
        if time.monotonic() - self._looked < _EVERY_S:
            return
        self._looked = time.monotonic()
        within, lost = self._nodes.look(self._receipts)
        if lost:
            self._log.write("lost", nodes=lost)
        if within is not None:
            self._tracker.within(*within[1:], stage=within[0])
        else:
            self._tracker.tell()


def _grouped(routes: Sequence[Route]) -> tuple[list[_Group], dict[Step, int]]:
    """Steps by the stacks that need them, and the place of each step's group."""
    users: dict[Step, list[int]] = {}
    for number, route in enumerate(routes):
        for step in route.steps:
            users.setdefault(step, []).append(number)
    groups: dict[tuple[int, ...], list[Step]] = {}
    for step, by in users.items():
        groups.setdefault(tuple(by), []).append(step)
    of = {step: place for place, steps in enumerate(groups.values()) for step in steps}
    made = []
    for place, (stacks, steps) in enumerate(groups.items()):
        needs = {of[each] for step in steps for each in _taken(step)} - {place}
        made.append(_Group(steps, len(stacks), sorted(needs)))
    return made, of


def _taken(step: Step) -> Iterator[Step]:
    """What a step takes of the steps before it: their results, and the text that is asked."""
    yield from step.inputs
    if step.rewrite is not None and step.rewrite is not step:
        yield step.rewrite
