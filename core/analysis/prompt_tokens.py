"""Tokens of the passages that Top(K) adds to a generator's prompt, and their price (metrics.md §11)."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from core.analysis.workspace.scores import places
from core.arrays import Floats
from core.prices import PriceBook
from core.providers.tokens import ESTIMATE, counter
from core.stats.intervals import Alike, singly
from core.stats.means import mean_interval
from core.store import Snapshot
from core.tables import schema

WEIGHTS = schema("name k:int32 tokens:float tokens_low:float tokens_high:float usd_per_1k:float counted")

_OPENAI = "o200k_base"


def vocabulary(generator: str | None, book: PriceBook) -> str:
    """Return the vocabulary that counts a generator's tokens, or the estimate if it isn't available."""
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
    alike: Alike = singly,
) -> pl.DataFrame:
    """Return tokens of the passages of Top(K) at every K, and a generator's price for reading them.

    Args:
        runs: run_id, name and has_rankings of the chosen stacks.
        generator: An item of the price book; None = no price, tokens counted as for OpenAI's models.
        only: The queries that count; None for every ranked one.
        alike: As in `core.readers.curves.points`.

    Returns:
        `COLUMNS`, one row per stack and K: the mean over its queries with a 95 % interval, $ per
        1,000 queries (null without a price), and the vocabulary. Null if the text of a passage is missing.
    """
    counts = vocabulary(generator, book)
    price = None if generator is None else book.find(generator, "input_tokens")
    usd = pl.lit(None if price is None else 1000 * price.each, pl.Float64)
    sums = running_tokens(snapshot, runs, counts, depth=depth, only=only)
    parts = [pl.DataFrame(schema=WEIGHTS)]
    for run_id, name in runs.select("run_id", "name").iter_rows():
        if run_id in sums:
            tokens = sums[run_id].tokens
            low, high = mean_interval(tokens.T, "amounts", clusters=alike(sums[run_id].query_ids))
            ks = np.arange(1, tokens.shape[1] + 1)
            of = {
                "name": name,
                "k": ks,
                "tokens": tokens.mean(axis=0),
                "tokens_low": low,
                "tokens_high": high,
            }
            parts.append(pl.DataFrame({**of, "usd_per_1k": None, "counted": None}, schema=WEIGHTS))
    known = pl.col("tokens").is_not_nan()
    return (
        pl.concat(parts)
        .with_columns(pl.when(known).then(pl.col("tokens", "tokens_low", "tokens_high")))
        .with_columns(usd_per_1k=pl.col("tokens") * usd, counted=pl.lit(counter(counts).note or counts))
    )


@dataclass(frozen=True, slots=True)
class Running:
    """Tokens in Top(K) for one run."""

    query_ids: tuple[str, ...]  # its ranked queries, sorted
    # float64 [queries, K]; a shorter ranking sends all it has, NaN = unknown
    tokens: Floats


def running_tokens(
    snapshot: Snapshot, runs: pl.DataFrame, counts: str, *, depth: int, only: Container[str] | None = None
) -> dict[str, Running]:
    """Return tokens in Top(K) for every query."""
    ranked = runs.filter("has_rankings")["run_id"].to_list()
    searched = snapshot.searched(ranked)
    running: dict[str, Running] = {}
    for collection_id in dict.fromkeys(searched.values()):
        here = [run_id for run_id in ranked if searched[run_id] == collection_id]
        rows = _top(snapshot, here, depth, only)
        lengths = _lengths(snapshot, collection_id, rows["passage_id"].unique(), counts)
        rows = rows.join(lengths, on="passage_id", how="left")
        running |= {str(run_id): _running(part) for (run_id,), part in rows.group_by("run_id")}
    return running


def _top(snapshot: Snapshot, run_ids: Sequence[str], depth: int, only: Container[str] | None) -> pl.DataFrame:
    rows = snapshot.rankings(run_ids, stage="final").filter(pl.col("rank") <= depth)
    if only is not None:
        queries = rows["query_id"].unique()
        rows = rows.filter(pl.col("query_id").is_in([query for query in queries if query in only]))
    return rows.select("run_id", "query_id", "rank", "passage_id")


def _lengths(snapshot: Snapshot, collection_id: str, ids: pl.Series, counts: str) -> pl.DataFrame:
    """Return each passage's token count: the stored one if of the same vocabulary, otherwise computed."""
    passages = snapshot.passages(collection_id, ids.to_list())
    count = counter(counts).count
    tokens = [
        stored if stored is not None and tokenizer == counts else count(text) if text else None
        for text, stored, tokenizer in passages.select("text", "tokens", "tokenizer").iter_rows()
    ]
    return passages.select("passage_id", pl.Series("tokens", tokens, dtype=pl.Float64))


def _running(rows: pl.DataFrame) -> Running:
    queries = rows["query_id"].unique().sort()
    (query,) = places(rows, query_id=queries.to_list())
    rank = rows["rank"].to_numpy() - 1
    lengths = np.zeros((len(queries), int(rank.max()) + 1))
    lengths[query, rank] = rows["tokens"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    return Running(tuple(queries), np.cumsum(lengths, axis=1))
