"""Executes an evaluation: builds, asks, measures, and hands over the results of stacks as they finish."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from core.jobs import Tracker, Watch
from core.pipeline.environment import Collector, threads
from core.pipeline.evaluate.build import Builder
from core.pipeline.evaluate.folder import Log, Measurements, Status
from core.pipeline.evaluate.job import Job
from core.pipeline.evaluate.measure import Measurer, words
from core.pipeline.evaluate.results import Writer
from core.pipeline.evaluate.steps import Graph, Route, Step
from core.records import now

_OPEN_BYTES = 2 * 2**30
"""Stacks are measured in turn with others as long as their indexes need no more memory than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a runner works with."""

    graph: Graph  # the steps of all stacks, those included whose results are there already
    builder: Builder  # builds and opens indexes
    measurer: Measurer  # asks and measures
    writer: Writer  # makes records of results and hands them over
    kept: Measurements  # when rounds began
    tracker: Tracker[Status]  # told about units of work
    watch: Watch  # says when to stop
    collector: Collector  # collects garbage between measurements
    log: Log  # takes what happened


class Runner:
    """One process's work on an evaluation."""

    def __init__(self, job: Job, todo: Sequence[Route], parts: Parts) -> None:
        self._protocol, self._todo, self._parts = job.protocol, list(todo), parts
        self._graph = Graph(tuple(todo), parts.graph.depths)
        self._built: set[Step] = set()
        self._measured: set[tuple[Step, int]] = set()

    def run(self) -> None:
        """Do all of it; what has finished when it is stopped has been handed over."""
        passes = self._protocol.passes
        steps, builds = len(self._graph.steps), len(self._graph.builds)
        self._parts.tracker.expect({"build": builds, "answer": steps, "measure": steps * passes})
        rounds = max(1, self._protocol.rounds)
        try:
            with threads(1), self._parts.collector:
                for number in range(1, rounds + 1):
                    self._await(number)
                    for wave in self._waves():
                        self._parts.measurer.measure(self._new(wave, number), number)
                        if number == rounds:
                            self._finish(wave)
                    self._parts.kept.end_round(number, now())
        finally:
            self._parts.writer.flush()

    def _await(self, number: int) -> None:
        """Wait until a round is due, unless it began before."""
        known = self._parts.kept.rounds()
        if number not in known and number - 1 in known:
            ended = known[number - 1][1] or now()
            due = ended + timedelta(seconds=self._protocol.pause_s)
            while (left := (due - now()).total_seconds()) > 0:
                self._parts.tracker.begin("wait", f"wait for round {number}, {due.astimezone():%H:%M}")
                self._parts.watch.wait(min(left, 30.0))
        self._parts.kept.begin_round(number, now())
        self._parts.log.write("round", number=number)

    def _waves(self) -> Iterator[list[Route]]:
        """Stacks that are measured in turn with one another, everything they need built and answered."""
        wave: list[Route] = []
        for route in list(self._todo):
            for step in Graph((route,), self._graph.depths).builds:
                self._build(step)
            for step in route.steps:
                if step not in self._parts.measurer.results.values:
                    self._parts.log.write("answer", step=words(step))
                    self._parts.measurer.answer(step)
            wave.append(route)
            if not self._protocol.shuffled or self._parts.builder.open_bytes > _OPEN_BYTES:
                yield wave
                wave = []
        if wave:
            yield wave

    def _new(self, wave: Sequence[Route], number: int) -> list[Step]:
        """The steps of stacks that were not measured in this round with stacks before them."""
        steps = [step for step in Graph(tuple(wave), {}).steps if (step, number) not in self._measured]
        self._measured.update((step, number) for step in steps)
        return steps

    def _finish(self, wave: Sequence[Route]) -> None:
        """Hand over the results of stacks, and let go of what no other stack needs."""
        for route in wave:
            self._parts.writer.add(route)
            self._todo.remove(route)
        left = Graph(tuple(self._todo), {})
        wanted = set(left.steps)
        for step in set(self._graph.steps) - wanted:
            self._parts.measurer.results.forget(step)
        answered = self._parts.measurer.results.values
        self._parts.builder.release({s for step in wanted if step not in answered for s in step.needs})

    def _build(self, step: Step) -> None:
        if step in self._built:
            return
        self._built.add(step)
        self._parts.log.write("build", step=words(step))
        self._parts.tracker.begin("build", f"build: {words(step)}")
        self._parts.builder.build(step, self._within)
        self._parts.tracker.end()

    def _within(self, done: int, whole: int, unit: str) -> None:
        self._parts.watch.check()
        self._parts.collector.pause()
        self._parts.tracker.within(done, whole, unit)
