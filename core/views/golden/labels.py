"""The mix of grades in a golden set, query by query (CLQ paper: label heterogeneity)."""

from __future__ import annotations

import polars as pl

GRADES = (5, 4, 3, 2, 1)
GOOD = "4+5"
"""The row of `summary` for all that is good."""


def per_query(judgements: pl.DataFrame) -> pl.DataFrame:
    """How many passages of a query have which grade.

    Args:
        judgements: Frame of `TABLES["judgements"]`.

    Returns:
        query_id, judged, grade 5 … grade 1, and fallback (no passage of grade 5, so that RA-nWG weighs by its
        fallback rule), sorted by query.
    """
    counts = [(pl.col("grade") == grade).sum().alias(f"grade {grade}") for grade in GRADES]
    return (
        judgements.group_by("query_id")
        .agg(pl.len().alias("judged"), *counts)
        .with_columns((pl.col("grade 5") == 0).alias("fallback"))
        .sort("query_id")
    )


def summary(queries: pl.DataFrame) -> pl.DataFrame:
    """The mix over all queries.

    Args:
        queries: What `per_query` returns.

    Returns:
        grade, total, share (of all judgements), median, mean, most (per query), prevalence (share of a
        query's judged passages, median over the queries; for 4+5 the paper's pool prevalence, §3.5) and
        present (share of the queries that have it at all); grade 5 first, then 4 and 5 together, then all.
    """
    rows = [_row(queries, pl.col(f"grade {grade}"), str(grade)) for grade in GRADES]
    good = _row(queries, pl.col("grade 5") + pl.col("grade 4"), GOOD)
    return pl.concat([*rows, good, _row(queries, pl.col("judged"), "all")])


def _row(queries: pl.DataFrame, held: pl.Expr, name: str) -> pl.DataFrame:
    return queries.select(
        pl.lit(name).alias("grade"),
        held.sum().alias("total"),
        (held.sum() / pl.col("judged").sum()).alias("share"),
        held.median().alias("median"),
        held.mean().alias("mean"),
        held.max().alias("most"),
        (held / pl.col("judged")).median().alias("prevalence"),
        (held > 0).mean().alias("present"),
    )
