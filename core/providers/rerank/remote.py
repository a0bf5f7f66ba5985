"""Vendors' rerankers: their common base, and the HTTP request of each.

Sources, read in November 2026. docs.voyageai.com, "Rerankers" and "Rate limits" (basic tier): 1,000 passages
and 600,000 tokens a call (query tokens × passages + their tokens). The vendor cuts texts beyond the context
length without saying so.
docs.cohere.com, "Rerank" and the API reference: 1,000 passages a call, 4,096 tokens of each by default. Up to
the fourth generation a query with up to 100 passages is one search unit, a passage longer than 500 tokens
(query included) counting once per started 500; the fifth is billed by tokens. Cohere counts them itself: its
vocabularies are not available here.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.prices.calculator import TOKENS_PER_DOCUMENT, search_units
from core.providers.base import Amount, Reply, carrying, joined
from core.providers.config import ModelConfig
from core.providers.remote import Remote, Wired
from core.providers.rerank.base import Reranker, Scores
from core.records import Basis

_READ_TOKENS = 4096
_BY_TOKENS = "rerank-v5"


@dataclass(frozen=True, slots=True)
class ReceivedScores:
    """Contents of one answer of a vendor."""

    places: Sequence[int]  # which passage each result belongs to, counted from 0
    scores: Sequence[float]  # the score of each result
    used: Sequence[Amount] | None  # the vendor's count; None if it did not state one


class RemoteReranker(Remote, Reranker):
    """A vendor's model."""

    usual_items = 1000
    usual_tokens: int | None = None

    def __init__(self, config: ModelConfig, wired: Wired) -> None:
        self._reach(config, wired)
        self.journal, self.concurrency = wired.get("journal"), config.limits.concurrency
        self.batch_items = config.batch_items or self.usual_items
        self.batch_tokens = self._within(config.batch_tokens or self.usual_tokens)

    @abstractmethod
    def send(self, query: str, passages: list[str]) -> ReceivedScores:
        """Make one HTTP attempt; whatever it raises is judged by `core.providers.calls.failure`."""

    def too_much(self, passages: Sequence[str]) -> None:
        """Send fewer at once from now on, unless the service is a vendor's, which knows its limits."""
        if not self._place.known:
            self.batch_items = min(self.batch_items, max(1, len(passages) // 2))

    def score_batch(self, query: str, passages: Sequence[str], *, extra: str = "") -> Reply[Scores]:  # noqa: ARG002
        """Score a batch; ask again only for what the vendor leaves out."""
        count, most = self.counter.count, self.counter.ceiling
        asked, lengths = count(query), [count(passage) for passage in passages]
        expected = self.expected(asked, lengths)
        reply = self._caller.call(
            lambda: self.send(query, list(passages)),
            tokens=asked * len(passages) + sum(lengths),
            items=len(passages),
            expected=self.expected(most(query), [most(passage) for passage in passages]),
            usage=lambda received: expected if received.used is None else received.used,
            meter=self._meter,
            divisible=len(passages) > 1,
        )
        return self._complete(query, passages, reply)

    def _complete(self, query: str, passages: Sequence[str], reply: Reply[ReceivedScores]) -> Reply[Scores]:
        """Assign scores to passages; ask again only for those that the vendor left out."""
        places = list(reply.value.places)
        self._require_places(places, passages)
        scores = np.full(len(passages), np.nan)
        scores[places] = self._numbers(reply.value.scores, np.float64)
        if len(places) == len(passages):
            return carrying(reply, scores)
        rest = sorted(set(range(len(passages))) - set(places))
        more = self.score_batch(query, [passages[at] for at in rest])
        scores[rest] = more.value
        return joined([reply, more], scores)


class VoyageReranker(RemoteReranker):
    """One of Voyage's models; billed per token, the query's counted with every passage."""

    usual_tokens = 600_000

    def send(self, query: str, passages: list[str]) -> ReceivedScores:
        """Return one attempt."""
        answer = self.client.rerank(query, passages, model=self._config.model, truncation=True)
        tokens = answer.total_tokens
        used = None if tokens is None else [Amount(self.item, "input_tokens", float(tokens), Basis.MEASURED)]
        return ReceivedScores(
            [result.index for result in answer.results],
            [result.relevance_score for result in answer.results],
            used,
        )

    def expected(self, query_tokens: float, passage_tokens: Sequence[float]) -> tuple[Amount, ...]:
        """Return the billed tokens: query tokens × passages + their tokens."""
        tokens = query_tokens * len(passage_tokens) + sum(passage_tokens)
        return (Amount(self.item, "input_tokens", float(tokens), Basis.MODELLED),)


class CohereReranker(RemoteReranker):
    """One of Cohere's models, through the second version of its API."""

    def send(self, query: str, passages: list[str]) -> ReceivedScores:
        """Return one attempt."""
        answer = self.client.rerank(
            model=self._config.model, query=query, documents=passages, max_tokens_per_doc=_READ_TOKENS
        )
        billed = answer.meta.billed_units if answer.meta else None
        said = [(unit, getattr(billed, unit, None)) for unit in ("search_units", "input_tokens")]
        return ReceivedScores(
            [result.index for result in answer.results],
            [result.relevance_score for result in answer.results],
            [Amount(self.item, unit, float(n), Basis.MEASURED) for unit, n in said if n is not None] or None,
        )

    def expected(self, query_tokens: float, passage_tokens: Sequence[float]) -> tuple[Amount, ...]:
        """Return the search units, or tokens, of one query."""
        read = [min(query_tokens + tokens, _READ_TOKENS) for tokens in passage_tokens]
        if self._config.model.startswith(_BY_TOKENS):
            return (Amount(self.item, "input_tokens", float(sum(read)), Basis.MODELLED),)
        parts = sum(max(1, math.ceil(tokens / TOKENS_PER_DOCUMENT)) for tokens in read)
        return (Amount(self.item, "search_units", search_units(parts), Basis.MODELLED),)
