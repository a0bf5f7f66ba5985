"""How good a dynamic cut-off is: precision, recall and F1 of what it keeps (thesis on RAG methods, §7.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CutReport:
    """One value per query, float64 [..., queries].

    Attributes:
        precision: Share of the kept passages that are relevant; 0 where nothing is kept.
        recall: Share of the relevant passages that are kept; NaN where the query has none.
        f1: Their harmonic mean, 0 where both are 0; NaN where recall is.
        kept: How many passages are kept.
    """

    precision: Values
    recall: Values
    f1: Values
    kept: Values


def cut_report(
    kept: NDArray[np.integer[Any]],
    grades: NDArray[np.integer[Any]],
    relevant: NDArray[np.integer[Any]],
    *,
    threshold: int = 4,
) -> CutReport:
    """Score what was kept of rankings.

    Args:
        kept: [..., queries], how many passages each ranking keeps, 0 to depth.
        grades: [..., queries, depth], grade at each rank: 1..5 judged, 0 unjudged, -1 empty slot; leading
            axes may be left out where they are the same.
        relevant: [queries], how many passages of the golden set reach the threshold.
        threshold: Lowest grade that counts as relevant.
    """
    found = np.cumsum(grades >= threshold, axis=-1)
    found = np.broadcast_to(found, (*kept.shape, found.shape[-1]))
    at = np.maximum(kept, 1)[..., np.newaxis] - 1
    good = np.where(kept > 0, np.take_along_axis(found, at, axis=-1)[..., 0], 0)
    total = np.where(relevant > 0, relevant, np.nan)
    return CutReport(
        precision=good / np.maximum(kept, 1),
        recall=good / total,
        f1=2 * good / (kept + total),
        kept=kept.astype(np.float64),
    )
