"""Fusion of rankings into one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.pipeline.hits import Hits, top_k


def reciprocal_rank_fusion(legs: Sequence[Hits], k: int, *, constant: int = 60, depth: int = 100) -> Hits:
    """Fuse rankings by the sum of 1 / (constant + rank) (Cormack, Clarke and Büttcher, SIGIR 2009).

    Args:
        legs: One or more rankings of the same corpus.
        k: How many passages to keep, ≥ 1.
        constant: Damping of the first ranks.
        depth: How much of each ranking takes part.

    Returns:
        At most k passages; equal scores in corpus order.
    """
    ranked = [leg.passages[:depth] for leg in legs]
    weights = np.concatenate([1.0 / (constant + 1.0 + np.arange(len(leg))) for leg in ranked])
    passages, positions = np.unique(np.concatenate(ranked), return_inverse=True)
    scores = np.zeros(len(passages))
    np.add.at(scores, positions, weights)
    return top_k(passages, scores, k)
