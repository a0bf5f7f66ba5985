"""Judgements that contradict one another: copies of a passage, and golden sets that disagree."""

from __future__ import annotations

import polars as pl

_PAIR = ("query_id", "passage_id")


def duplicates(passages: pl.DataFrame) -> pl.DataFrame:
    """Passages whose text is the same up to letter case and white space."""
    bare = pl.col("text").str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()
    return (
        passages.select("passage_id", "text", bare=bare)
        .filter(pl.col("bare") != "")
        .filter(pl.len().over("bare") > 1)
        .with_columns(pl.col("passage_id").min().over("bare").alias("group"))
        .select("group", "passage_id", "text")
        .sort("group", "passage_id")
    )


def graded_apart(copies: pl.DataFrame, judgements: pl.DataFrame) -> pl.DataFrame:
    """Copies of one passage that were graded differently for one query."""
    return (
        copies.join(judgements, on="passage_id")
        .sort("passage_id")
        .group_by("query_id", "group")
        .agg(
            pl.col("passage_id").alias("passages"),
            pl.col("grade").cast(pl.Int64).alias("grades"),
            (pl.col("grade").max() - pl.col("grade").min()).alias("spread"),
        )
        .filter(pl.col("spread") > 0)
        .sort("spread", "query_id", "group", descending=[True, False, False])
    )


def disagreements(judgements: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Pairs that another golden set of the collection grades differently.

    Args:
        judgements: The golden set that is looked at.
        others: Judgements of the collection's other golden sets.

    Returns:
        query_id, passage_id, grade, other_set, other_grade, by (distance); largest distance first.
    """
    return (
        judgements.select(*_PAIR, "grade")
        .join(
            others.select(*_PAIR, pl.col("golden_set_id").alias("other_set"), other_grade=pl.col("grade")),
            on=_PAIR,
        )
        .with_columns((pl.col("grade") - pl.col("other_grade")).abs().alias("by"))
        .filter(pl.col("by") > 0)
        .sort("by", "other_set", *_PAIR, descending=[True, False, False, False])
    )
