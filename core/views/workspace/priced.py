"""What the usage of runs costs, with the embedding of the query where a source left it out."""

from __future__ import annotations

import json

import polars as pl

from core.prices import PRICED_AS, PriceBook
from core.prices.book import Key
from core.prices.cost import QUERY_TOKENS, cost_per_1k, query_embedding, scope_of, totals
from core.store import Snapshot

_ASSUMED = f"the query's embedding is modelled at {QUERY_TOKENS:g} tokens"


def run_totals(runs: pl.DataFrame, usage: pl.DataFrame, book: PriceBook) -> pl.DataFrame:
    """Price runs."""
    recorded, further = with_embedding(runs, usage)
    scopes = {
        run_id: scope_of(json.loads(manifest), json.loads(spec))
        for run_id, manifest, spec in runs.select("run_id", "manifest", "spec").iter_rows()
    }
    whole = totals(
        cost_per_1k(recorded, book),
        runs["run_id"].to_list(),
        scopes,
        further=cost_per_1k(further, book),
    )
    modelled = pl.col("run_id").is_in(further["run_id"].implode())
    return whole.with_columns(pl.when(modelled).then(pl.lit(_ASSUMED)).alias("assumed"))


def used_by(snapshot: Snapshot, table: pl.DataFrame) -> frozenset[Key]:
    """What the runs of a stack table use, by item and priced unit."""
    ids = table["run_id"].to_list()
    runs = snapshot.runs().filter(pl.col("run_id").is_in(ids))
    parts = [part.select("item", "unit") for part in with_embedding(runs, snapshot.usage(ids))]
    return frozenset(pl.concat(parts).unique().with_columns(pl.col("unit").replace(PRICED_AS)).iter_rows())


def with_embedding(runs: pl.DataFrame, usage: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the recorded usage, and the modelled usage of embedding the query where a bill lacks it.

    Only runs that have a bill are added to: those that recorded usage, and those whose source says which
    stages its costs cover.
    """
    billed = set(usage["run_id"].unique())
    embedders = {}
    for run_id, manifest, text in runs.select("run_id", "manifest", "spec").iter_rows():
        spec = json.loads(text)
        dense = spec.get("mode") in ("dense", "hybrid") and isinstance(spec.get("embedder"), str)
        if dense and (run_id in billed or "cost_scope" in json.loads(manifest)):
            embedders[run_id] = spec["embedder"]
    return query_embedding(usage, embedders)
