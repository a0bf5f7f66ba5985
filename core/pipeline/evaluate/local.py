"""Runs the steps of stacks in this process, round by round, and makes the results of finished stacks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Self

from core.jobs import Tracker
from core.pipeline.environment import Collector, threads
from core.pipeline.evaluate.artifacts import Artifacts
from core.pipeline.evaluate.asking import Asker
from core.pipeline.evaluate.build import OPEN_BYTES, Builder, Models
from core.pipeline.evaluate.folder import Measurements, Status
from core.pipeline.evaluate.job import Job, Protocol
from core.pipeline.evaluate.measure import Measurer, Signals, words
from core.pipeline.evaluate.results import RunRecorder
from core.pipeline.evaluate.steps import Graph, Route, Step
from core.records import Batch, JsonMap


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What steps need at run time, wherever they are run and measured."""

    artifacts: Artifacts
    models: Models
    kept: Measurements  # Times that were measured before
    tracker: Tracker[Status]
    stage: Callable[[str], None]  # Told which stage the following payments belong to
    check: Callable[[], None]  # Raises an error if somebody asked it to stop
    machine: JsonMap  # Describes the measuring machine, for manifests
    log: Callable[..., None] = lambda *_, **__: None


class LocalExecutor:
    """Runs one step after another, so that nothing disturbs the measurements.

    It knows the steps of all stacks, including finished ones; `take` changes which are to do between rounds.
    """

    def __init__(self, job: Job, every: Graph, todo: Sequence[Route], runtime: Runtime) -> None:
        self._protocol, self._every = job.protocol, every
        self._tracker, self._check, self._log = runtime.tracker, runtime.check, runtime.log
        self.collector = Collector()
        corpora = {corpus.hash: corpus for corpus in job.corpora.values()}
        self.builder = Builder(runtime.artifacts, runtime.models, corpora, runtime.stage)
        asker = Asker(every, self.builder, runtime.models, job.corpora, job.own, filters=job.filters)
        self.measurer = Measurer(
            job.queries["text"].to_list(),
            job.protocol,
            asker,
            kept=runtime.kept,
            tracker=runtime.tracker,
            check=runtime.check,
            stage=runtime.stage,
            pause=self.collector.pause,
            names=job.names,
        )
        results = self.measurer.results
        self._writer = RunRecorder(
            job,
            results,
            builder=self.builder,
            signals=Signals(every, results, self.builder.index, asker.scopes),
            machine=runtime.machine,
            kept=runtime.kept,
            own=asker.own,
        )
        self.built: set[Step] = set()
        self._quiet = ExitStack()
        self.take(todo)

    def take(self, todo: Sequence[Route], repeats: Sequence[int] = ()) -> None:
        """Switch to these stacks, measured in these repeats (() = all)."""
        self._todo, self._repeats = list(todo), repeats
        self._graph = Graph(tuple(todo), self._every.depths)
        self._measured: set[tuple[Step, int]] = set()

    def __enter__(self) -> Self:
        self._quiet.enter_context(threads(1))
        self._quiet.enter_context(self.collector)
        return self

    def __exit__(self, *args: object) -> None:
        self._quiet.close()

    def expects(self) -> dict[str, int]:
        """Return how many units of each kind of work there are."""
        return units(self._graph, self._protocol)

    def round(self, number: int, *, last: bool) -> Generator[Batch]:
        """Measure all stacks in a round; in the last one yield their results as they finish."""
        for wave in self._waves():
            steps = [step for step in Graph(tuple(wave), {}).steps if (step, number) not in self._measured]
            self._measured.update((step, number) for step in steps)
            self.measurer.measure(steps, number, self._repeats)
            if last:
                yield from self._finish(wave)

    def build(self, step: Step) -> None:
        """Build a step's result, unless that was done."""
        if step in self.built:
            return
        self.built.add(step)
        self._log("build", step=words(step))
        self._tracker.begin("build", f"build: {words(step)}")
        self.builder.build(step, self._within)
        self._tracker.end()

    def _waves(self) -> Iterator[list[Route]]:
        """Yield groups of stacks to measure in turn with one another, once all their needs are built."""
        wave: list[Route] = []
        for route in list(self._todo):
            for step in Graph((route,), self._graph.depths).builds:
                self.build(step)
            for step in route.steps:
                if step not in self.measurer.results:
                    self._log("answer", step=words(step))
                    self.measurer.answer(step)
            wave.append(route)
            if not self._protocol.shuffled or self.builder.open_bytes > OPEN_BYTES:
                yield wave
                wave = []
        if wave:
            yield wave

    def _finish(self, wave: Sequence[Route]) -> Iterator[Batch]:
        """Yield the results of stacks, and release what no other stack needs."""
        for route in wave:
            yield self._writer.made(route)
            self._todo.remove(route)
        wanted = set(Graph(tuple(self._todo), {}).steps)
        for step in set(self._graph.steps) - wanted:
            self.measurer.results.pop(step, None)
        answered = self.measurer.results
        self.builder.release({s for step in wanted if step not in answered for s in step.needs})

    def _within(self, done: int, whole: int, unit: str) -> None:
        self._check()
        self.collector.pause()
        self._tracker.within(done, whole, unit)


def units(left: Graph, protocol: Protocol) -> dict[str, int]:
    """Return the number of units of each kind of work in a graph."""
    steps = len(left.steps)
    return {"build": len(left.builds), "answer": steps, "measure": steps * protocol.passes}
