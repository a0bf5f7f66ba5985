"""Rerankers that run here: what they use is processor time."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from core.providers.base import Amount, Reply, carrying, timed
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
