"""Sparse retrieval: BM25 in the Lucene variant, by bm25s.

score(q, d) = Σ over t in q: ln(1 + (N − n + ½) / (n + ½)) · f / (f + k1·(1 − b + b·|d| / mean |d|)),
with f the count of t in d, n the passages that hold t, N all passages (Kamphuis et al., ECIR 2020). A term
that stands twice in the query counts twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import bm25s
import numpy as np

from core.errors import InputError
from core.pipeline.hits import Hits, top_k
from core.pipeline.text import Analyzer
from core.records import JsonMap


class Bm25Index:
    """A BM25 index over passages, built once and searched one query at a time.

    Args:
        texts: The passages; positions in it are what a search returns.
        k1: Saturation of the term count, > 0.
        b: Length normalisation, 0 to 1.
        analyzer: How text becomes terms; English by default.

    Attributes:
        parameters: What the index was built with, for the manifest.

    Raises:
        InputError: If no passage holds a term.
    """

    def __init__(
        self,
        texts: Sequence[str],
        *,
        k1: float = 1.5,
        b: float = 0.75,
        analyzer: Analyzer | None = None,
    ) -> None:
        self._analyzer = analyzer or Analyzer()
        terms = [self._analyzer.terms(text) for text in texts]
        if not any(terms):
            raise InputError("No passage holds a word that BM25 could index.", where="passages")
        # The numpy back end: no compilation pause, whether or not numba happens to be installed.
        self._index = bm25s.BM25(k1=k1, b=b, method="lucene", backend="numpy")
        self._index.index(terms, show_progress=False)
        self.parameters: JsonMap = {
            "variant": "lucene",
            "k1": k1,
            "b": b,
            "stemmer": self._analyzer.language,
            "stop_words": self._analyzer.language,
        }

    def search(self, text: str, k: int) -> Hits:
        """The best passages for a query.

        Args:
            text: The query as asked.
            k: How many passages at most, ≥ 1.

        Returns:
            At most k passages; those without any term of the query are left out.
        """
        terms = self._analyzer.terms(text)
        if not terms:
            return Hits(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64))
        scores = self._index.get_scores(terms)
        matching = np.flatnonzero(scores > 0)
        return top_k(matching, scores[matching], k)
