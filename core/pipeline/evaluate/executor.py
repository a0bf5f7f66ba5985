"""Where work runs: threads for what waits for a network, processes for what computes.

A cluster can take the place of this machine by another class with the same two methods.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor as Pool
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Executor(Protocol):
    """Runs the same work on many items; results come in the order of the items."""

    def waiting(self, work: Callable[[T], R], items: Sequence[T], workers: int) -> Iterator[R]:
        """Run work that mostly waits, at most `workers` at once; the work may share memory."""

    def computing(self, work: Callable[[T], R], items: Sequence[T], workers: int) -> Iterator[R]:
        """Run work that computes, at most `workers` at once; work and items are sent to where it runs."""


class ThisMachine:
    """Threads and processes of this machine; one worker is the caller itself."""

    def waiting(self, work: Callable[[T], R], items: Sequence[T], workers: int) -> Iterator[R]:
        """Run in threads; see `Executor`."""
        if workers <= 1 or len(items) <= 1:
            return map(work, items)
        return _all(ThreadPoolExecutor(min(workers, len(items))), work, items)

    def computing(self, work: Callable[[T], R], items: Sequence[T], workers: int) -> Iterator[R]:
        """Run in processes; see `Executor`."""
        if workers <= 1 or len(items) <= 1:
            return map(work, items)
        # A forked copy of a process with threads may hang in a lock that one of them held.
        context = multiprocessing.get_context("forkserver")
        return _all(ProcessPoolExecutor(min(workers, len(items)), mp_context=context), work, items)


def _all(pool: Pool, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """Results in order; after an error nothing more is begun."""
    try:
        yield from pool.map(work, items)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
