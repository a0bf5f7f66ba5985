"""Splits texts into batches, and runs the batches of a remote model side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from core.providers.embed.vectors import Vectors

T = TypeVar("T")


class Places:
    """Where the vectors of texts go: equal texts share one, blank ones have none.

    Args:
        texts: The texts, row by row.

    Attributes:
        blank: The rows of texts without content.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.blank: list[int] = []
        self._first: dict[str, int] = {}
        self._more: dict[str, list[int]] = {}
        for row, text in enumerate(texts):
            if not text or text.isspace():
                self.blank.append(row)
            elif self._first.setdefault(text, row) != row:
                self._more.setdefault(text, []).append(row)

    @property
    def texts(self) -> list[str]:
        """The distinct texts with content."""
        return list(self._first)

    def fill(self, vectors: Vectors, texts: Sequence[str], found: Vectors) -> int:
        """Put the vectors of texts [len(texts), dim] into all of their rows.

        Returns:
            How many rows that were.
        """
        vectors[[self._first[text] for text in texts]] = found
        again = [(at, row) for at, text in enumerate(texts) for row in self._more.get(text, ())]
        for at, row in again:
            vectors[row] = found[at]
        return len(texts) + len(again)


def batches(
    texts: Sequence[str], items: int, tokens: float | None, count: Callable[[str], int]
) -> Iterator[list[str]]:
    """Split texts so that no batch is beyond a limit.

    Texts of similar length share a batch: padded encoders then waste little.

    Args:
        texts: What to split.
        items: The most texts of a batch.
        tokens: The most tokens of a batch, or None; a text beyond it is a batch by itself.
        count: Tokens of a text; not called without a limit.
    """
    batch: list[str] = []
    size = 0
    for text in sorted(texts, key=len):
        cost = count(text) if tokens is not None else 0
        if batch and (len(batch) == items or (tokens is not None and size + cost > tokens)):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += cost
    if batch:
        yield batch


def side_by_side(
    work: Callable[[list[str]], T], given: Iterator[list[str]], workers: int, stop: Callable[[], None]
) -> Iterator[tuple[list[str], T]]:
    """Do work on batches in threads, and yield each with its result as it is done.

    Args:
        work: What to do.
        given: The batches; no more than twice `workers` are taken ahead.
        workers: How many threads; one works in the thread of the caller.
        stop: Called when one fails or the caller gives up, to wake those that wait for their turn.

    Raises:
        Exception: What the first failed batch raised; those under way are finished before it is raised.
    """
    if workers == 1:
        for batch in given:
            yield batch, work(batch)
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="embed") as pool:
        pending: dict[Future[T], list[str]] = {}
        try:
            for batch in given:
                pending[pool.submit(work, batch)] = batch
                if len(pending) >= 2 * workers:
                    yield from _finished(pending)
            while pending:
                yield from _finished(pending)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            stop()
            raise


def _finished(pending: dict[Future[T], list[str]]) -> Iterator[tuple[list[str], T]]:
    done, _ = wait(pending, return_when=FIRST_COMPLETED)
    for future in done:
        yield pending.pop(future), future.result()
