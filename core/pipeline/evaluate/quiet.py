"""Conditions under which time is measured."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

import faiss


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let faiss work on so many threads; with one it searches as a server under load would."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


class Collector:
    """Collects garbage only when told to, while the block runs: else it would hit a few queries at random.

    Args:
        every_s: Least seconds between two collections.
        clock: Monotonic seconds.
    """

    def __init__(self, every_s: float = 5.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s, self._clock = every_s, clock
        self._last, self._was_on = 0.0, True

    def __enter__(self) -> Collector:
        self._was_on = gc.isenabled()
        gc.collect()
        gc.disable()
        self._last = self._clock()
        return self

    def pause(self) -> None:
        """Nothing is being measured: collect if the last time is long ago."""
        if self._clock() - self._last >= self._every_s:
            gc.collect()
            self._last = self._clock()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._was_on:
            gc.enable()
