"""Where rerankers run: here, which takes processor time, or at a vendor, by one HTTP attempt each."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.errors import ProviderError
from core.providers.base import Amount, Reply, carrying, joined, timed
from core.providers.config import ModelConfig
from core.providers.remote import Remote, Wiring
from core.providers.rerank.base import Reranker, Scores
from core.records import Basis


class LocalReranker(Reranker):
    """Times `score`; the processor time is that of the whole process, so nothing else should be at work."""

    @abstractmethod
    def score(self, query: str, passages: Sequence[str]) -> tuple[Scores, dict[str, Any]]:
        """Scores, and the details of the reply; see `Reranker.score_batch`."""

    def score_batch(self, query: str, passages: Sequence[str], *, extra: str = "") -> Reply[Scores]:  # noqa: ARG002
        """Score a batch, with the milliseconds of processor time that it took."""
        reply = timed(lambda: self.score(query, passages))
        scores, details = reply.value
        return carrying(reply, scores, details)

    def expected(self, query_tokens: float, passage_tokens: Sequence[float]) -> tuple[Amount, ...]:  # noqa: ARG002
        """Processor time, which is not known before it is measured."""
        return (Amount(self.item, "cpu_ms", None, Basis.MODELLED),)


class NoReranker(LocalReranker):
    """Keeps the order: the score of a passage is minus its place, counted from 0."""

    name = provider = "none"
    pointwise = False
    batch_items = 1_000_000

    def score(self, query: str, passages: Sequence[str]) -> tuple[Scores, dict[str, Any]]:  # noqa: ARG002
        """Minus the place."""
        return -np.arange(len(passages), dtype=np.float64), {}

    def score_batch(self, query: str, passages: Sequence[str], *, extra: str = "") -> Reply[Scores]:  # noqa: ARG002
        """Takes no time and uses nothing."""
        return Reply(self.score(query, passages)[0])

    def expected(self, query_tokens: float, passage_tokens: Sequence[float]) -> tuple[Amount, ...]:  # noqa: ARG002
        """Nothing."""
        return ()


_WORDS = re.compile(r"\w+")


def overlap(query: str, passage: str) -> float:
    """Share of the query's distinct words that the passage holds, 0 to 1; 0 for a query without words."""
    asked = set(_WORDS.findall(query.lower()))
    return len(asked & set(_WORDS.findall(passage.lower()))) / len(asked) if asked else 0.0


class FakeReranker(LocalReranker):
    """Scores a passage by the share of the query's words that it holds."""

    name = provider = "fake"

    def score(self, query: str, passages: Sequence[str]) -> tuple[Scores, dict[str, Any]]:
        """Scores 0 to 1."""
        return np.array([overlap(query, passage) for passage in passages], dtype=np.float64), {}


@dataclass(frozen=True, slots=True)
class Received:
    """What one answer of a vendor held."""

    places: Sequence[int]  # which passage each result belongs to, counted from 0
    scores: Sequence[float]  # the score of each result
    used: Sequence[Amount] | None  # what the vendor counted; None when it did not say


class RemoteReranker(Remote, Reranker):
    """A vendor's model."""

    usual_items = 1000
    usual_tokens: int | None = None

    def __init__(self, config: ModelConfig, wiring: Wiring) -> None:
        self._reach(config, wiring)
        self.journal, line = wiring.journal, self._line
        self.batch_items = config.batch_items or self.usual_items
        self.batch_tokens = line.within(config.batch_tokens or self.usual_tokens)
        self.concurrency = config.limits.concurrency

    @abstractmethod
    def send(self, query: str, passages: list[str]) -> Received:
        """One HTTP attempt; whatever it raises is judged by `core.providers.calls.failure`."""

    def too_much(self, passages: Sequence[str]) -> None:
        """Send fewer at once from here on, unless a vendor is there that knows what it takes."""
        if not self._line.place.known:
            self.batch_items = min(self.batch_items, max(1, len(passages) // 2))

    def score_batch(self, query: str, passages: Sequence[str], *, extra: str = "") -> Reply[Scores]:
        """Score a batch."""
        del extra
        return self._ask(query, list(passages))

    def _ask(self, query: str, passages: list[str]) -> Reply[Scores]:
        count, most = self._line.counter.count, self._line.counter.ceiling
        asked, lengths = count(query), [count(passage) for passage in passages]
        expected = self.expected(asked, lengths)
        reply = self._line.caller.call(
            lambda: self.send(query, passages),
            tokens=asked * len(passages) + sum(lengths),
            items=len(passages),
            expected=self.expected(most(query), [most(passage) for passage in passages]),
            usage=lambda received: expected if received.used is None else received.used,
            meter=self._line.wiring.meter,
            divisible=len(passages) > 1,
        )
        return self._complete(query, passages, reply)

    def _complete(self, query: str, passages: list[str], reply: Reply[Received]) -> Reply[Scores]:
        """Put scores in their places; passages that the vendor left out are asked again, and only they."""
        places = list(reply.value.places)
        known = len(set(places)) == len(places) and all(0 <= at < len(passages) for at in places)
        if not known or not places or len(reply.value.scores) != len(places):
            raise ProviderError(
                f"{len(places)} scores came for {len(passages)} passages.",
                kind="count",
                where=self._config.name,
                do="Try again; if it stays so, this service cannot be used for this.",
            )
        scores = np.full(len(passages), np.nan)
        scores[places] = np.asarray(reply.value.scores, dtype=np.float64)
        if len(places) == len(passages):
            return carrying(reply, scores)
        rest = sorted(set(range(len(passages))) - set(places))
        more = self._ask(query, [passages[at] for at in rest])
        scores[rest] = more.value
        return carrying(joined([carrying(reply, scores[places]), more]), scores)
