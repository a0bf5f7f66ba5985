"""Where concurrent work runs: threads of this machine for what waits for a network.

A cluster can take its place by another class with the same method. Work that computes has its own ways over
all cores: chunkers and analysers start processes, the encoders' runtime and faiss start threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Executor(Protocol):
    """Runs the same work on many items; results come in the order of the items."""

    def each(self, work: Callable[[T], R], items: Sequence[T], workers: int) -> Iterator[R]:
        """Run work that mostly waits, at most `workers` at once; after an error nothing more is begun."""


class ThisMachine:
    """Threads of this process; one worker is the caller itself."""

    def each(self, work: Callable[[T], R], items: Sequence[T], workers: int) -> Iterator[R]:
        """See `Executor`."""
        if workers <= 1 or len(items) <= 1:
            return map(work, items)
        return _side_by_side(work, items, min(workers, len(items)))


def _side_by_side(work: Callable[[T], R], items: Sequence[T], workers: int) -> Iterator[R]:
    pool = ThreadPoolExecutor(workers, thread_name_prefix="evaluate")
    try:
        yield from pool.map(work, items)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
