"""Which stacks a rule cannot tell from its best (jitter, ties), and which it prefers (metrics.md §9).

Rows within the jitter band of the best one's latency, of which the paired difference in quality from it may
be 0, are ties: the smaller prompt wins, then the lower cost, latency, then the better quality.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.decide.axes import QUALITY, Axis, Floats, floats
from core.decide.paired import Paired, printed_alike
from core.stats.latency import TOTAL

JITTER_MS = 75.0  # Differences under this are noise where nothing else is known (CLQ paper §3.2.2)
SHARE = 0.95  # Percentile of the differences between passes that is their jitter


def pass_differences(timings: pl.DataFrame) -> pl.DataFrame:
    """By how much the medians of two passes of the same stack differ.

    Args:
        timings: run_id, stage, query_id, repeat, ms, as `latency.per_repeat` returns them; only the
            totals are looked at. A query that a pass of its run lacks does not count.

    Returns:
        run_id, ms: the absolute difference of the p50 over queries, a row per pair of passes of a run; none
        for a run with one pass.
    """
    totals = timings.filter(pl.col("stage") == TOTAL)
    passes = totals.group_by("run_id").agg(pl.col("repeat").n_unique().alias("passes"))
    whole = totals.join(passes, on="run_id").filter(
        pl.col("repeat").n_unique().over("run_id", "query_id") == pl.col("passes")
    )
    medians = whole.group_by("run_id", "repeat").agg(pl.col("ms").median())
    return (
        medians.join(medians, on="run_id", suffix="_other")
        .filter(pl.col("repeat") < pl.col("repeat_other"))
        .select("run_id", (pl.col("ms") - pl.col("ms_other")).abs())
    )


def jitter(differences: pl.Series) -> float | None:
    """The 95th percentile of differences between passes; ms. None without any."""
    return differences.quantile(SHARE, interpolation="linear")


Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]

PROMPT = ("tokens_sent", "passages_sent", "candidates")
"""Columns that say how large a prompt is, the most telling first."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """The columns of a stack table as arrays [n]; NaN = unknown. Of merit, quality turned, more is better."""

    quality: Floats
    merit: Floats
    low: Floats
    high: Floats
    latency: Floats
    cost: Floats
    prompt: tuple[Floats, ...]
    band: Floats  # within which a latency is not told apart; ms
    places: Rows  # where the stacks stand in `paired`; −1 = not there
    paired: Paired | None  # quality per query; None = only averages are known

    @classmethod
    def of(
        cls, table: pl.DataFrame, among: tuple[Axis, ...], jitter_ms: float | None, paired: Paired | None
    ) -> Numbers:
        """Read them.

        Args:
            among: All axes, that of quality in its direction.
            jitter_ms: The band of all stacks; None = that of the table, or the paper's.
            paired: Quality per query, where it is known.
        """
        axis = next(axis for axis in among if axis.key == QUALITY.key)
        quality = axis.read(table)
        low, high, latency, cost = (
            floats(table, name) for name in ("quality_low", "quality_high", "latency_ms", "cost")
        )
        return cls(
            quality=quality,
            merit=axis.merit(quality),
            low=low,
            high=high,
            latency=latency,
            cost=cost,
            prompt=tuple(floats(table, name) for name in PROMPT),
            band=bands(table, jitter_ms),
            places=np.full(table.height, -1) if paired is None else paired.places(table["run_id"]),
            paired=paired,
        )


def bands(table: pl.DataFrame, jitter_ms: float | None) -> Floats:
    """Within which the latency of each stack is not told apart [n]; ms."""
    if jitter_ms is not None:
        return np.full(table.height, jitter_ms)
    known = floats(table, "jitter_ms")
    return np.where(np.isnan(known), JITTER_MS, known)


def tied(values: Numbers, rows: Rows) -> tuple[Rows, str]:
    """Order the rows that tie with the best."""
    best = int(rows[np.lexsort((values.cost[rows], values.latency[rows], -values.merit[rows]))[0]])
    # where no latency is known at all, none is asked for
    near = rows[within_jitter(values, rows, best) | np.isnan(values.latency[best])]
    found = near[_alike(values, near, best) | (near == best)]
    ordered = preferred(values, found)
    return ordered, _note(values, ordered, best)


def preferred(values: Numbers, rows: Rows) -> Rows:
    """Rows that tie, in order of preference."""
    return rows[np.lexsort([key for _, key in reversed(_keys(values, rows))])]


def within_jitter(values: Numbers, rows: Rows, of: int) -> Mask:
    """Which rows differ in latency from one by less than the noise of either."""
    gap = np.abs(values.latency[rows] - values.latency[of])
    return np.asarray((gap < np.maximum(values.band[rows], values.band[of])) | (gap == 0))


def _alike(values: Numbers, rows: Rows, best: int) -> Mask:
    """Which rows are alike in quality with the best."""
    bounds = float(values.low[best]), float(values.high[best])
    found = printed_alike(values.quality[rows], bounds, float(values.quality[best]))
    places = values.places[rows]
    if values.paired is not None and values.places[best] >= 0:
        there = places >= 0
        shift = np.zeros(len(values.paired.values))
        all_rows = values.places >= 0
        moved = values.quality[all_rows] - values.paired.means[values.places[all_rows]]
        shift[values.places[all_rows]] = np.where(np.abs(moved) > 1e-9, moved, 0.0)
        found[there] = values.paired.alike(int(values.places[best]), places[there], shift)
    return found


def _keys(values: Numbers, rows: Rows) -> list[tuple[str, Floats]]:
    """What is preferred among rows that tie, in words and as keys [m], less is better.

    A size of the prompt counts where it is known of all of them.
    """
    words = ("fewer tokens sent", "fewer passages sent", "fewer candidates")
    prompt = [(said, size[rows]) for said, size in zip(words, values.prompt, strict=True)]
    sent = [(said, size) for said, size in prompt[:-1] if not np.isnan(size).any()]
    return [
        *sent,
        prompt[-1],
        ("lower cost", values.cost[rows]),
        ("lower latency", values.latency[rows]),
        ("better quality", -values.merit[rows]),
    ]


def _note(values: Numbers, ordered: Rows, best: int) -> str:
    if len(ordered) < 2:
        return ""
    keys = _keys(values, ordered)
    by = next((words for words, key in keys if key[0] < key[1]), "table order")
    near = "" if np.isnan(values.latency[best]) else f"within {values.band[best]:.3g} ms and "
    return f"{len(ordered)} stacks tie with the best: {near}{_how(values, best)}. Chosen by {by}."


def _how(values: Numbers, best: int) -> str:
    if values.places[best] >= 0:
        return "not significantly worse query by query"
    known = not np.isnan(values.low[best])
    return "within its interval" if known else "of equal quality as printed (no interval known)"
