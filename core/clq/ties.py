"""Which stacks a rule cannot tell from its best, and which of them it prefers (metrics.md §9).

Rows within the jitter band of the best one's latency and alike in quality are ties: the smaller prompt wins
(fewer candidates, then shorter chunks), then the lower cost, latency, then the better quality.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.clq.axes import QUALITY, Axis, Floats, floats

Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]
Alike = Callable[[int, Rows], Mask]
"""Of the best row and some rows: which of these are alike in quality with it."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """The columns of a stack table as arrays [n]; NaN = unknown. Of merit, quality turned, more is better."""

    quality: Floats
    merit: Floats
    low: Floats
    high: Floats
    latency: Floats
    cost: Floats
    candidates: Floats
    chunk_tokens: Floats

    @classmethod
    def of(cls, table: pl.DataFrame, among: tuple[Axis, ...]) -> Numbers:
        """Read them, with the direction of the quality among the axes."""
        axis = next(axis for axis in among if axis.key == QUALITY.key)
        quality = axis.read(table)
        names = ("quality_low", "quality_high", "latency_ms", "cost", "candidates", "chunk_tokens")
        return cls(quality, axis.merit(quality), *(floats(table, name) for name in names))


def tied(values: Numbers, rows: Rows, jitter_ms: float, alike: Alike) -> tuple[Rows, str]:
    """Order the rows that tie with the best.

    Args:
        values: Of the table.
        rows: Those to choose from; at least one.
        jitter_ms: Width of the band within which latencies are not told apart; ms.
        alike: Which of them are alike in quality with the best.

    Returns:
        The best row and those that tie with it, in order of preference, and in words how the tie was broken.
    """
    best = int(rows[np.lexsort((values.cost[rows], values.latency[rows], -values.merit[rows]))[0]])
    gap = np.abs(values.latency[rows] - values.latency[best])
    # where no latency is known at all, none is asked for
    near = within_jitter(gap, jitter_ms) | np.isnan(values.latency[best])
    found = rows[(near & alike(best, rows)) | (rows == best)]
    keys = (
        -values.merit[found],
        values.latency[found],
        values.cost[found],
        values.chunk_tokens[found],
        values.candidates[found],
    )
    ordered = found[np.lexsort(keys)]
    return ordered, _note(values, ordered, best, jitter_ms)


def within_interval(values: Numbers) -> Alike:
    """Alike are rows whose quality equals the best one's, or lies within its interval."""

    def alike(best: int, rows: Rows) -> Mask:
        quality = values.quality[rows]
        inside = (quality >= values.low[best]) & (quality <= values.high[best])
        return np.asarray((quality == values.quality[best]) | inside)

    return alike


def within_jitter(gap: Floats, jitter_ms: float) -> Mask:
    """Which differences of latency are no difference."""
    return np.asarray((gap < jitter_ms) | (gap == 0))


def _note(values: Numbers, ordered: Rows, best: int, jitter_ms: float) -> str:
    if len(ordered) < 2:
        return ""
    first, second = ordered[0], ordered[1]
    criteria = (
        ("fewer candidates", values.candidates),
        ("shorter chunks", values.chunk_tokens),
        ("lower cost", values.cost),
        ("lower latency", values.latency),
        ("better quality", -values.merit),
    )
    by = next((words for words, key in criteria if key[first] < key[second]), "table order")
    alike = (
        "within its interval" if not np.isnan(values.low[best]) else "of equal quality (no interval known)"
    )
    near = "" if np.isnan(values.latency[best]) else f"within {jitter_ms:g} ms and "
    return f"{len(ordered)} stacks tie with the best: {near}{alike}. Chosen by {by}."
