"""Base of rerankers: a name, and one method that scores passages for a query."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError, ProviderError
from core.providers.base import TOO_MUCH, Amount, Model, Reply, joined
from core.providers.calls.journal import Journal, call_key, sending, text_hash
from core.providers.chat.ask import chars_per_second
from core.records import JsonMap

Scores = NDArray[np.float64]

_SUMMED = ("truncated", "repaired", "turns", "characters", "generation_ms")


@dataclass(frozen=True, slots=True)
class Reranked:
    """Passages in their new order."""

    # float64 [n], by position among the given passages; higher is better. −inf if the reranker
    # discards the passage by its own rule, NaN if it gave no usable score.
    scores: Scores
    # int64 [m ≤ n], positions, best first. Equal scores keep the given order unless the reranker has
    # a rule for ties; passages without a score come last, in the given order; discarded passages are
    # left out.
    order: NDArray[np.int64]

    @property
    def unscored(self) -> int:
        """How many passages have no usable score."""
        return int(np.isnan(self.scores).sum())

    @property
    def discarded(self) -> int:
        """How many passages the reranker left out."""
        return int(np.isneginf(self.scores).sum())


class Reranker(Model, ABC):
    """A model that scores passages for a query.

    A subclass sets the attributes and implements `score_batch`; splitting, the journal, order and checks are
    done here.
    """

    pointwise: bool = True  # Whether a passage's score does not depend on the passages beside it
    selective: bool = False  # Whether it may discard passages, or fail to score one; others must score all
    batch_items: int = 1000  # The most passages that `score_batch` is given at once
    batch_tokens: int | None = None  # The most tokens of these, counting the query with each, or None
    turns: int = 1  # How many successive calls a batch takes
    concurrency: int = 1  # How many batches of one query are in progress at once
    journal: Journal | None = None  # Where replies are stored and looked up, or None

    @abstractmethod
    def score_batch(self, query: str, passages: Sequence[str], *, extra: str = "") -> Reply[Scores]:
        """Score at most `batch_items` passages.

        Args:
            extra: Distinguishes calls that are to be repeated although nothing differs ("repeat 2").

        Returns:
            float64 [len(passages)], in their order; see `Reranked.scores`. `details` may hold "ties", a
            number per passage that orders equal scores (higher first), and counts such as "truncated".
        """

    @abstractmethod
    def expected(self, query_tokens: float, passage_tokens: Sequence[float]) -> tuple[Amount, ...]:
        """Return the estimated usage of reranking passages of these lengths, or () if nothing is paid."""

    def params(self) -> JsonMap:
        """Return what a score depends on besides the model's name and the texts, for the journal; JSON."""
        return {}

    def too_much(self, passages: Sequence[str]) -> None:
        """Record that these passages were too much for one call."""

    def rerank(self, query: str, passages: Sequence[str], *, extra: str = "") -> Reply[Reranked]:
        """Order passages for a query.

        Args:
            passages: Any number, in retrieval order, best first; a listwise reranker takes at most
                `batch_items`.

        Returns:
            The new order. For several calls, `ms` is the time that they take by themselves with `concurrency`
            of them in progress at once, in their order; all other time is in `waited_ms`. `fresh` is False as
            soon as one of them came from the journal. `details` hold "calls", "unscored", "discarded" and the
            sums of what the calls counted.

        Raises:
            InputError: If there are more passages, or more text, than a listwise reranker takes.
            ProviderError: If the vendor fails, or returns another number of scores, or scores that are not
                numbers.
        """
        if not passages:
            nothing = Reranked(np.zeros(0), np.zeros(0, dtype=np.int64))
            return Reply(nothing, attempts=0, fresh=False)
        batches = list(self._split(query, passages))
        start = time.monotonic()
        replies = self._all(query, batches, extra)
        wall_ms = (time.monotonic() - start) * 1000
        return self._merged(replies, wall_ms)

    def _split(self, query: str, passages: Sequence[str]) -> Iterator[Sequence[str]]:
        """Yield groups of successive passages within the limits.

        A passage that alone exceeds the limit forms its own group.
        """
        if not self.pointwise:
            self._require_room(query, passages)
            yield passages
            return
        asked = self.count_tokens(query) if self.batch_tokens is not None else 0
        first, size = 0, 0
        for at, passage in enumerate(passages):
            cost = asked + self.count_tokens(passage) if self.batch_tokens is not None else 0
            full = self.batch_tokens is not None and size + cost > self.batch_tokens
            if at > first and (at - first == self.batch_items or full):
                yield passages[first:at]
                first, size = at, 0
            size += cost
        yield passages[first:]

    def _require_room(self, query: str, passages: Sequence[str]) -> None:
        if len(passages) > self.batch_items:
            raise InputError(
                f"{self.name} was given {len(passages)} passages; it takes {self.batch_items} at once.",
                where="candidates",
                do=f"Lower candidates to {self.batch_items} or fewer for this reranker.",
            )
        if self.batch_tokens is None:
            return
        tokens = self.count_tokens(query) + sum(map(self.count_tokens, passages))
        if tokens > self.batch_tokens:
            raise InputError(
                f"{len(passages)} passages of together {tokens} tokens do not fit into one prompt of"
                f" {self.name}, which takes {self.batch_tokens}.",
                where="candidates",
                do="Lower candidates, use shorter chunks, or a model with a longer context.",
            )

    def _all(self, query: str, batches: Sequence[Sequence[str]], extra: str) -> list[Reply[Scores]]:
        if len(batches) == 1 or self.concurrency == 1:
            return [self._kept(query, batch, extra) for batch in batches]
        workers = min(self.concurrency, len(batches))
        with ThreadPoolExecutor(workers, thread_name_prefix="rerank") as pool:
            futures = [pool.submit(self._kept, query, batch, extra) for batch in batches]
            try:
                return [future.result() for future in futures]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.interrupt()
                raise

    def _kept(self, query: str, passages: Sequence[str], extra: str) -> Reply[Scores]:
        if self.journal is None:
            return self._in_parts(query, passages, extra)
        key = self._key(query, passages, extra)
        known = self.journal.get(key)
        if known is not None and known.value.shape == (len(passages),):
            return known
        reply = self._in_parts(query, passages, extra)
        self.journal.put(key, reply)
        return reply

    def _key(self, query: str, passages: Sequence[str], extra: str) -> str:
        hashes = [text_hash(text) for text in (query, *passages)]
        return call_key(self.provider, self.name, self.params(), hashes, extra)

    def _in_parts(self, query: str, passages: Sequence[str], extra: str) -> Reply[Scores]:
        """Score a batch; if it is too much at once, halve it, and store each part as it arrives."""
        try:
            with sending(self.journal, [self._key(query, passages, extra)]):
                return self._checked(query, passages, extra)
        except ProviderError as error:
            if error.kind not in TOO_MUCH or not self.pointwise or len(passages) == 1:
                raise
        self.too_much(passages)
        middle = len(passages) // 2
        halves = [self._kept(query, half, extra) for half in (passages[:middle], passages[middle:])]
        return joined(halves, np.concatenate([half.value for half in halves]))

    def _checked(self, query: str, passages: Sequence[str], extra: str) -> Reply[Scores]:
        reply = self.score_batch(query, passages, extra=extra)
        scores = reply.value
        if scores.shape != (len(passages),):
            raise ProviderError(
                f"Reranker {self.name} returned {scores.size} scores for {len(passages)} passages.",
                kind="count",
                where=self.name,
                do="Check the model's name, and that base_url is a service of this kind.",
            )
        allowed = np.isfinite(scores) | (self.selective & ~np.isposinf(scores))
        if not allowed.all():
            raise ProviderError(
                f"Reranker {self.name} returned scores that are not finite numbers.",
                kind="unreadable",
                where=self.name,
                do="Check the model's files, or the service behind base_url.",
            )
        return reply

    def _merged(self, replies: list[Reply[Scores]], wall_ms: float) -> Reply[Reranked]:
        scores = np.concatenate([reply.value for reply in replies])
        ties = [tie for reply in replies for tie in reply.details.get("ties", [0.0] * len(reply.value))]
        ranked = Reranked(scores, order_of(scores, ties))
        ms = makespan([reply.ms for reply in replies], self.concurrency)
        waited = sum(reply.waited_ms for reply in replies) if len(replies) == 1 else max(0.0, wall_ms - ms)
        details = _details([reply.details for reply in replies])
        details |= {"calls": len(replies), "unscored": ranked.unscored, "discarded": ranked.discarded}
        return replace(joined(replies, ranked, details), ms=ms, waited_ms=waited)


def makespan(lengths: Sequence[float], lanes: int) -> float:
    """Return how long tasks take if each starts, in order, on the lane that is free first."""
    free = [0.0] * lanes
    for length in lengths:
        lane = free.index(min(free))
        free[lane] += length
    return max(free)


def order_of(scores: Scores, given: Sequence[float]) -> NDArray[np.int64]:
    """Return the order of scores, breaking ties by a number per passage; see `Reranked.order`."""
    ties = np.asarray(given, dtype=np.float64)
    kept = np.flatnonzero(~np.isneginf(scores))
    missing = np.isnan(scores[kept])
    keys = (kept, -ties[kept], -np.where(missing, -np.inf, scores[kept]), missing)
    return kept[np.lexsort(keys)].astype(np.int64)


def _details(given: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up what the calls counted; take everything else from the first."""
    merged: dict[str, Any] = {}
    for details in given:
        for name, value in details.items():
            if name in _SUMMED:
                merged[name] = merged.get(name, 0) + value
            elif name != "ties":
                merged.setdefault(name, value)
    if "characters" in merged:
        merged["chars_per_second"] = chars_per_second(merged["characters"], merged.get("generation_ms", 0.0))
    return merged
