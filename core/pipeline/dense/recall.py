"""What an approximate index misses."""

from __future__ import annotations

import numpy as np

from core.pipeline.hits import Hits


def ann_recall(hits: Hits, exact_hits: Hits, k: int) -> float | None:
    """Recall@K of an approximate search against the exact one.

    Passages count by identity: of two with equal scores only the one that the exact search ranks is a match,
    since codes do not tell whether their scores are equal.

    Args:
        hits: What the approximate index found for a query.
        exact_hits: What the flat index found for it.
        k: Cutoff, ≥ 1.

    Returns:
        The share of the exact first K that is among the approximate first K, 0 to 1; None if the exact
        search found nothing.
    """
    wanted = exact_hits.passages[:k]
    if not len(wanted):
        return None
    return float(np.isin(wanted, hits.passages[:k]).mean())
