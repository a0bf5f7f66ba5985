"""Costs and gains of a deeper K: the line of reranker latency, each step's price, and quality per second."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from core.arrays import Floats, Mask
from core.decide.axes import QUALITY, Axis
from core.decide.ties import JITTER_MS
from core.errors import InputError, UnknownNameError

RELATIVE_TOLERANCE = 0.10
"""Share of the fitted latency by which a figure may leave the line, if that is more than the jitter."""
MIN_DEPTHS = 3  # Different depths needed to detect departures from the line: two are always on one

REQUIRED = ("series", "run_id", "candidates", "quality", "latency_ms", "cost")
GAIN = ("gain_low", "gain_high")
"""Optional: interval of the gain in quality over the next smaller K of the series."""
NO_GAIN, MAY_BE_CHANCE = "no gain in quality", "the gain may be chance: its interval reaches 0"
"""Why a step does not pay."""
COMPONENTS = (("N-Recall4+", 10), ("RA-nWG", 10), ("N-Recall4+", 30), ("RA-nWG", 30))
"""The measures and cutoffs whose mean is the paper's average performance."""


@dataclass(frozen=True, slots=True)
class _Noise:
    """The tolerated distance from a line."""

    jitter_ms: float
    relative: float

    def left(self, took: Floats, expected: Floats) -> Mask:
        """Return which latencies are too far from the line's expectation."""
        return np.asarray(np.abs(took - expected) > np.maximum(self.jitter_ms, self.relative * expected))


@dataclass(frozen=True, slots=True, eq=False)
class LinearFit:
    """Latency = intercept + slope × K over the figures that fit the line."""

    slope: float | None  # ms per candidate; None if withheld
    intercept: float | None  # ms at K = 0; None if withheld
    expected: Floats  # the line at every figure [n]; ms, NaN if withheld
    departs: Mask  # which figures leave the line by more than the tolerance [n]
    # The smallest depth from which on every depth's median leaves it; None = no such depth
    breaks_at: int | None
    reason: str = ""  # why there is no line, in words; "" if there is one


def linear_fit(depths: ArrayLike, ms: ArrayLike, *, jitter_ms: float = JITTER_MS) -> LinearFit:
    """Fit the latency of one reranker against K and flag figures that leave the line."""
    at, took = np.asarray(depths, dtype=np.float64), np.asarray(ms, dtype=np.float64)
    if at.shape != took.shape or at.ndim != 1:
        raise InputError(f"{at.shape} depths and {took.shape} latencies do not belong together.")
    levels = np.unique(at)
    if len(levels) < MIN_DEPTHS:
        why = f"too few K for a line: {len(levels)}, at least {MIN_DEPTHS} needed"
        return LinearFit(None, None, np.full(at.shape, np.nan), np.zeros(at.shape, np.bool_), None, why)
    medians = np.array([np.median(took[at == level]) for level in levels])
    noise = _Noise(jitter_ms, RELATIVE_TOLERANCE)
    lines = [_least_squares(at, took), *_through(levels, medians)]
    on_line = _agreeing(at, took, lines, noise)
    slope, intercept = _least_squares(at[on_line], took[on_line])
    expected = intercept + slope * at
    departs = noise.left(took, expected)
    off = noise.left(medians, intercept + slope * levels)
    kept = np.flatnonzero(~off)
    first = int(kept[-1]) + 1 if len(kept) else 0
    breaks_at = int(levels[first]) if first < len(levels) else None
    return LinearFit(slope, intercept, expected, departs, breaks_at)


def _through(levels: Floats, medians: Floats) -> list[tuple[float, float]]:
    """Return slope and intercept of the lines through any two points."""
    lines = []
    for one, other in combinations(range(len(levels)), 2):
        slope = float((medians[other] - medians[one]) / (levels[other] - levels[one]))
        lines.append((slope, float(medians[one] - slope * levels[one])))
    return lines


def _agreeing(at: Floats, took: Floats, lines: list[tuple[float, float]], noise: _Noise) -> Mask:
    """Return the figures on the line that fits most of them; all of them if there is no line."""
    best: tuple[tuple[int, float, float], Mask] | None = None
    for slope, intercept in lines:
        if slope < 0 or intercept < 0:
            continue
        expected = intercept + slope * at
        on_line = ~noise.left(took, expected)
        away = float(np.abs(took - expected)[on_line].sum())
        rank = (-int(on_line.sum()), float(at[on_line].sum()), away)
        if len(np.unique(at[on_line])) > 1 and (best is None or rank < best[0]):
            best = rank, on_line
    return best[1] if best is not None else np.ones(at.shape, dtype=np.bool_)


def _least_squares(at: Floats, took: Floats) -> tuple[float, float]:
    """Return slope and intercept by least squares, neither below 0."""
    middle = at.mean()
    slope = float(((at - middle) * (took - took.mean())).sum() / ((at - middle) ** 2).sum())
    intercept = float(took.mean() - slope * middle)
    if slope < 0:
        return 0.0, float(took.mean())
    if intercept < 0:
        return float((at * took).sum() / (at**2).sum()), 0.0
    return slope, intercept


def reranker_scaling(table: pl.DataFrame, *, jitter_ms: float = JITTER_MS) -> pl.DataFrame:
    """Fit every reranker by embedder, all dimensions of an embedder together.

    A provider is recognised by its reranker's name, and the paper found that the dimension does not matter.

    Args:
        table: One row per stack: run_id, reranker, embedder (null = none), candidates, latency_ms (the
            reranker's alone). Rows without reranker, K or latency are left out.

    Returns:
        One row per stack: run_id, reranker, embedder, candidates, latency_ms, expected_ms, over_ms, departs,
        slope (ms per candidate), intercept (ms), breaks_at, reason; sorted by reranker, embedder and K.
    """
    ranked = pl.col("reranker").is_not_null() & (pl.col("reranker") != "none")
    known = pl.col("candidates").is_not_null() & pl.col("latency_ms").is_finite()
    columns = ("run_id", "reranker", "embedder", "candidates", "latency_ms")
    rows = table.filter(ranked & known).select(columns).sort("reranker", "embedder", "candidates", "run_id")
    groups = rows.partition_by("reranker", "embedder", maintain_order=True)
    parts = [_fitted(group, jitter_ms) for group in groups]
    return pl.concat(parts) if parts else _fitted(rows, jitter_ms)


def _fitted(group: pl.DataFrame, jitter_ms: float) -> pl.DataFrame:
    fit = linear_fit(group["candidates"], group["latency_ms"], jitter_ms=jitter_ms)
    return group.with_columns(
        pl.Series("expected_ms", fit.expected, dtype=pl.Float64).fill_nan(None),
        pl.Series("departs", fit.departs, dtype=pl.Boolean),
        pl.lit(fit.slope, pl.Float64).alias("slope"),
        pl.lit(fit.intercept, pl.Float64).alias("intercept"),
        pl.lit(fit.breaks_at, pl.Int64).alias("breaks_at"),
        pl.lit(fit.reason or None, pl.String).alias("reason"),
    ).with_columns((pl.col("latency_ms") - pl.col("expected_ms")).alias("over_ms"))


def marginal(table: pl.DataFrame, *, quality: Axis = QUALITY) -> pl.DataFrame:
    """Return steps between consecutive K of every stack, and where they no longer pay.

    Args:
        table: One row per stack with the columns `REQUIRED`: series names what stays the same while K grows;
            quality 0..1, latency_ms in ms, cost in $ per 1,000 queries, null = unknown. With `GAIN` if it
            is known. Rows without series, K or quality are left out.

    Returns:
        One row per step: series, run_id, from_k, to_k, d_quality (positive if it is better) with `GAIN`,
        d_ms, d_usd,
        per_100_ms and per_usd (null if the divisor is unknown or not above 0), pays, reason (why it does
        not pay, in words; null if it does).

    Raises:
        UnknownNameError: If a required column is missing.
    """
    for name in REQUIRED:
        if name not in table.columns:
            raise UnknownNameError("column", name, table.columns)
    bounds = [
        pl.col(name) if name in table.columns else pl.lit(None, pl.Float64).alias(name) for name in GAIN
    ]
    known = pl.all_horizontal(pl.col(name).is_not_null() for name in ("series", "candidates", "quality"))
    rows = table.filter(known).select(*REQUIRED, *bounds).sort("series", "candidates", "cost", "run_id")
    steps = (
        rows.unique(["series", "candidates"], keep="first", maintain_order=True)
        .with_columns(
            pl.col("candidates").shift(1).over("series").alias("from_k"),
            *(
                (pl.col(name) - pl.col(name).shift(1).over("series")).alias(step)
                for name, step in (("quality", "d_quality"), ("latency_ms", "d_ms"), ("cost", "d_usd"))
            ),
        )
        .with_columns(pl.col("d_quality") * (1 if quality.higher_is_better else -1))
    )
    return (
        steps.filter(pl.col("from_k").is_not_null())
        .with_columns(_rate("d_ms", 100).alias("per_100_ms"), _rate("d_usd", 1).alias("per_usd"))
        .with_columns(
            pl.when(pl.col("d_quality") <= 0)
            .then(pl.lit(NO_GAIN))
            .when(pl.col("gain_low") <= 0)
            .then(pl.lit(MAY_BE_CHANCE))
            .alias("reason")
        )
        .select(
            *("series", "run_id", "from_k"),
            pl.col("candidates").alias("to_k"),
            *("d_quality", *GAIN, "d_ms", "d_usd", "per_100_ms", "per_usd"),
            pl.col("reason").is_null().alias("pays"),
            "reason",
        )
    )


def _rate(of: str, unit: float) -> pl.Expr:
    return pl.when(pl.col(of) > 0).then(pl.col("d_quality") / pl.col(of) * unit)
