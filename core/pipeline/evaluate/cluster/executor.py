"""Has a cluster run the steps of an evaluation and collects the results; this process alone writes.

What must survive the cluster (indexes, paid replies, receipts, times) lies in the folder of evaluations.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product, takewhile
from typing import Any, Self

import numpy as np

from core.pipeline.evaluate.artifacts import AWAY
from core.pipeline.evaluate.cluster import machines, nodes
from core.pipeline.evaluate.cluster.machines import OWN, SHARED, ClusterTask, NodeOrder
from core.pipeline.evaluate.folder import ARTIFACTS, Measurements, StepTimes
from core.pipeline.evaluate.job import Job
from core.pipeline.evaluate.local import units
from core.pipeline.evaluate.measure import name, words
from core.pipeline.evaluate.session import REPLIES, Session
from core.pipeline.evaluate.steps import Graph, Route, Step
from core.providers.calls import Keys
from core.records import Batch

_EVERY_S = 0.25
_AT_ONCE = 256
"""Number of tasks that are looked at together."""


_MOST = 32
"""Maximum stacks of a task: the most that a lost machine loses for each of its processors."""
_SHARES = 4
"""Each task takes one of this many shares of the work left for every slot, so that all end together."""


@dataclass(slots=True, eq=False)
class ExecutorPart:
    """A task's share: stacks with the steps that only they need, or steps that several tasks need."""

    steps: list[Step]
    routes: list[Route] = field(default_factory=list)
    needs: list[ExecutorPart] = field(
        default_factory=list
    )  # the tasks whose answers it takes, which come first
    answers: Any = None  # Ray's reference to its answers

    @property
    def counts(self) -> list[int]:
        """Number of steps that each stack is the first to need; one total if there are no stacks."""
        if not self.routes:
            return [len(self.steps)]
        left, counts = set(self.steps), []
        for route in self.routes:
            counts.append(len(left & set(route.steps)))
            left -= set(route.steps)
        return counts


def parts(routes: Sequence[Route], slots: int) -> list[ExecutorPart]:
    """Divide stacks among `slots` concurrent tasks, which depend on the tasks that make their inputs."""
    users: dict[Step, list[int]] = {}
    for number, route in enumerate(routes):
        for step in route.steps:
            users.setdefault(step, []).append(number)
    pieces = _divided(routes, users, slots)
    piece_of = {number: place for place, piece in enumerate(pieces) for number in piece}
    whole = [ExecutorPart([], [routes[number] for number in piece]) for piece in pieces]
    shared: dict[tuple[int, ...], ExecutorPart] = {}
    part_of: dict[Step, ExecutorPart] = {}
    for step, by in users.items():  # a step's inputs come before it
        places = {piece_of[number] for number in by}
        part = whole[places.pop()] if len(places) == 1 else shared.setdefault(tuple(by), ExecutorPart([]))
        part.steps.append(step)
        part_of[step] = part
    for part in (*whole, *shared.values()):
        taken = [step for route in part.routes for step in route.steps]
        needed = [part_of[step] for step in taken or [need for s in part.steps for need in _taken(s)]]
        part.needs = [need for need in dict.fromkeys(needed) if need is not part]
    return whole


def _divided(routes: Sequence[Route], users: dict[Step, list[int]], slots: int) -> list[list[int]]:
    """Return the positions of stacks, task by task; stacks that share much are together."""
    most = _size(len(routes), slots)
    first = {step: place for place, step in enumerate(users)}
    paths = [
        sorted((-len(users[step]), first[step]) for step in route.steps if len(users[step]) <= most)
        for route in routes
    ]
    order = sorted(range(len(routes)), key=lambda number: [place for _, place in paths[number]])
    pieces = []
    while order:
        size = _size(len(order), slots)
        common = {
            end: _common(paths[order[end - 1]], paths[order[end]])
            for end in range(-(-size // 2), min(size, len(order) - 1) + 1)
        }
        end = min(common, key=lambda end: (common[end], -end), default=len(order))
        pieces.append(order[:end])
        order = order[end:]
    return pieces


def _size(left: int, slots: int) -> int:
    return min(_MOST, max(1, left // (_SHARES * slots)))


def _common(one: Sequence[Any], other: Sequence[Any]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _taken(step: Step) -> Iterator[Step]:
    """Yield the steps whose results a step takes, and the one that makes its text."""
    yield from step.inputs
    if step.rewrite is not None and step.rewrite is not step:
        yield step.rewrite


@dataclass(slots=True)
class _Running:
    words: str
    counts: list[dict[str, int]]  # units of work by kind that each result stands for


class ClusterExecutor:
    """Does the work of stacks on a cluster, as `LocalExecutor` does it in one process.

    Until its block ends it writes the receipts of the session and holds its journals.
    """

    def __init__(
        self,
        address: str,
        job: Job,
        every: Graph,
        todo: Sequence[Route],
        *,
        session: Session,
        kept: Measurements,
    ) -> None:
        self._job, self._every, self._todo = job, every, list(todo)
        self._session, self._kept = session, kept
        self._tracker, self._log = session.tracker, session.log
        for journal in session.journals:
            journal.close()  # another process, perhaps on another machine, writes the files
        self._nodes = nodes.Nodes(address)
        self._left = Graph(tuple(self._todo), every.depths)
        self._parts: list[ExecutorPart] = []
        self._shuffle = np.random.default_rng(job.protocol.seed)
        self._built: dict[Step, Any] = {}
        self._running: dict[Any, _Running] = {}  # by Ray's reference to their results
        self._looked = 0.0

    def expects(self) -> dict[str, int]:
        """Return how many units of each kind of work there are."""
        return units(self._left, self._job.protocol)

    def __enter__(self) -> Self:
        self._tracker.begin("build", "start the cluster")
        self._nodes.join()
        self._session.receipts.close()
        try:
            self._open()
        except BaseException:
            self._leave()
            raise
        return self

    def _open(self) -> None:
        folder, job = self._session.folder, self._job
        root = folder.path.parent
        order = NodeOrder(
            job=replace(job, setup=Batch()),
            every=self._every,
            artifacts=root / ARTIFACTS,
            away=Keys().setting(AWAY),
        )
        journals = {SHARED: root / REPLIES, OWN: folder.journal}
        self._nodes.open(order, folder.receipts, journals, job.book, job.budget_usd)
        self._look()
        self._log.write("cluster", **self._nodes.size())
        self._parts = parts(self._todo, self._nodes.slots(job.resources["query"]))

    def __exit__(self, *args: object) -> None:
        self._leave()

    def _leave(self) -> None:
        self._nodes.leave(list(self._running))
        self._session.receipts.resume()

    def round(self, number: int, *, last: bool) -> Generator[Batch]:
        """Measure all stacks in a round; in the last one yield their results as they finish."""
        repeats = tuple(range(1, self._job.protocol.repeats + 1))
        passes = [(repeat,) for repeat in repeats] if self._job.protocol.shuffled and repeats else [repeats]
        for step in self._left.builds:
            self._begin_build(step)
        for some in passes:
            final, order, asked = last and some is passes[-1], self._parts, set[int]()
            if self._job.protocol.shuffled:
                order = [order[place] for place in self._shuffle.permutation(len(order))]
            for part in order:
                self._begin_asking(part, number, some, asked, final=final)
            if final:
                self._parts = []  # Ray drops what no task waits for
        yield from self._finished()

    def _finished(self) -> Iterator[Batch]:
        while self._running:
            for ref, done in self._nodes.brought(list(self._running)[:_AT_ONCE], _EVERY_S):
                if done is None:
                    del self._running[ref]
                    continue
                task = self._running[ref]
                for kind, count in task.counts.pop(0).items():
                    self._log.write(kind, step=task.words)
                    self._tracker.did(kind, count)
                for (label, of), block in done.blocks.items():
                    self._kept.put(label, of, block)
                if done.made is not None:
                    yield done.made
            self._look()
            self._session.watch.check()

    def _begin_build(self, step: Step) -> None:
        if step not in self._built:
            share = self._job.resources["embed" if step.kind in ("vectors", "slice") else "index"]
            before = [self._built[need] for need in step.needs]
            self._built[step] = self._nodes.begin(machines.build, share, step.key, *before)
            self._running[self._built[step]] = _Running(words(step), [{"build": 1}])

    def _begin_asking(
        self, part: ExecutorPart, number: int, repeats: tuple[int, ...], asked: set[int], *, final: bool
    ) -> None:
        """Start asking what a part needs, unless it was begun in these repeats, and then the part itself."""
        for need in part.needs:
            if id(need) not in asked:
                asked.add(id(need))
                self._begin_asking(need, number, repeats, asked, final=False)
        first = part.answers is None
        task = ClusterTask(
            keys=tuple(step.key for step in part.steps),
            stacks=tuple(self._job.run_id(route) for route in part.routes),
            number=number,
            repeats=repeats,
            known=dict(self._known(part.steps)) if first else {},
            rounds=self._kept.rounds() if final else {},
        )
        held = [need.answers for need in part.needs]
        held += [] if first else [part.answers]
        held += [self._built[need] for step in part.steps for need in step.needs if not need.asks]
        share = self._job.resources["query"]
        if final:
            done = self._nodes.begin(machines.finish, share, task, *held)
        else:
            part.answers, done = self._nodes.begin(machines.ask, share, task, *held)
        counts = part.counts if final else [len(part.steps)]
        units = [{"answer": count if first else 0, "measure": count * len(repeats)} for count in counts]
        said = words((part.routes[-1].steps if part.routes else part.steps)[-1])
        self._running[done] = _Running(said, [{kind: n for kind, n in unit.items() if n} for unit in units])

    def _known(self, steps: Sequence[Step]) -> Iterator[tuple[tuple[str, str], StepTimes]]:
        rounds, repeats = self._job.protocol.rounds, self._job.protocol.repeats
        passes = [name(of) for of in product(range(1, rounds + 1), range(1, repeats + 1))]
        for label, of in product(map(self._every.label, steps), passes):
            block = self._kept.get(label, of)
            if block is not None:
                yield (label, of), block

    def _look(self) -> None:
        """Report progress, a few times a second."""
        if time.monotonic() - self._looked < _EVERY_S:
            return
        self._looked = time.monotonic()
        within, lost = self._nodes.look(self._session.receipts)
        if lost:
            self._log.write("lost", nodes=lost)
        if within is not None:
            self._tracker.within(*within[1:], stage=within[0])
        else:
            self._tracker.tell()
