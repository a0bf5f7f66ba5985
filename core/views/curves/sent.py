"""What Top(K) weighs in a generator's prompt: tokens of its passages at every K (metrics.md §11)."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from core.prices import PriceBook
from core.providers.tokens import ESTIMATE, counter
from core.stats.intervals import bootstrap_curve
from core.store import Snapshot

COLUMNS = {
    "name": pl.String(),
    "k": pl.Int32(),
    "tokens": pl.Float64(),
    "tokens_low": pl.Float64(),
    "tokens_high": pl.Float64(),
    "usd_per_1k": pl.Float64(),
    "counted": pl.String(),
}
_OPENAI = "o200k_base"


def vocabulary(generator: str | None, book: PriceBook) -> str:
    """The vocabulary that counts a generator's tokens, or the estimate where that is not at hand."""
    price = None if generator is None else book.find(generator, "input_tokens")
    return _OPENAI if price is None or price.provider == "openai" else ESTIMATE


def tokens_sent(
    snapshot: Snapshot,
    runs: pl.DataFrame,
    generator: str | None,
    book: PriceBook,
    *,
    depth: int,
    only: Container[str] | None = None,
) -> pl.DataFrame:
    """Tokens of the passages of Top(K) at every K, and what a generator charges for reading them.

    Args:
        runs: run_id, name and has_rankings of the chosen stacks.
        generator: An item of the price book; None = no price, tokens as OpenAI's models count them.
        only: The queries that count; None for every ranked one.

    Returns:
        `COLUMNS`, one row per stack and K: the mean over its queries with a 95 % bootstrap interval, $ per
        1,000 queries (null without a price), and what counted. Null where the text of a passage is missing.
    """
    counts = vocabulary(generator, book)
    price = None if generator is None else book.find(generator, "input_tokens")
    each = None if price is None else 1000 * price.each
    sums = running_tokens(snapshot, runs, counts, depth=depth, only=only)
    names = dict(runs.select("run_id", "name").iter_rows())
    parts = [_curve(sums[run_id].tokens, names[run_id], each) for run_id in names if run_id in sums]
    return pl.concat([pl.DataFrame(schema=COLUMNS), *parts]).with_columns(
        pl.lit(counter(counts).note or counts).alias("counted")
    )


@dataclass(frozen=True, slots=True)
class Running:
    """Tokens of Top(K) of one run."""

    query_ids: tuple[str, ...]  # its ranked queries, sorted
    # float64 [queries, K]; a shorter ranking sends no more than it has, NaN = unknown
    tokens: npt.NDArray[np.float64]


def running_tokens(
    snapshot: Snapshot, runs: pl.DataFrame, counts: str, *, depth: int, only: Container[str] | None = None
) -> dict[str, Running]:
    """Tokens of Top(K) of every query."""
    ranked = runs.filter("has_rankings")["run_id"].to_list()
    searched = snapshot.searched(ranked)
    made: dict[str, Running] = {}
    for collection_id in dict.fromkeys(searched.values()):
        here = [run_id for run_id in ranked if searched[run_id] == collection_id]
        rows = _top(snapshot, here, depth, only)
        lengths = _lengths(snapshot, collection_id, rows["passage_id"].unique(), counts)
        rows = rows.join(lengths, on="passage_id", how="left")
        made |= {str(run_id): _running(part) for (run_id,), part in rows.group_by("run_id")}
    return made


def _top(snapshot: Snapshot, run_ids: Sequence[str], depth: int, only: Container[str] | None) -> pl.DataFrame:
    rows = snapshot.rankings(run_ids, stage="final").filter(pl.col("rank") <= depth)
    if only is not None:
        queries = rows["query_id"].unique()
        rows = rows.filter(pl.col("query_id").is_in([query for query in queries if query in only]))
    return rows.select("run_id", "query_id", "rank", "passage_id")


def _lengths(snapshot: Snapshot, collection_id: str, ids: pl.Series, counts: str) -> pl.DataFrame:
    """Return the tokens of passages: as stored where the same vocabulary counted them, else counted now."""
    passages = snapshot.passages(collection_id, ids.to_list())
    count = counter(counts).count
    tokens = [
        stored if stored is not None and tokenizer == counts else count(text) if text else None
        for text, stored, tokenizer in passages.select("text", "tokens", "tokenizer").iter_rows()
    ]
    return passages.select("passage_id", pl.Series("tokens", tokens, dtype=pl.Float64))


def _curve(sums: npt.NDArray[np.float64], name: str, each: float | None) -> pl.DataFrame:
    """Return the mean prompt of one stack at every K."""
    low, high = bootstrap_curve(sums)
    means = sums.mean(axis=0)
    made = pl.DataFrame(
        {
            "name": name,
            "k": np.arange(1, sums.shape[1] + 1),
            "tokens": means,
            "tokens_low": low,
            "tokens_high": high,
            "usd_per_1k": None if each is None else means * each,
            "counted": None,
        },
        schema=COLUMNS,
    )
    figures = ("tokens", "tokens_low", "tokens_high", "usd_per_1k")
    unknown = pl.col("tokens").is_nan()
    return made.with_columns(pl.when(~unknown).then(pl.col(figure)).alias(figure) for figure in figures)


def _running(rows: pl.DataFrame) -> Running:
    """Return the running sums of one run."""
    queries = rows["query_id"].unique().sort()
    places = dict(zip(queries, range(len(queries)), strict=True))
    query = rows["query_id"].replace_strict(places, return_dtype=pl.Int64).to_numpy()
    rank = rows["rank"].to_numpy() - 1
    lengths = np.zeros((len(queries), int(rank.max()) + 1))
    lengths[query, rank] = rows["tokens"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    return Running(tuple(queries), np.cumsum(lengths, axis=1))
