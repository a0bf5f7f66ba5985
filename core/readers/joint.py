"""Dollars per correct answer, by how many passages are sent (metrics.md §11)."""

from __future__ import annotations

import polars as pl

from core.answers import share
from core.errors import InputError
from core.readers.curves import POINT, points

BINARY = frozenset({"exact_match", "substring"})
"""Scorers whose mean is the share of correct answers at any threshold."""


def correct(scores: pl.DataFrame, scorer: str, threshold: float) -> pl.DataFrame:
    """Return the share of answers that are correct, that is, whose score reaches the threshold.

    Args:
        scores: Rows of "answer_scores".
        scorer: Whose scores are taken, the mean of all judges.
        threshold: A share of the scale, in (0, 1].

    Returns:
        As `core.readers.curves.points`, the values being shares 0..1. A mean that came without its answers is
        left out, unless its scorer is binary.

    Raises:
        InputError: If the threshold is not in (0, 1].
    """
    if not 0 < threshold <= 1:
        raise InputError(f"The threshold {threshold:g} is not in (0, 1].", do="Give a share of the scale.")
    rows = scores.filter(pl.col("scorer") == scorer)
    answers = rows.filter(pl.col("query_id").is_not_null()).with_columns(share())
    told = answers.filter(pl.col("value").is_not_null()).with_columns(
        (pl.col("value") >= threshold - 1e-9).cast(pl.Float64).alias("value"), pl.lit("0-1").alias("scale")
    )
    means = rows.filter(pl.col("query_id").is_null() & pl.lit(scorer in BINARY))
    made = points(pl.concat([told, means]), scorer)
    return made.with_columns(pl.col("value", "low", "high") / 100)


def per_correct(shares: pl.DataFrame, costs: pl.DataFrame) -> pl.DataFrame:
    """Divide the cost of a query by the share of correct answers.

    Args:
        shares: As from `correct`.
        costs: "usd" per query, and the columns of a point that it depends on, such as run_id and k.

    Returns:
        The shares with usd, usd_per_correct, usd_low and usd_high: the interval of the share, the cost
        being taken as known. Null where the cost is unknown or no answer is correct.
    """
    on = [name for name in costs.columns if name in POINT]
    priced = shares.join(costs.select(*on, "usd"), on=on, how="left", nulls_equal=True)
    divided = {"usd_per_correct": "value", "usd_low": "high", "usd_high": "low"}
    return priced.with_columns(
        pl.when(pl.col(by) > 0).then(pl.col("usd") / pl.col(by)).alias(name) for name, by in divided.items()
    )


def cheapest_k(rows: pl.DataFrame) -> int | None:
    """Return the k of one curve where a correct answer costs least, the smallest on ties; None if unknown."""
    known = rows.filter(pl.col("usd_per_correct").is_not_null()).sort("usd_per_correct", "k")
    return int(known["k"][0]) if known.height else None


def k_for(rows: pl.DataFrame, target: float, column: str = "value") -> int | None:
    """Return the smallest k of one curve whose value reaches the target; None where none does."""
    met = rows.filter(pl.col(column) >= target - 1e-9)["k"].min()
    return met if isinstance(met, int) else None
