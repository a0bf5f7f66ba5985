"""What a search found and dropped, as a table and a sentence."""

from __future__ import annotations

import polars as pl

from core.records import JsonMap
from core.views.text import count

_COLUMNS = {
    "label": pl.String,
    "state": pl.String,
    "queries": pl.Int64,
    "round": pl.Int64,
    "quality": pl.Float64,
    "latency_ms": pl.Float64,
    "usd_per_1k": pl.Float64,
    "harm": pl.Float64,
    "beaten_by": pl.String,
    "bound": pl.Float64,
    "stack_id": pl.String,
}


def search_rows(found: JsonMap) -> pl.DataFrame:
    """Return the stacks that a search began, those that came through first, then by quality.

    Args:
        found: What the search wrote down (`Folder.search`).
    """
    rows = [tuple(entry.get(name) for name in _COLUMNS) for entry in found["entries"]]
    table = pl.DataFrame(rows, schema=_COLUMNS, orient="row")
    if table["harm"].is_null().all():  # it had no limit
        table = table.drop("harm")
    return table.sort(pl.col("state") != "through", "quality", descending=[False, True], nulls_last=True)


def search_words(found: JsonMap) -> str:
    """Return how far a search came: ``212 of 848 stacks begun, 180 dropped …``."""
    share = found["asked"] / found["asked_of"]
    begun, dropped, through = (f"{found[name]:,}" for name in ("begun", "dropped", "through"))
    return (
        f"{begun} of {count(found['stacks'], 'stack')} begun, {dropped} dropped, {through} asked all"
        f" {count(found['queries'], 'question')}; {share:.1%} of the work of asking every stack everything"
    )
