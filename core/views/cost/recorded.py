"""What the recorded usage of one stack costs, by stage and item, each with how it is known."""

from __future__ import annotations

import polars as pl

from core.prices import PriceBook
from core.prices.cost import priced_usage
from core.store import Snapshot
from core.views import text
from core.views.workspace.priced import with_embedding

COLUMNS = ("stage", "item", "unit", "units_per_query", "usd_per_1k", "basis", "reason")


def recorded(snapshot: Snapshot, run_id: str, book: PriceBook) -> pl.DataFrame:
    """Price the recorded usage of a run.

    Args:
        snapshot: Where the usage is.
        run_id: The run.
        book: Prices.

    Returns:
        `COLUMNS`, one row per stage, item and unit: means over the queries; usd_per_1k is null, with the
        reason, where a price or an amount is not known. Empty when the run has recorded no usage.
    """
    run = snapshot.runs().filter(pl.col("run_id") == run_id)
    priced = priced_usage(pl.concat(with_embedding(run, snapshot.usage([run_id]))), book)
    columns = priced.select(
        "stage",
        "item",
        pl.col("priced_unit").alias("unit"),
        pl.col("amount").alias("units_per_query"),
        pl.when(pl.col("reason").is_null()).then(pl.col("usd")).alias("usd_per_1k"),
        "basis",
        "reason",
    )
    return columns.select(COLUMNS).sort("stage", "item", "unit")


def recorded_answer(rows: pl.DataFrame, name: str) -> str:
    """The total in words; unknown where a part is."""
    if rows.is_empty():
        return f"{name} has recorded no usage."
    how = ", ".join(sorted(set(rows["basis"].drop_nulls())))
    total = text.usd(float(rows["usd_per_1k"].sum()), "")
    if rows["usd_per_1k"].null_count():
        return f"{name}: unknown; what is known costs {total} per 1,000 queries ({how})."
    return f"{name}: {total} per 1,000 queries ({how})."
