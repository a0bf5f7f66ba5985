"""A deterministic reranker without a model, for tests and for trying the product; never for results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from core.providers.rerank.base import Scores
from core.providers.rerank.local import LocalReranker

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
