"""Rerankers by the words that query and passages share: BM25 and TF-IDF (thesis on RAG methods, §3.3.1).

A word's weight follows from the candidates alone: N given passages, of which n contain it. So a
score is comparable only within a call, and both rerankers get all candidates at once. Words are
runs of letters and digits in lower case, neither stemmed nor left out, in any language.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from core.providers.rerank.base import Scores
from core.providers.rerank.local import LocalReranker
from core.records import JsonMap

K1, B = 1.5, 0.75
_WORDS = re.compile(r"[^\W_]+")


class LexicalReranker(LocalReranker):
    """Counts the query's words in every passage, and the passages that contain them."""

    pointwise = False
    batch_items = 1_000_000

    def score(self, query: str, passages: Sequence[str]) -> tuple[Scores, dict[str, Any]]:
        """Sum the weights of the query's words, each as often as the query contains it."""
        asked = Counter(_WORDS.findall(query.lower()))
        bags = [Counter(_WORDS.findall(passage.lower())) for passage in passages]
        if not asked or not bags:
            return np.zeros(len(passages)), {}
        counts = np.array([[bag[word] for word in asked] for bag in bags], dtype=np.float64)
        lengths = np.array([bag.total() for bag in bags], dtype=np.float64)
        worth = self.worth(counts, lengths) * np.array(list(asked.values()))
        return np.asarray(worth.sum(axis=1)), {}

    @abstractmethod
    def worth(self, counts: Scores, lengths: Scores) -> Scores:
        """Compute what each word of the query adds to each passage.

        Args:
            counts: [passages, words].
            lengths: [passages], words in each.
        """


class Bm25Reranker(LexicalReranker):
    """BM25 with k1 = 1.5 and b = 0.75 (equation 3.1)."""

    provider = "bm25"

    def params(self) -> JsonMap:
        """Return the two constants."""
        return {"k1": K1, "b": B}

    def worth(self, counts: Scores, lengths: Scores) -> Scores:
        """Compute IDF·f(k1 + 1) / (f + k1(1 − b + b·length / mean length)).

        IDF = ln((N − n + ½) / (n + ½) + 1).
        """
        holders = (counts > 0).sum(axis=0)
        idf = np.log((len(counts) - holders + 0.5) / (holders + 0.5) + 1)
        longer = lengths / max(lengths.mean(), 1.0)
        return np.asarray(idf * counts * (K1 + 1) / (counts + K1 * (1 - B + B * longer[:, None])))


class TfIdfReranker(LexicalReranker):
    """TF-IDF (equation 3.2)."""

    provider = "tf-idf"

    def worth(self, counts: Scores, lengths: Scores) -> Scores:
        """Compute the word's share of the passage · ln(N / n)."""
        holders = np.maximum((counts > 0).sum(axis=0), 1)
        return np.asarray(counts / np.maximum(lengths, 1)[:, None] * np.log(len(counts) / holders))
