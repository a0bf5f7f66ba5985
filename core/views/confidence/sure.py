"""How sure a choice is, as a page shows it: chances, and what cannot be told apart from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.decide.joint import JointSample
from core.decide.rules import Decision
from core.stats.significance import Sample, interval, paired_rows, resampled, weights
from core.views import text
from core.views.decision.answer import limits, numbers
from core.views.decision.facts import CHANCES, Asked, status_rows, warnings
from core.views.workspace.scores import Floats

APART, ALIKE, SAME = "apart when paired", "cannot be told apart", "same score on every query"


@dataclass(frozen=True)
class Said:
    """The head of the page.

    Attributes:
        sentence: The chosen stack, its numbers, and how often it is the best.
        details: What it is that was resampled.
        warning: What else a reader must know.
    """

    sentence: str
    details: str
    warning: str


def share_rows(table: pl.DataFrame, decision: Decision, chances: pl.DataFrame) -> pl.DataFrame:
    """Every stack with its chances, the likeliest best first.

    Args:
        table: The stack table.
        decision: What was selected from it.
        chances: From `core.views.confidence.certainty.certainty` on the same rows.

    Returns:
        run_id, name, status, p_best, p_frontier, p_sla, p_feasible (0..1, null = unknown), quality with
        interval and n, latency_ms, cost, and unknown (why the chances are null).
    """
    statuses = status_rows(table, decision).select("run_id", "status")
    shares = chances.select("run_id", *CHANCES, pl.col("reason").alias("unknown"))
    return (
        table.join(shares, on="run_id", how="left", maintain_order="left")
        .join(statuses, on="run_id", how="left", maintain_order="left")
        .sort(
            ["p_best", "p_frontier", "quality"],
            descending=[True, True, decision.quality.higher_is_better],
            nulls_last=True,
            maintain_order=True,
        )
        .select(
            "run_id",
            "name",
            "status",
            *("p_best", "p_frontier", "p_sla", "p_feasible"),
            *("quality", "quality_low", "quality_high", "n", "latency_ms", "cost", "unknown"),
        )
    )


def alike(table: pl.DataFrame, decision: Decision, sample: JointSample | None, *, seed: int) -> pl.DataFrame:
    """The feasible stacks that the evidence does not order against the chosen one.

    A stack belongs to them if its latency lies within the jitter band of the chosen one's and its quality
    interval overlaps the chosen one's (metrics.md §9). Where both have results per query the difference is
    looked at as well, query by query.

    Args:
        table: The stack table.
        decision: What was selected from it.
        sample: Results per query in the order of the table; None where there are none.
        seed: Of the resampling.

    Returns:
        One row per such stack, the chosen one left out, the best first: row (of the table), run_id, name,
        quality with interval and n, latency_ms, gap_ms, d_quality with d_low and d_high (its 95 % interval,
        paired; null = unknown), reading.
    """
    rows = table.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
    empty = rows.clear()
    if decision.chosen is None:
        return _against(empty, 0, None, seed)
    best = table.row(decision.chosen, named=True)
    if best["quality_low"] is None or best["latency_ms"] is None:
        return _against(empty, decision.chosen, None, seed)
    gap = (pl.col("latency_ms") - best["latency_ms"]).abs()
    near = rows.filter(
        pl.Series(decision.feasible),
        pl.col("row") != decision.chosen,
        (gap < pl.Series(np.maximum(decision.band, decision.jitter_ms))) | (gap == 0),
        pl.col("quality_low") <= best["quality_high"],
        pl.col("quality_high") >= best["quality_low"],
    )
    near = near.sort("quality", "latency_ms", descending=[decision.quality.higher_is_better, False])
    return _against(
        near.with_columns((pl.col("latency_ms") - best["latency_ms"]).alias("gap_ms")),
        decision.chosen,
        sample,
        seed,
    )


def _against(rows: pl.DataFrame, chosen: int, sample: JointSample | None, seed: int) -> pl.DataFrame:
    """Add the paired difference to the chosen stack."""
    gain = low = high = np.full(rows.height, np.nan)
    same = np.zeros(rows.height, dtype=np.bool_)
    if sample is not None and rows.height:
        gain, low, high = _paired(sample.quality, rows["row"].to_list(), chosen, seed)
        same = _same(sample.quality[rows["row"].to_numpy()], sample.quality[chosen])
    reading = np.where(same, SAME, np.where((low > 0) | (high < 0), APART, ALIKE))
    if "gap_ms" not in rows.columns:
        rows = rows.with_columns(pl.lit(None, pl.Float64).alias("gap_ms"))
    return rows.select(
        "row",
        "run_id",
        "name",
        *("quality", "quality_low", "quality_high", "n", "latency_ms", "gap_ms"),
        pl.Series("d_quality", gain, dtype=pl.Float64).fill_nan(None),
        pl.Series("d_low", low, dtype=pl.Float64).fill_nan(None),
        pl.Series("d_high", high, dtype=pl.Float64).fill_nan(None),
        pl.Series("reading", reading.tolist(), dtype=pl.String),
    )


def _same(quality: Floats, chosen: Floats) -> NDArray[np.bool_]:
    """Which rows hold the same values, as far as there are any."""
    both = (quality == chosen) | (np.isnan(quality) & np.isnan(chosen))
    return np.asarray(both.all(axis=1) & ~np.isnan(chosen).all())


def _paired(quality: Floats, rows: list[int], chosen: int, seed: int) -> tuple[Floats, Floats, Floats]:
    one, other = paired_rows(Sample.means(quality), pl.Series(rows), pl.Series([chosen] * len(rows)))
    drawn = weights(quality.shape[1], seed=seed)
    gain = one.estimate() - other.estimate()
    low, high = interval(gain, resampled(one, drawn) - resampled(other, drawn))
    return gain, low, high


def said(
    table: pl.DataFrame, decision: Decision, asked: Asked, chances: pl.DataFrame, near: pl.DataFrame
) -> Said:
    """The head of the page.

    Args:
        table: The stack table.
        decision: What was selected from it.
        asked: Constraints, rule, measure and latency.
        chances: From `core.views.confidence.certainty.certainty`.
        near: From `alike`.
    """
    within = limits(decision.applied(asked.constraints), asked.latency)
    if decision.chosen is None:
        return Said(f"No stack{within} is left, so there is no choice to be sure of.", "", "")
    row = table.row(decision.chosen, named=True)
    head = f"{row['name']} is chosen{within}: {numbers(row, asked.quality)}."
    rows = table.join(chances, on="run_id", how="left", maintain_order="left")
    warning = " ".join(warnings(rows, decision, asked))
    share = rows["p_best"][decision.chosen]
    if share is None:
        reason = rows["reason"][decision.chosen]
        return Said(f"{head} How sure that is, is unknown.", f"Chances: {reason}.", warning)
    sure = f" It is the best in {text.percent(share)} of the resamples"
    feasible = rows["p_feasible"][decision.chosen]
    sure += f" and within the limits in {text.percent(feasible)}." if within else "."
    return Said(head + sure, _together(rows, near, share), warning)


def _together(rows: pl.DataFrame, near: pl.DataFrame, share: float) -> str:
    """What the chosen stack and those that it cannot be told apart from amount to."""
    if near.is_empty():
        return "Every other stack within the limits can be told apart from it, by latency or by quality."
    inside = rows.filter(pl.col("run_id").is_in(near["run_id"].to_list()))["p_best"].fill_null(0)
    both = share + float(np.sum(inside.to_numpy()))
    others = text.count(near.height, "stack")
    paired = near.filter(pl.col("reading") == APART).height
    words = (
        f"{others} cannot be told apart from it by latency and quality interval; it or one of them is the "
        f"best in {text.percent(min(both, 1.0))}."
    )
    return words + (f" Query by query, {paired} of them still differ from it." if paired else "")


def alike_words(near: pl.DataFrame, jitter_ms: float) -> str:
    """What the band shows, in words."""
    near_by = f"within {jitter_ms:.3g} ms of the chosen stack's latency"
    band = f"{near_by} and with a quality interval that overlaps its own"
    if near.is_empty():
        return f"No other stack is {band}."
    counts = {kind: near.filter(pl.col("reading") == kind).height for kind in (SAME, ALIKE, APART)}
    words = "; ".join(f"{number} {kind}" for kind, number in counts.items() if number)
    return f"{text.count(near.height, 'stack')} {band}. Query by query: {words}."
