"""How much of a corpus a filter leaves, and its bin."""

from __future__ import annotations

import math

from core.arrays import Mask

DECADES = ("none", "below 0.01 %", "0.01–0.1 %", "0.1–1 %", "1–10 %", "10–100 %", "all")
"""Bins of selectivity, from no passage to every passage; a bin holds its upper end."""
_LOWEST = -4  # The power of ten below which all shares are one bin


def share_of(allowed: Mask) -> float:
    """Return the share of passages that a filter leaves, 0 to 1; NaN for an empty corpus."""
    return float(allowed.mean()) if allowed.size else math.nan


def decade(share: float) -> str:
    """Return the bin of a share of the corpus, one of `DECADES`."""
    if share <= 0:
        return DECADES[0]
    if share >= 1:
        return DECADES[-1]
    edges = [10.0**power for power in range(_LOWEST, 0)]
    return DECADES[1 + sum(share > edge for edge in edges)]
