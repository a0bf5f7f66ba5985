"""Runs stacks over a collection and measures them.

Protocol: everything is built first. Then every stack answers every query once, unmeasured; this pass warms
the caches and gives the rankings. Then `repeats` measured rounds follow: in a round every stack, in an order
shuffled anew by `seed`, answers every query, one at a time, on one thread, with the garbage collector off.
Rounds spread the repeats of a stack over the whole session, so that a burst of load from elsewhere meets one
of its repeats and not all; the sample of a query is the median over its repeats.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import faiss
import numpy as np
import polars as pl

from core.errors import InputError
from core.pipeline import environment
from core.pipeline.emit import Measured, Session, batch
from core.pipeline.spec import check
from core.pipeline.workbench import Workbench
from core.records import Run, Sink, Stack, now

Progress = Callable[[int, int, str], None]
"""Called before every step, and once more at the end: steps done, steps in all, what is happening now."""

MIN_REPEATS = 3


def run_stacks(
    collection_id: str,
    passages: pl.DataFrame,
    queries: pl.DataFrame,
    stacks: Sequence[Stack],
    *,
    sink: Sink,
    repeats: int = MIN_REPEATS,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Run, ...]:
    """Run stacks and hand their records to the sink as one batch.

    Args:
        collection_id: The collection that passages and queries belong to.
        passages: Frame of `TABLES["passages"]`.
        queries: Frame of `TABLES["queries"]`.
        stacks: What to run; every stack searches at its own candidate depth.
        sink: Receives one `Batch` with runs, rankings (stage "final"; without a reranker it is the pool,
            too), timings in ms and usage in cpu_ms.
        repeats: Measured rounds, ≥ 3.
        seed: Shuffles the order of the stacks within the rounds.
        progress: Told about every step.

    Returns:
        The runs, in the order of the stacks.

    Raises:
        InputError: If there is nothing to run or to ask, a stack stands twice, or repeats < 3.
        UnknownNameError: If a stack names something that is not known.
    """
    _check_request(queries, stacks, repeats)
    steps = _Steps(step_count(len(stacks), repeats), progress)
    bench = Workbench(passages)
    started = now()
    load = [environment.load_average()]
    texts = queries["text"].to_list()
    with _one_thread():
        measured = []
        for stack in stacks:
            steps.next(f"build: {stack.label}")
            measured.append(Measured(stack, bench.retriever(stack.spec)))
        _warm_up(measured, texts, steps)
        with _collector_off():
            _measure(measured, texts, repeats, seed, steps)
    load.append(environment.load_average())
    session = Session(
        collection_id=collection_id,
        queries=queries,
        bench=bench,
        environment={**environment.describe(), "load_average": load},
        protocol={"warm_up": 1, "repeats": repeats, "threads": 1, "order": "rounds, shuffled"},
        seed=seed,
        started=started,
    )
    made = batch(session, measured)
    steps.next("store the results")
    sink(made)
    steps.next("finished")
    return made.runs


def step_count(stacks: int, repeats: int = MIN_REPEATS) -> int:
    """How many steps `run_stacks` reports: build, warm up and each repeat per stack, then storing."""
    return stacks * (2 + repeats) + 1


def _check_request(queries: pl.DataFrame, stacks: Sequence[Stack], repeats: int) -> None:
    if not stacks or queries.is_empty():
        raise InputError("There is nothing to run.", do="Give at least one stack and one query.")
    if repeats < MIN_REPEATS:
        raise InputError(f"repeats = {repeats}.", do=f"Latencies need at least {MIN_REPEATS} repeats.")
    if len({stack.stack_id for stack in stacks}) < len(stacks):
        raise InputError("A stack stands twice in the list.", do="Name every stack once.")
    for stack in stacks:
        check(stack.spec)


class _Steps:
    """Counts steps for the progress callback."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._done, self._total, self._progress = -1, total, progress

    def next(self, label: str) -> None:
        self._done += 1
        if self._progress:
            self._progress(self._done, self._total, label)


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


@contextmanager
def _collector_off() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _warm_up(measured: Sequence[Measured], texts: Sequence[str], steps: _Steps) -> None:
    for each in measured:
        steps.next(f"warm up: {each.stack.label}")
        depth = each.stack.spec["candidates"]
        each.hits = [each.retriever.answer(text, depth).hits for text in texts]


def _measure(
    measured: Sequence[Measured], texts: Sequence[str], repeats: int, seed: int, steps: _Steps
) -> None:
    shuffle = np.random.default_rng(seed)
    for repeat in range(repeats):
        for position in shuffle.permutation(len(measured)):
            each = measured[position]
            steps.next(f"measure {repeat + 1} of {repeats}: {each.stack.label}")
            _time_block(each, texts, repeat, repeats)


def _time_block(each: Measured, texts: Sequence[str], repeat: int, repeats: int) -> None:
    depth = each.stack.spec["candidates"]
    each.retriever.answer(texts[0], depth)  # the stack before this one left the caches cold
    for column, text in enumerate(texts):
        for stage, ns in each.retriever.answer(text, depth).stage_ns.items():
            if stage not in each.ns:
                each.ns[stage] = np.zeros((repeats, len(texts)), dtype=np.int64)
            each.ns[stage][repeat, column] = ns
