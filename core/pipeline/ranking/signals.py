"""How sure a ranking is of itself, by the scores of its pool: what a router may later decide by.

* top1: the best score.
* top_margin: best minus second best.
* score_gap: best minus the last of the pool.
* score_entropy: how evenly softmax(score / temperature) spreads over the pool, its entropy divided by the
  logarithm of the pool's size: 0 = one passage has everything, 1 = all are alike. Engines score on scales of
  their own, so the temperature is the standard deviation of the pool's scores unless another is given; the
  entropy then tells the shape of the scores and not their scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIGNALS = ("top1", "top_margin", "score_gap", "score_entropy")


def signals(
    scores: Sequence[float] | NDArray[np.floating[Any]], *, temperature: float | None = None
) -> dict[str, float | None]:
    """The signals of one query.

    Args:
        scores: [n], scores of its pool in any order, higher is better.
        temperature: Divides the scores before the softmax, > 0; None: their standard deviation.

    Returns:
        Every name of `SIGNALS`; None where a pool is too small to tell: all of an empty pool, and all but
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
        "score_entropy": _entropy(values, temperature),
    }


def _entropy(values: NDArray[np.float64], temperature: float | None) -> float:
    scale = float(values.std()) if temperature is None else temperature
    if values[0] == values[-1] or not scale:
        return 1.0
    with np.errstate(over="ignore"):  # a share of e^-inf is 0
        raised = np.exp((values - values[0]) / scale)
    shares = raised / raised.sum()
    inside = shares[shares > 0]
    return float(-(inside * np.log(inside)).sum() / np.log(len(values)))
