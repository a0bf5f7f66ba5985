"""Price books as tables, and what the runs of a store need prices for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping

import polars as pl

from core.prices import PriceBook
from core.prices.check import Used
from core.store import Snapshot

_NONE = (None, "", "none")
_STAGES: Mapping[str, str] = {"embedder": "embed", "reranker": "rerank"}
"""Models that a stack names, with the stage that they are used in."""


def price_rows(books: Iterable[PriceBook], contains: str = "") -> pl.DataFrame:
    """The newest prices of books as one table.

    Args:
        books: Price books.
        contains: Only items with this in their name, in small letters or capitals.

    Returns:
        book, then the columns of `PriceBook.frame` with days as text.
    """
    rows = [book.frame().select(pl.lit(book.name).alias("book"), pl.all()) for book in books]
    wanted = pl.col("item").str.to_lowercase().str.contains(contains.lower(), literal=True)
    return pl.concat(rows).filter(wanted).with_columns(pl.col("valid_from", "looked_up").cast(pl.String))


def used_items(snapshot: Snapshot) -> list[Used]:
    """What the runs of a store have used, and so needs a price.

    Args:
        snapshot: Where to look.

    Returns:
        Items and units of the recorded usage; besides, models that a stack names where a run of it has
        recorded no usage of their stage.
    """
    runs = snapshot.runs()
    usage = snapshot.usage(runs["run_id"].to_list())
    recorded = usage.group_by("item", "unit").agg(pl.col("run_id").n_unique())
    found = [Used(item, unit, count) for item, unit, count in recorded.sort("item", "unit").iter_rows()]
    staged = set(usage.select("run_id", "stage").unique().iter_rows())
    named: Counter[str] = Counter()
    specs = runs.select("run_id", "stack_id").join(snapshot.stacks(), on="stack_id", how="left")
    for run_id, spec in specs.select("run_id", "spec").iter_rows():
        read = json.loads(spec) if isinstance(spec, str) else spec or {}
        named.update(
            str(read[axis]).rpartition(":")[2]
            for axis, stage in _STAGES.items()
            if read.get(axis) not in _NONE and (run_id, stage) not in staged
        )
    return found + [Used(item, None, count) for item, count in sorted(named.items())]
