"""A smaller K from one run with a deeper one, without asking the reranker again.

A pointwise reranker scores a passage whatever stands beside it, so the order that it gives to the first K
passages of a pool is the deeper run's order of just these passages: the replay is exact. A listwise one reads
the pool as a whole and may order fewer passages differently.
"""

from __future__ import annotations

import polars as pl

from core.errors import InputError
from core.records import Basis

BY_CANDIDATE = ("input_tokens", "output_tokens", "cpu_ms", "gpu_ms")
"""Units that grow with the number of candidates."""


def replayed(final: pl.DataFrame, pool: pl.DataFrame, depth: int) -> pl.DataFrame:
    """The final ranking that a smaller candidate depth would have given.

    Args:
        final: query_id, rank, passage_id of the deep run's final ranking.
        pool: The same of its candidate pool, in the order of retrieval.
        depth: The smaller K, 1 or more.

    Returns:
        query_id, rank (from 1, at K = `depth`), passage_id, deep_rank (in the deep run), score (the
        reranker's, where `final` has it); sorted by query and rank.

    Raises:
        InputError: If the depth is below 1.
    """
    if depth < 1:
        raise InputError(f"A candidate depth of {depth} is not possible.", do="Give 1 or more.")
    offered = pool.filter(pl.col("rank") <= depth).select("query_id", "passage_id").unique()
    scores = [pl.col("score")] if "score" in final.columns else []
    return (
        final.join(offered, on=["query_id", "passage_id"], how="semi")
        .sort("query_id", "rank")
        .select(
            "query_id",
            pl.int_range(1, pl.len() + 1).over("query_id").alias("rank"),
            "passage_id",
            pl.col("rank").alias("deep_rank"),
            *scores,
        )
    )


def missing(final: pl.DataFrame, pool: pl.DataFrame) -> int:
    """How many passages of the pool have no place in the final ranking: cut off, discarded, or not kept."""
    return pool.join(final, on=["query_id", "passage_id"], how="anti").height


def replayed_ms(deep_ms: pl.Expr, depth: int, deep: int, line: tuple[float, float] | None) -> pl.Expr:
    """Latency of the reranker at a smaller K, modelled from the deep run's.

    Args:
        deep_ms: The reranker's ms of a query at the deep run's K.
        line: Slope (ms per candidate) and intercept (ms) of the reranker, see `decide.scaling`; None = in
            proportion to K.

    Returns:
        The query's own time, scaled as the line falls between the two K.
    """
    slope, intercept = line or (1.0, 0.0)
    whole = intercept + slope * deep
    return deep_ms * ((intercept + slope * depth) / whole if whole > 0 else 1.0)


def replayed_usage(usage: pl.DataFrame, depth: int, deep: int) -> pl.DataFrame:
    """What the deep run would have used at a smaller K: its reranker's share by candidates, modelled.

    Args:
        usage: Rows of the table "usage" of the deep run.

    Returns:
        The rows; tokens and machine time of the stage "rerank" in proportion to K, its search units rounded
        up to whole ones.
    """
    reranked = pl.col("stage") == "rerank"
    by_candidate = pl.col("unit").is_in(list(BY_CANDIDATE))
    units = (pl.col("amount") * (depth / deep)).ceil()
    amount = (
        pl.when(reranked & by_candidate)
        .then(pl.col("amount") * (depth / deep))
        .when(reranked & (pl.col("unit") == "search_units"))
        .then(units)
        .otherwise(pl.col("amount"))
    )
    basis = pl.when(reranked).then(pl.lit(str(Basis.MODELLED))).otherwise(pl.col("basis"))
    return usage.with_columns(amount.alias("amount"), basis.alias("basis"))
