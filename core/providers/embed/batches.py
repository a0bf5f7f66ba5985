"""Splits texts into batches, finds how large they may be, and runs a remote model's batches in parallel.

It also cuts, scales, divides and merges arrays of vectors, and the replies that carry them.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

import numpy as np

from core.arrays import Vectors
from core.errors import InputError
from core.providers.base import Reply, scaled

T = TypeVar("T")
Room = tuple[int, float | None]  # The most texts and the most tokens of a call; None = no limit on tokens
FIRST_TOKENS = 1000.0  # Size of the first call to a private machine: seconds on a slow processor
QUICK_S, SLOW_S = 2.5, 10.0
"""Faster calls may grow, slower calls must shrink; time-outs begin at a minute."""


def unit_rows(vectors: Vectors) -> Vectors:
    """Scale every row [n, dim] to unit length; rows of zeros stay zeros, NaN stays NaN."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths != 0)
    return scaled


def require_dim(name: str, dim: int, allowed: Sequence[int]) -> None:
    """Refuse a dimension that a model lacks."""
    if dim not in allowed:
        shown = ", ".join(map(str, allowed))
        raise InputError(f"{name} has no {dim} dimensions.", where="dim", do=f"Choose one of {shown}.")


def shortened(vectors: Vectors, dim: int, *, scale: bool) -> Vectors:
    """Return the first `dim` numbers of every row [n, ≥ dim], scaled to unit length if requested."""
    cut = np.ascontiguousarray(vectors[:, :dim], dtype=np.float32)
    return unit_rows(cut) if scale else cut


def shares(reply: Reply[Vectors], weights: Sequence[float]) -> list[Reply[Vectors]]:
    """Split a batch's reply text by text; usage and time are divided in proportion to the weights."""
    whole = sum(weights)
    return [
        Reply(
            vector,
            tuple(scaled(amount, weight / whole) for amount in reply.usage),
            reply.ms * weight / whole,
            attempts=reply.attempts,
        )
        for vector, weight in zip(reply.value, weights, strict=True)
    ]


class BatchPlaces:
    """The rows of texts' vectors: equal texts share one vector, blank ones have none."""

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
        """The distinct texts that are not blank."""
        return list(self._first)

    def fill(self, vectors: Vectors, texts: Sequence[str], distinct: Vectors) -> int:
        """Put the vectors of texts [len(texts), dim] into all of their rows."""
        vectors[[self._first[text] for text in texts]] = distinct
        again = [(at, row) for at, text in enumerate(texts) for row in self._more.get(text, ())]
        for at, row in again:
            vectors[row] = distinct[at]
        return len(texts) + len(again)


class Sizes:
    """The size of calls to an unknown machine, learned from their speed; thread-safe.

    The size starts small, doubles while calls are quick, shrinks when they are slow, and never returns to a
    size that was too much.
    """

    def __init__(self, most: Room) -> None:
        self._items, self._most = most
        self._tokens = min(FIRST_TOKENS, self._most or FIRST_TOKENS)
        self._lock = threading.Lock()

    def room(self) -> Room:
        """Return the limits of the next call."""
        with self._lock:
            return self._items, self._tokens

    def took(self, tokens: float, seconds: float) -> None:
        """Learn that a call of this many tokens was answered after so many seconds."""
        with self._lock:
            if seconds > SLOW_S:
                self._tokens = min(self._tokens, max(1.0, tokens * QUICK_S / seconds))
            elif seconds < QUICK_S and 2 * tokens > self._tokens:  # a smaller call proves nothing
                self._tokens = min(2 * self._tokens, self._most or math.inf)

    def at_most(self, items: int, tokens: float) -> None:
        """Learn that more texts or tokens were refused as too large, or not answered in time."""
        with self._lock:
            self._items = min(self._items, max(1, items))
            self._most = min(self._most or math.inf, max(1.0, tokens))
            self._tokens = min(self._tokens, self._most)


def batches(
    texts: Sequence[str], room: Callable[[], Room], count: Callable[[str], int]
) -> Iterator[list[str]]:
    """Split texts so that no batch exceeds a limit.

    Texts of similar length share a batch, so that padded encoders waste little.
    """
    batch: list[str] = []
    size = 0
    items, tokens = room()
    for text in sorted(texts, key=len):
        cost = 0 if tokens is None else count(text)
        if batch and (len(batch) == items or (tokens is not None and size + cost > tokens)):
            yield batch
            items, tokens = room()
            batch, size, cost = [], 0, 0 if tokens is None else count(text)
        batch.append(text)
        size += cost
    if batch:
        yield batch


def side_by_side(
    work: Callable[[list[str]], T],
    given: Iterator[list[str]],
    workers: int,
    stop: Callable[[], None],
    *,
    ahead: int = 1,
) -> Iterator[tuple[list[str], T]]:
    """Process batches in threads, and yield each with its result as it is done."""
    if workers == 1:
        for batch in given:
            yield batch, work(batch)
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="embed") as pool:
        pending: dict[Future[T], list[str]] = {}
        try:
            for batch in given:
                pending[pool.submit(work, batch)] = batch
                if len(pending) >= ahead * workers:
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
