"""What a search returns, and the one rule by which equal scores are ordered."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Hits(NamedTuple):
    """A ranking of passages by position in the corpus.

    Attributes:
        passages: int64 [n], positions in the corpus, best first, without repetition.
        scores: float64 [n], descending; equal scores stand in corpus order.
    """

    passages: NDArray[np.int64]
    scores: NDArray[np.float64]


def top_k(passages: NDArray[np.integer[Any]], scores: NDArray[np.floating[Any]], k: int) -> Hits:
    """Rank candidates by score and keep the best, equal scores in corpus order.

    Args:
        passages: [n] positions, ascending (this is what makes ties follow the corpus).
        scores: [n] scores of those passages.
        k: How many to keep, ≥ 1.

    Returns:
        At most k hits.
    """
    if len(scores) > k:
        # Everything that reaches the k-th best score stays in, so that a tie at the cut is decided below.
        threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
        kept = np.flatnonzero(scores >= threshold)
        passages, scores = passages[kept], scores[kept]
    order = np.argsort(-scores, kind="stable")[:k]
    return Hits(passages[order].astype(np.int64), scores[order].astype(np.float64))
