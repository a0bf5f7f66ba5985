"""Executes an evaluation: round by round, handing over the results of stacks as they finish.

Who builds, asks and measures is an `Executor`: `Here`, one stack after the other, or a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import timedelta
from types import TracebackType
from typing import Protocol as Shape
from typing import Self

from core.jobs import Tracker, Watch
from core.pipeline.environment import Collector, threads
from core.pipeline.evaluate.build import OPEN_BYTES, Builder
from core.pipeline.evaluate.folder import Log, Measurements, Status
from core.pipeline.evaluate.job import Protocol
from core.pipeline.evaluate.measure import Measurer, words
from core.pipeline.evaluate.results import Made, Outbox, Writer
from core.pipeline.evaluate.steps import Graph, Route, Step
from core.records import now


class Executor(Shape):
    """Does the work of the stacks whose results are not there yet, inside a `with` block."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def expects(self) -> Mapping[str, int]:
        """Return how many units of each kind of work there are."""

    def round(self, number: int, *, last: bool) -> Generator[Made]:
        """Measure all stacks in a round; in the last yield their results as they finish."""


@dataclass(kw_only=True)
class Runner:
    """One process's work on an evaluation."""

    protocol: Protocol
    executor: Executor
    outbox: Outbox
    kept: Measurements
    tracker: Tracker[Status]
    watch: Watch
    log: Log

    def run(self) -> None:
        """Do all of it; what has finished when it is stopped has been handed over."""
        self.tracker.expect(self.executor.expects())
        rounds = max(1, self.protocol.rounds)
        try:
            with self.executor as executor:
                for number in range(1, rounds + 1):
                    self._await(number)
                    with closing(executor.round(number, last=number == rounds)) as finished:
                        for run, frames in finished:
                            self.outbox.add(run, frames)
                    self.kept.end_round(number, now())
        finally:
            self.outbox.flush()

    def _await(self, number: int) -> None:
        """Wait until a round is due, unless it began before."""
        known = self.kept.rounds()
        if number not in known and number - 1 in known:
            ended = known[number - 1][1] or now()
            due = ended + timedelta(seconds=self.protocol.pause_s)
            while (left := (due - now()).total_seconds()) > 0:
                self.tracker.begin("wait", f"wait for round {number}, {due.astimezone():%H:%M}")
                self.watch.wait(min(left, 30.0))
        self.kept.begin_round(number, now())
        self.log.write("round", number=number)


@dataclass(kw_only=True)
class Here:
    """Does the work in this process, one step after the other, so that nothing disturbs what is measured."""

    protocol: Protocol
    every: Graph  # the steps of all stacks, those included whose results are there already
    todo: list[Route]  # those whose results are not
    builder: Builder
    measurer: Measurer
    writer: Writer
    tracker: Tracker[Status]
    check: Callable[[], None]  # raises if somebody asked to stop
    collector: Collector
    log: Callable[..., None]
    repeats: Sequence[int] = ()  # those that are measured now; empty = all
    built: set[Step] = field(default_factory=set)  # what need not be built

    def __post_init__(self) -> None:
        self._graph = Graph(tuple(self.todo), self.every.depths)
        self._measured: set[tuple[Step, int]] = set()
        self._quiet = ExitStack()

    def __enter__(self) -> Self:
        self._quiet.enter_context(threads(1))
        self._quiet.enter_context(self.collector)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._quiet.close()

    def expects(self) -> dict[str, int]:
        """Return how many units of each kind of work there are."""
        return units(self._graph, self.protocol)

    def round(self, number: int, *, last: bool) -> Generator[Made]:
        """Measure all stacks in a round; in the last yield their results as they finish."""
        for wave in self._waves():
            self.measurer.measure(self._new(wave, number), number, self.repeats)
            if last:
                yield from self._finish(wave)

    def _waves(self) -> Iterator[list[Route]]:
        """Stacks that are measured in turn with one another, everything they need built and answered."""
        wave: list[Route] = []
        for route in list(self.todo):
            for step in Graph((route,), self._graph.depths).builds:
                self._build(step)
            for step in route.steps:
                if step not in self.measurer.results.values:
                    self.log("answer", step=words(step))
                    self.measurer.answer(step)
            wave.append(route)
            if not self.protocol.shuffled or self.builder.open_bytes > OPEN_BYTES:
                yield wave
                wave = []
        if wave:
            yield wave

    def _new(self, wave: Sequence[Route], number: int) -> list[Step]:
        """The steps of stacks that were not measured in this round with stacks before them."""
        steps = [step for step in Graph(tuple(wave), {}).steps if (step, number) not in self._measured]
        self._measured.update((step, number) for step in steps)
        return steps

    def _finish(self, wave: Sequence[Route]) -> Iterator[Made]:
        """Yield the results of stacks, and let go of what no other stack needs."""
        for route in wave:
            yield self.writer.made(route)
            self.todo.remove(route)
        left = Graph(tuple(self.todo), {})
        wanted = set(left.steps)
        for step in set(self._graph.steps) - wanted:
            self.measurer.results.forget(step)
        answered = self.measurer.results.values
        self.builder.release({s for step in wanted if step not in answered for s in step.needs})

    def _build(self, step: Step) -> None:
        if step in self.built:
            return
        self.built.add(step)
        self.log("build", step=words(step))
        self.tracker.begin("build", f"build: {words(step)}")
        self.builder.build(step, self._within)
        self.tracker.end()

    def _within(self, done: int, whole: int, unit: str) -> None:
        self.check()
        self.collector.pause()
        self.tracker.within(done, whole, unit)


def units(left: Graph, protocol: Protocol) -> dict[str, int]:
    """Return how many units of each kind of work stacks are."""
    steps = len(left.steps)
    return {"build": len(left.builds), "answer": steps, "measure": steps * protocol.passes}
