"""Latency and usage columns of a table into the tables "timings" and "usage"."""

from __future__ import annotations

import polars as pl

from core.importers.base import Import, LeftOut, counted, frames_of
from core.importers.meaning import Meaning
from core.importers.naming import Value
from core.importers.read.rows import again, numbers, refuse
from core.importers.read.tabular import Table
from core.importers.read.text import shown
from core.records import Basis

_QUERY = ["run_id", "query_id"]
UNNAMED = "not named"
"""Item of usage whose table does not say what was used; it has no price."""


def timings(table: Table, means: Meaning, keys: pl.DataFrame, *, per_row: bool) -> Import:
    """Timings in milliseconds."""
    parts: list[pl.DataFrame] = []
    notes: list[str] = []
    empty: list[LeftOut] = []
    for value in means.timings:
        rows, missing = _values(table, value, keys, per_row=per_row)
        empty += missing
        parts.append(rows.with_columns(pl.lit(value.stage).alias("stage"), pl.col("value").alias("ms")))
        if value.factor != 1.0:
            notes.append(f"{table.name}: `{shown(value.column)}` converted from seconds to milliseconds.")
    rows = pl.concat(parts) if parts else pl.DataFrame()
    if not rows.height:
        return Import(left_out=tuple(empty), notes=tuple(notes))
    order = pl.int_range(1, pl.len() + 1).over(*_QUERY, "stage")
    rows = rows.with_columns(pl.coalesce("repeat", order).alias("repeat"))
    twice = again(rows, *_QUERY, "stage", "repeat")
    refuse(twice, "Repeat {repeat} of query {query_id} occurs twice.", table.name, "repeat")
    wrong = rows.filter(~pl.col("repeat").is_between(1, 32_767))
    refuse(wrong, "A repeat counts from 1.", table.name, "repeat")
    return Import(frames=frames_of(timings=rows), notes=tuple(notes), left_out=tuple(empty))


def usage(table: Table, means: Meaning, keys: pl.DataFrame, *, per_row: bool) -> Import:
    """Usage per query; the mean over the repeats of a query where each row is one."""
    parts: list[pl.DataFrame] = []
    notes: list[str] = []
    empty: list[LeftOut] = []
    for value in means.usage:
        rows, missing = _values(table, value, keys, per_row=per_row)
        empty += missing
        stage = value.stage or "total"
        named = means.items.get(stage) or means.items.get("total")
        if named is None:
            notes.append(
                f"{table.name}: `{shown(value.column)}` does not say what was used; it has no price."
            )
            rows = rows.with_columns(pl.lit(UNNAMED).alias("item"))
        else:
            item = table.taking({"item": named}).select("line", pl.col("item").fill_null(UNNAMED))
            rows = rows.join(item, on="line", how="left")
        amounts = rows.group_by(*_QUERY, "item").agg(pl.col("value").mean().alias("amount"))
        parts.append(
            amounts.with_columns(
                pl.lit(stage).alias("stage"),
                pl.lit(value.measure).alias("unit"),
                pl.lit(Basis.IMPORTED.value).alias("basis"),
            )
        )
    rows = pl.concat(parts) if parts else pl.DataFrame()
    return Import(frames=frames_of(usage=rows), notes=tuple(notes), left_out=tuple(empty))


def _values(
    table: Table, value: Value, keys: pl.DataFrame, *, per_row: bool
) -> tuple[pl.DataFrame, tuple[LeftOut, ...]]:
    """Numbers of a column with their keys, without empty cells; one a query unless each row is its own."""
    cells = table.taking({value.column: value.column})
    given = numbers(cells, value.column, table.name) * value.factor
    rows = keys.with_columns(given.alias("value"))
    refuse(rows.filter(pl.col("value") < 0), "The number is negative.", table.name, value.column)
    filled = rows.filter(pl.col("value").is_not_null())
    left = counted({f"empty cells of `{shown(value.column)}`: missing, not 0": rows.height - filled.height})
    if per_row:
        return filled, left
    other = filled.filter(pl.col("value") != pl.col("value").first().over(*_QUERY))
    found = "The value differs within a query: it belongs to the query and is the same on its rows."
    refuse(other, found, table.name, value.column)
    return filled.unique(_QUERY, keep="first", maintain_order=True), left
