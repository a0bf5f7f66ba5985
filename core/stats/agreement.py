"""How alike two rankings are: which passages they share, and whether they order the shared ones alike.

overlap@K = |Top-K of one ∩ Top-K of the other| / the longer of the two lists, at most K.
Kendall's tau-b over the shared passages of the two Top-K (Kendall 1945, Biometrika 33). Ranks of one list
never tie, so tau-b = (concordant − discordant) / all pairs. Fewer than two shared passages have no order.
The two do not mix: a low overlap says nothing about the order, and the other way round.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

Floats = NDArray[np.float64]

AGREEMENT = pl.Schema(
    {
        "query_id": pl.String,
        "shared": pl.Int32,
        "overlap": pl.Float64,
        "tau": pl.Float64,
    }
)
"""Columns of `agreement`."""


def agreement(first: pl.DataFrame, second: pl.DataFrame, k: int) -> pl.DataFrame:
    """Compare the Top-K of two stacks, query by query.

    Args:
        first: Rankings with query_id, passage_id and rank (from 1) of one stack; a passage at most once a
            query.
        k: The cutoff, at least 1.

    Returns:
        `AGREEMENT`, one row per query that either ranks, by id: shared (passages in both Top-K), overlap
        (0..1; 0 where only one ranks the query) and tau (−1..1, null with fewer than two shared passages).
    """
    one, other = (
        each.filter(pl.col("rank") <= k).select("query_id", "passage_id", "rank") for each in (first, second)
    )
    sizes = (
        one.group_by("query_id")
        .agg(pl.len().alias("one"))
        .join(
            other.group_by("query_id").agg(pl.len().alias("other")), on="query_id", how="full", coalesce=True
        )
        .select("query_id", pl.max_horizontal("one", "other").alias("longer"))
    )
    both = one.join(other, on=["query_id", "passage_id"]).sort("query_id", "rank")
    ordered = both.group_by("query_id", maintain_order=True).agg(pl.col("rank_right"))
    made = ordered.select(
        "query_id",
        pl.col("rank_right").list.len().cast(pl.Int32).alias("shared"),
        pl.Series("tau", _taus(ordered["rank_right"].to_list(), k), dtype=pl.Float64).fill_nan(None),
    )
    return (
        sizes.join(made, on="query_id", how="left")
        .with_columns(pl.col("shared").fill_null(0))
        .with_columns((pl.col("shared") / pl.col("longer")).alias("overlap"))
        .select(pl.col(name).cast(dtype) for name, dtype in AGREEMENT.items())
        .sort("query_id")
    )


_BLOCK = 2_000_000  # pairs of ranks compared at a time


def _taus(lists: list[list[int]], k: int) -> Floats:
    """Tau of lists of ranks whose places are the other ranking's order; NaN for fewer than two."""
    widest = max((len(each) for each in lists), default=0)
    ranks = np.zeros((len(lists), widest), dtype=np.int32)
    for row, each in enumerate(lists):
        ranks[row, : len(each)] = each
    lengths = np.array([len(each) for each in lists], dtype=np.int64)
    swapped = np.zeros(len(lists), dtype=np.int64)
    step = max(1, _BLOCK // max(1, widest**2))
    after = np.triu(np.ones((widest, widest), dtype=np.bool_), 1)
    for start in range(0, len(lists), step):
        part = ranks[start : start + step]
        # An empty place holds 0 and stands last: it must not count as a smaller rank.
        later = np.where(part > 0, part, k + 1)
        swapped[start : start + step] = ((later[:, :, None] > later[:, None, :]) & after).sum(axis=(1, 2))
    pairs = lengths * (lengths - 1) // 2
    share = np.divide(swapped, pairs, out=np.full(len(lists), np.nan), where=pairs > 0)
    return np.asarray(1 - 2 * share)


def order_agreement(first: Floats, second: Floats) -> float:
    """Kendall's tau-b between two orders of the same stacks, ties included.

    Args:
        first: [S] scores; NaN = not scored, left out of both.
        second: [S] scores.

    Returns:
        −1..1; NaN with fewer than two stacks, or where one side cannot tell any two apart.
    """
    from scipy.stats import kendalltau  # noqa: PLC0415 - takes as long to import as a page to draw

    both = ~(np.isnan(first) | np.isnan(second))
    if both.sum() < 2:
        return float("nan")
    # Sums of the same weights in another order differ in the last digits: they are ties.
    return float(kendalltau(np.round(first[both], 12), np.round(second[both], 12), variant="b").statistic)
