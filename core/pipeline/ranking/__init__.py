"""Hits of a search, the order of equal scores, and how sure a ranking is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SIGNALS = ("top1", "top_margin", "score_gap", "score_entropy")
"""How sure a ranking is, by the scores of its pool; a router may decide by these signals.

* top1: the best score.
* top_margin: best minus second best.
* score_gap: best minus the last of the pool.
* score_entropy: how evenly softmax(score / temperature) spreads over the pool, its entropy divided by the
  logarithm of the pool's size: 0 = one passage has everything, 1 = all are alike. Engines score on scales of
  their own, so the temperature is the standard deviation of the pool's scores unless another is given; the
  entropy then tells the shape of the scores and not their scale.
"""


class Hits(NamedTuple):
    """A ranking of passages by position in the corpus."""

    passages: NDArray[np.int64]  # int64 [n], positions in the corpus, best first, without repetition
    scores: NDArray[np.float64]  # float64 [n], descending; ties are in corpus order


def top_k(passages: NDArray[np.integer[Any]], scores: NDArray[np.floating[Any]], k: int) -> Hits:
    """Rank candidates by score and keep the best, equal scores in corpus order."""
    if len(scores) > k:
        # Everything that reaches the k-th best score stays in, so that a tie at the cut is decided below.
        threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
        kept = np.flatnonzero(scores >= threshold)
        passages, scores = passages[kept], scores[kept]
    order = np.argsort(-scores, kind="stable")[:k]
    return Hits(passages[order].astype(np.int64), scores[order].astype(np.float64))


def top_k_rows(passages: NDArray[np.integer[Any]], scores: NDArray[np.floating[Any]], k: int) -> list[Hits]:
    """Return `top_k` of many queries, most of whose rows are already in order."""
    ids, values = passages.astype(np.int64, copy=False), scores.astype(np.float64)
    if ids[:, -1].min() >= 0 and (values[:, 1:] < values[:, :-1]).all():
        return [Hits(row, scored) for row, scored in zip(ids[:, :k], values[:, :k], strict=True)]
    values[ids < 0] = -np.inf
    better = values[:, 1:] > values[:, :-1]
    before = (values[:, 1:] == values[:, :-1]) & (ids[:, 1:] < ids[:, :-1])
    for row in np.flatnonzero((better | before).any(axis=1)):
        order = np.lexsort((ids[row], -values[row]))
        ids[row], values[row] = ids[row][order], values[row][order]
    counts = np.minimum(np.count_nonzero(ids >= 0, axis=1), k).tolist()
    return [Hits(ids[row, :count], values[row, :count]) for row, count in enumerate(counts)]


def signals(scores: Sequence[float] | NDArray[np.floating[Any]]) -> dict[str, float | None]:
    """Return the signals of one query.

    Args:
        scores: [n], scores of its pool in any order, higher is better.

    Returns:
        Every name of `SIGNALS`; None if a pool is too small to tell: all of an empty pool, and all but
        top1 of a single passage.
    """
    values = np.sort(np.asarray(scores, dtype=np.float64))[::-1]
    if not len(values):
        return dict.fromkeys(SIGNALS)
    if len(values) == 1:
        return {**dict.fromkeys(SIGNALS), "top1": float(values[0])}
    return {
        "top1": float(values[0]),
        "top_margin": float(values[0] - values[1]),
        "score_gap": float(values[0] - values[-1]),
        "score_entropy": _entropy(values),
    }


def _entropy(values: NDArray[np.float64]) -> float:
    scale = float(values.std())
    if values[0] == values[-1] or not scale:
        return 1.0
    raised = np.exp((values - values[0]) / scale)
    shares = raised / raised.sum()
    inside = shares[shares > 0]
    return float(-(inside * np.log(inside)).sum() / np.log(len(values)))
