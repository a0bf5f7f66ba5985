"""Ray: starts or joins a cluster, has it do the steps of an evaluation, and takes in what comes back.

Ray runs the tasks of a machine that was lost once more on another. What it holds between tasks are answers of
steps; what must survive it (indexes, paid replies, receipts, times) lies in the folder of evaluations.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import numpy as np

from core.errors import ClqError
from core.extras import needed
from core.jobs import Tracker, Watch
from core.pipeline.evaluate.budget import Receipts
from core.pipeline.evaluate.cluster.desk import Desk
from core.pipeline.evaluate.cluster.link import Link
from core.pipeline.evaluate.cluster.tasks import OWN, SHARED, Answers, Done, Order, Piece, Worker
from core.pipeline.evaluate.folder import ARTIFACTS, Folder, Log, Measurements, Status
from core.pipeline.evaluate.job import Job, Share
from core.pipeline.evaluate.measure import Pass, name, words
from core.pipeline.evaluate.results import Made
from core.pipeline.evaluate.runner import units
from core.pipeline.evaluate.steps import Graph, Route, Step
from core.pipeline.evaluate.turn import REPLIES
from core.records import Batch

LOCAL = "ray"
"""The address of a cluster that is started here, of this machine alone."""
_ATTEMPTS = 20
"""How often a task is begun again on another machine."""
_EVERY_S, _NODES_S, _LAST_S = 0.25, 1.0, 20.0
_AT_ONCE = 256
"""Tasks that are looked at together."""
_workers: dict[str, tuple[Worker, Link]] = {}
"""The worker of this process, by turn; there is one at most."""


def _worker(order: Sequence[Any], turn: str, desk: Any) -> tuple[Worker, Link]:
    import ray  # noqa: PLC0415 - an extra

    if turn not in _workers:
        _workers.clear()
        me = uuid4().hex

        def ask(method: str, *asked: Any) -> Any:
            with causes():
                return ray.get(desk.ask.remote(method, me, *asked))

        link = Link(ask, lambda method, *told: desk.tell.options(num_returns=0).remote(method, me, *told))
        _workers[turn] = Worker(ray.get(order[0]), link), link
    return _workers[turn]


@contextmanager
def _at_work(order: Sequence[Any], turn: str, desk: Any) -> Iterator[Worker]:
    import ray  # noqa: PLC0415 - an extra

    worker, link = _worker(order, turn, desk)
    here = ray.get_runtime_context()
    link.ask("begin", here.get_node_id(), here.get_task_id())
    try:
        yield worker
    finally:
        link.tell("end")


def _build(order: Sequence[Any], turn: str, desk: Any, key: str, *_built: object) -> Done:
    with _at_work(order, turn, desk) as worker:
        worker.build(key)
    return Done(())


def _ask(
    order: Sequence[Any],
    turn: str,
    desk: Any,
    piece: Piece,
    *inputs: Answers | Done,
) -> tuple[Answers, Done]:
    with _at_work(order, turn, desk) as worker:
        return worker.ask(piece, [each for each in inputs if isinstance(each, dict)])


@contextmanager
def causes() -> Iterator[None]:
    """Raise what a task raised, and say in words that the cluster is gone."""
    import ray.exceptions as lost  # noqa: PLC0415 - an extra

    try:
        yield
    except lost.RayTaskError as error:
        raise getattr(error, "cause", None) or error from None
    except lost.RayError as error:
        raise ClqError(
            f"The cluster cannot go on: {type(error).__name__}.",
            where="Ray",
            do="Everything so far is kept. Look after the cluster, and resume.",
        ) from error


@dataclass(slots=True)
class _Group:
    """Steps that the same stacks need, which one task asks."""

    steps: list[Step] = field(default_factory=list)
    stacks: int = 0  # how many need it
    needs: list[int] = field(default_factory=list)  # groups whose answers it takes; more stacks need those
    answers: Any = None  # where Ray holds the answers


class Cluster:
    """Does the work of stacks on a Ray cluster; this process alone writes (`core.pipeline.evaluate.runner`).

    Args:
        address: `LOCAL`, or where a cluster is: "ray://host:10001", "host:6379", "auto".
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
        self._address, self._job, self._every, self._todo = address, job, every, list(todo)
        self._folder, self._kept, self._tracker, self._watch, self._log = folder, kept, tracker, watch, log
        self._receipts = receipts
        self._ray = needed("ray", "requirements-ray.txt", "Ray")
        self._left = Graph(tuple(self._todo), every.depths)
        self._groups, self._group_of = _grouped(self._todo)
        self._built: dict[Step, Any] = {}
        self._running: dict[Any, tuple[dict[str, int], str]] = {}  # units and words of a task, by its result
        self._labels = {step: f"{step.key}@{every.depths.get(step, 0)}" for step in every.steps}
        self._by_key = {step.key: step for step in every.steps}
        self._looked = self._nodes_seen = 0.0
        self._alive: frozenset[str] = frozenset()
        self._shuffle = np.random.default_rng(job.protocol.seed)
        self._turn = uuid4().hex

    def expects(self) -> dict[str, int]:
        """Return how many units of each kind of work there are."""
        return units(self._left, self._job.protocol)

    def __enter__(self) -> Self:
        ray = self._ray
        self._tracker.begin("build", "start the cluster")
        self._joined = ray.is_initialized()
        if not self._joined:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            quiet = {"log_to_driver": False, "logging_level": "ERROR"}
            options = {"include_dashboard": False} if self._address == LOCAL else {}
            address = "local" if self._address == LOCAL else self._address
            try:
                ray.init(address, **quiet, **options)
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise ClqError(
                    f"No cluster answers at {self._address}: {error}.",
                    where="Ray",
                    do="Start it (ray start --head), or use --on ray.",
                ) from error
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        self._receipts.close()
        root = self._folder.path.parent
        journals = {SHARED: root / REPLIES, OWN: self._folder.journal}
        desk = ray.remote(num_cpus=0, max_restarts=0, scheduling_strategy=here)(Desk)
        self._desk = desk.remote(self._folder.receipts, journals, self._job.book, self._job.budget_usd)
        order = Order(
            turn=self._turn,
            job=replace(self._job, setup=Batch()),
            every=self._every,
            artifacts=root / ARTIFACTS,
        )
        self._order = [ray.put(order)]
        with causes():
            self._look()
        self._log.write("cluster", nodes=len(self._alive), cpus=ray.cluster_resources().get("CPU"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ray = self._ray
        with suppress(ray.exceptions.RayError):
            self._desk.stop.remote()
            ray.wait(list(self._running), num_returns=len(self._running) or 1, timeout=_LAST_S)
            for ref in self._running:
                ray.cancel(ref, force=True)
            ray.get(self._desk.close.remote())
            ray.kill(self._desk)
        self._receipts.resume()
        if not self._joined:
            ray.shutdown()

    def round(self, number: int, *, last: bool) -> Generator[Made]:
        """Measure all stacks in a round; in the last yield their results as they finish."""
        repeats = tuple(range(1, self._job.protocol.repeats + 1))
        turns = [(each,) for each in repeats] if self._job.protocol.shuffled and repeats else [repeats]
        for step in self._left.builds:
            self._begin_build(step)
        for turn in turns:
            final = last and turn is turns[-1]
            routes, asked = self._todo, set[int]()
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
            some = list(self._running)[:_AT_ONCE]
            with causes():
                ready, _ = self._ray.wait(some, num_returns=len(some), timeout=_EVERY_S)
                self._look()
            self._watch.check()
            for ref in ready:
                with causes():
                    done: Done = self._ray.get(ref)
                counts, said = self._running.pop(ref)
                for kind, count in counts.items():
                    self._log.write(kind, step=said)
                    self._tracker.did(kind, count)
                for key, of, block in done.blocks:
                    self._kept.put(self._labels[self._by_key[key]], name(of), block)
                if done.made is not None:
                    yield done.made

    def _begin_build(self, step: Step) -> None:
        if step in self._built:
            return
        share = self._job.resources["embed" if step.kind in ("vectors", "slice") else "index"]
        before = [self._built[each] for each in step.needs]
        task = self._task(_build, share)
        ref = task.remote(self._order, self._turn, self._desk, step.key, *before)
        self._built[step] = ref
        self._running[ref] = ({"build": 1}, words(step))

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
                self._begin(place, number, turn, inputs, route if place == own else None)
        if final and own is None:
            self._begin(None, number, (), places, route)

    def _begin(
        self,
        place: int | None,
        number: int,
        turn: tuple[int, ...],
        inputs: Sequence[int],
        route: Route | None,
    ) -> None:
        group = _Group() if place is None else self._groups[place]
        first = group.answers is None
        known = {(step.key, of): block for step in group.steps if first for of, block in self._known(step)}
        piece = Piece(
            keys=tuple(step.key for step in group.steps),
            number=number,
            repeats=turn,
            known=known,
            route=None if route is None else self._job.run_id(route),
            rounds=self._kept.rounds() if route is not None else {},
        )
        held = [self._groups[each].answers for each in inputs]
        held += [] if first else [group.answers]
        held += [self._built[each] for step in group.steps for each in step.needs if not each.asks]
        task = self._task(_ask, self._job.resources["query"], returns=2)
        answers, done = task.remote(self._order, self._turn, self._desk, piece, *held)
        count = len(group.steps)
        counts = {"answer": count if first else 0, "measure": count * len(turn)}
        said = words(group.steps[-1]) if group.steps else ""
        self._running[done] = ({kind: units for kind, units in counts.items() if units}, said)
        group.answers = answers

    def _known(self, step: Step) -> Iterator[tuple[Pass, Any]]:
        protocol = self._job.protocol
        for number in range(1, protocol.rounds + 1):
            for repeat in range(1, protocol.repeats + 1):
                block = self._kept.get(self._labels[step], name((number, repeat)))
                if block is not None:
                    yield (number, repeat), block

    def _task(self, work: Any, share: Share, returns: int = 1) -> Any:
        memory = {} if share.memory_gb is None else {"memory": share.memory_gb * 2**30}
        return self._ray.remote(
            num_cpus=share.cpus,
            num_gpus=share.gpus,
            max_retries=_ATTEMPTS,
            num_returns=returns,
            **memory,
        )(work)

    def _look(self) -> None:
        """Ask the desk how far the work is; tell it of machines that were lost."""
        moment = time.monotonic()
        if moment - self._looked >= _EVERY_S:
            self._looked = moment
            facts, within = self._ray.get(self._desk.told.remote())
            self._receipts.show(**facts)
            if within is not None:
                stage, *told = within
                self._tracker.within(*told, stage=stage)
            else:
                self._tracker.tell()
        if moment - self._nodes_seen >= _NODES_S:
            self._nodes_seen = moment
            alive = frozenset(node["NodeID"] for node in self._ray.nodes() if node["Alive"])
            lost = self._alive - alive
            if lost:
                self._log.write("lost", nodes=len(lost))
                self._ray.get(self._desk.lose.remote(sorted(lost)))
            self._alive = alive


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
