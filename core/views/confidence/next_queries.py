"""Which further queries tell two stacks apart best: those with tags whose differences vary most.

For a mean over groups of queries the least error comes from as many queries of a group as its share times the
spread of the differences in it (Neyman 1934, J. R. Stat. Soc. 97). Taken so, the groups' means must be
weighted back to their shares.
"""

from __future__ import annotations

import polars as pl

from core.views import text

LEAST = 5
"""Queries of a tag below which no spread is told."""
MOVED = 1.15
"""From this ratio of the best share to today's a tag is named."""


def tag_rows(queries: pl.DataFrame) -> pl.DataFrame:
    """How much the difference of two stacks varies, tag by tag.

    Args:
        queries: From `page.query_table` of two stacks: query_id, tags (``key=value``), delta.

    Returns:
        tag, n, difference (mean), spread (its standard deviation), share (of the queries today) and best (of
        further queries; within the tags of one key, so that they add up to 1); the largest best / share
        first. Keys that do not part the queries are left out.
    """
    known = queries.filter(pl.col("delta").is_not_null())
    tagged = known.select("query_id", "delta", pl.col("tags").alias("tag")).explode("tag").drop_nulls("tag")
    rows = (
        tagged.group_by("tag", maintain_order=True)
        .agg(
            pl.len().alias("n"),
            pl.col("delta").mean().alias("difference"),
            pl.col("delta").std().alias("spread"),
        )
        .filter(pl.col("n") >= LEAST)
        .with_columns(pl.col("tag").str.extract(r"^([^=]*)=").fill_null("").alias("key"))
        .filter(pl.len().over("key") > 1)
    )
    weight = pl.col("n") * pl.col("spread")
    return (
        rows.with_columns((pl.col("n") / pl.col("n").sum().over("key")).alias("share"))
        .with_columns(
            pl.when(weight.sum().over("key") > 0).then(weight / weight.sum().over("key")).alias("best")
        )
        .sort(pl.col("best") / pl.col("share"), descending=True, nulls_last=True, maintain_order=True)
        .select("tag", pl.col("n").cast(pl.Int64), "difference", "spread", "share", "best")
    )


def tag_words(rows: pl.DataFrame, queries: pl.DataFrame, one: str, other: str) -> str:
    """Which queries to add, in words.

    Args:
        rows: From `tag_rows`.
        queries: What it was made from, with judged.
        one: Name of the first stack.
        other: Name of the second.
    """
    waiting = queries.filter(pl.col("judged") == 0).height
    first = f"{text.count(waiting, 'stored query', 'stored queries')} without judgements could be next. "
    head = first if waiting else ""
    told = rows.filter(pl.col("best") / pl.col("share") >= MOVED)
    if told.is_empty():
        return f"{head}Between {one} and {other} no tag stands out: any further queries tell about as much."
    best = told.row(0, named=True)
    return (
        f"{head}Between {one} and {other} the queries with {best['tag']} vary most (standard deviation "
        f"{best['spread']:.3f}, n = {best['n']}): {text.percent(best['best'])} of further queries instead of "
        f"{text.percent(best['share'])} would tell most."
    )
