"""Which passages a person is given, and in which order: drawn by a seed, blind to what is known of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import polars as pl

from core.errors import InputError

Sampling = Literal["at random", "stratified", "holes of stacks", "by value"]
SAMPLINGS: Mapping[Sampling, str] = {
    "at random": "every judged passage has the same chance: fair for agreement",
    "stratified": "as many of every grade, hole and disagreement: rare grades are seen too",
    "holes of stacks": "unjudged passages of the stacks' Top-K, those of most stacks first",
    "by value": "passages whose grade could change the choice, the likeliest first",
}
OF_FIVE = 5  # Passages that are put in order at once
_PAIR = ("query_id", "passage_id")


def draw(pool: pl.DataFrame, sampling: Sampling, n: int, seed: str) -> list[tuple[str, str]]:
    """Draw passages and put them in the order to judge them: query by query, both shuffled.

    Args:
        pool: query_id, passage_id, grade (null = a hole), stacks (how many rank it in their Top-K), disputed
            (whether golden sets grade it differently); by value: value (the higher the sooner).

    Raises:
        InputError: If there is nothing to draw from.
    """
    pool = pool.sort(_PAIR).with_columns(chance=pl.Series(_chances(seed, pool.height)))
    if sampling == "at random":
        drawn = pool.filter(pl.col("grade").is_not_null() | pl.col("grade").is_null().all()).sort("chance")
    elif sampling == "stratified":
        stratum = pl.when("disputed").then(6).otherwise(pl.col("grade").fill_null(0))
        turn = pl.col("chance").rank("ordinal").over(stratum)
        drawn = pool.sort(turn, "chance")
    elif sampling == "holes of stacks":
        drawn = pool.filter(pl.col("grade").is_null()).sort("stacks", "chance", descending=[True, False])
    else:
        drawn = pool.sort("value", "chance", descending=[True, False])
    if drawn.is_empty():
        raise InputError(
            "There is nothing to draw from.", do="Choose another golden set or another sampling."
        )
    return arranged(drawn.head(n), seed)


def queue_of(rows: pl.DataFrame) -> list[tuple[str, str]]:
    """The passages of a list that somebody else made (query_id, passage_id), each once, as a queue."""
    return list(rows.select(_PAIR).unique(maintain_order=True).iter_rows())


def arranged(rows: pl.DataFrame, seed: str) -> list[tuple[str, str]]:
    """Query by query, so that a question is read once; queries and the passages of each are shuffled."""
    rows = rows.select(_PAIR).sort(_PAIR)
    of_query = pl.col("chance").min().over("query_id")
    shuffled = rows.with_columns(chance=pl.Series(_chances(f"{seed} order", rows.height)))
    return list(shuffled.sort(of_query, "query_id", "chance").select(_PAIR).iter_rows())


def fives(pool: pl.DataFrame, batches: int, seed: str) -> list[tuple[str, str]]:
    """Draw batches of five passages of one query, each query as often as the others.

    Args:
        pool: query_id, passage_id.

    Raises:
        InputError: If no query has five passages.
    """
    pool = pool.select(_PAIR).unique().sort(_PAIR)
    pool = pool.with_columns(chance=pl.Series(_chances(seed, pool.height)))
    batch = (pl.col("chance").rank("ordinal").over("query_id") - 1) // OF_FIVE
    whole = pool.with_columns(batch=batch).filter(pl.len().over("query_id", "batch") == OF_FIVE)
    if whole.is_empty():
        raise InputError("No query has five passages to put in order.", do="Choose another golden set.")
    first = pl.col("chance").min().over("query_id", "batch")
    return list(whole.sort("batch", first, "chance").head(batches * OF_FIVE).select(_PAIR).iter_rows())


def _chances(seed: str, n: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.random.default_rng(list(seed.encode())).random(n)
