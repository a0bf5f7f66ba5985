"""Pools of candidates (S2, S3): rankings of several sources, fused by reciprocal rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from core.tables import schema

CONSTANT = 60  # Damps the first ranks (Cormack, Clarke and Büttcher, SIGIR 2009; CLQ §3.4)
SearchKind = Literal["dense", "sparse", "hybrid"]
_PAIR = ("query_id", "passage_id")
POOL = schema("query_id passage_id rank:int32 rrf:float sources:int32")


@dataclass(frozen=True, slots=True)
class RankedSource:
    """The ranking of one source."""

    label: str  # display name
    kind: SearchKind  # decides ties
    rows: pl.DataFrame  # query_id, passage_id, rank (from 1)


def fused(sources: Sequence[RankedSource]) -> pl.DataFrame:
    """Fuse rankings; ties are broken by the best dense, then sparse rank, then the passage's id.

    Returns:
        `POOL`: rank from 1 within the question, sum of reciprocal ranks, how many sources had the passage.
    """
    parts = [
        source.rows.select(*_PAIR, pl.col("rank").cast(pl.Int64), kind=pl.lit(source.kind), source=pl.lit(at))
        for at, source in enumerate(sources)
    ]
    if not parts:
        return pl.DataFrame(schema=POOL)
    best = {kind: pl.col("rank").filter(pl.col("kind") == kind).min() for kind in ("dense", "sparse")}
    return (
        pl.concat(parts)
        .sort("source", *_PAIR)
        .group_by(_PAIR, maintain_order=True)
        .agg(rrf=(1.0 / (CONSTANT + pl.col("rank"))).sum(), sources=pl.len().cast(pl.Int32), **best)
        # Sums of the same parts in another order may differ in the last digit; they count as equal.
        .with_columns(key=pl.col("rrf").round(12))
        .sort(
            "query_id", "key", "dense", "sparse", "passage_id",
            descending=[False, True, False, False, False], nulls_last=True,
        )
        .with_columns(rank=pl.int_range(1, pl.len() + 1).over("query_id").cast(pl.Int32))
        .select(list(POOL))
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pool:
    """Passages to judge."""

    # Columns of `POOL`, and text, and first: the passage of that question that is judged for all copies of
    # its text, the one with the best rank
    rows: pl.DataFrame
    textless: int = 0  # How many candidates were left out because they have no text

    @property
    def distinct(self) -> pl.DataFrame:
        """One row per question and text."""
        return self.rows.filter(pl.col("first") == pl.col("passage_id"))


def with_texts(pool: pl.DataFrame, texts: pl.DataFrame) -> Pool:
    """Add the texts to a pool; copies of a text are judged once."""
    known = pool.join(texts.select("passage_id", "text"), on="passage_id", maintain_order="left")
    first = pl.col("passage_id").sort_by("rank").first().over("query_id", "text")
    return Pool(known.with_columns(first=first), pool.height - known.height)
