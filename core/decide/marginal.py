"""What a deeper K of the same stack buys, and the efficiency scalar (CLQ paper §3.3, §5.4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from core.decide.axes import QUALITY, Axis
from core.errors import InputError, UnknownNameError

REQUIRED = ("series", "run_id", "candidates", "quality", "latency_ms", "cost")
GAIN = ("gain_low", "gain_high")
"""Optional: interval of the gain in quality over the next smaller K of the series."""


def marginal(
    table: pl.DataFrame,
    *,
    least_per_100_ms: float | None = None,
    least_per_usd: float | None = None,
    quality: Axis = QUALITY,
) -> pl.DataFrame:
    """Steps between consecutive K of every stack, and where they no longer pay.

    Args:
        table: One row per stack with the columns `REQUIRED`: series names what stays the same while K grows;
            quality 0..1, latency_ms in ms, cost in $ per 1,000 queries, null = unknown. With `GAIN` where it
            is known. Rows without series, K or quality are left out.
        least_per_100_ms: Quality that 100 ms more must buy; None = anything above 0.
        least_per_usd: Quality that $1 per 1,000 queries more must buy; None = anything above 0.
        quality: The axis of quality, in its direction.

    Returns:
        One row per step: series, run_id, from_k, to_k, d_quality (positive where it is better), d_ms, d_usd,
        per_100_ms and per_usd (null
        where the divisor is unknown or not above 0), pays, reason (why it does not pay, in words; null where
        it does).

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
        .with_columns(_reason(least_per_100_ms, least_per_usd).alias("reason"))
        .select(
            "series",
            "run_id",
            "from_k",
            pl.col("candidates").alias("to_k"),
            "d_quality",
            "d_ms",
            "d_usd",
            "per_100_ms",
            "per_usd",
            pl.col("reason").is_null().alias("pays"),
            "reason",
        )
    )


def _rate(of: str, unit: float) -> pl.Expr:
    return pl.when(pl.col(of) > 0).then(pl.col("d_quality") / pl.col(of) * unit)


def _reason(least_per_100_ms: float | None, least_per_usd: float | None) -> pl.Expr:
    """The first reason why a step does not pay."""
    limits = [
        (pl.col("d_quality") <= 0, "no gain in quality"),
        (pl.col("gain_low") <= 0, "the gain may be chance: its interval reaches 0"),
    ]
    for least, rate, bought in (
        (least_per_100_ms, "per_100_ms", "100 ms"),
        (least_per_usd, "per_usd", "$1 / 1k"),
    ):
        if least is not None:
            limits.append((pl.col(rate) < least, f"less than {least:g} for {bought} more"))
    return pl.coalesce(pl.when(broken).then(pl.lit(words)) for broken, words in limits)


COMPONENTS = (("N-Recall4+", 10), ("RA-nWG", 10), ("N-Recall4+", 30), ("RA-nWG", 30))
"""The measures and cutoffs whose mean is the paper's average performance."""


def efficiency(quality: float | Sequence[float], latency_ms: float) -> float:
    """Average quality per second of latency.

    Args:
        quality: The four components of `COMPONENTS`, or their average; 0..1. NaN = unknown.
        latency_ms: Median reranker latency (or the whole path's, for the end-to-end variant); ms, above 0.

    Returns:
        Mean quality / latency in seconds; NaN if a component is unknown.

    Raises:
        InputError: If the latency is not above 0.
    """
    if latency_ms <= 0:
        raise InputError(f"A latency of {latency_ms} ms has no efficiency.", do="Give a latency above 0 ms.")
    return float(np.mean(quality)) / (latency_ms / 1000)
