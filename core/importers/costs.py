"""Latency and usage columns of a table into the tables "timings" and "usage"."""

from __future__ import annotations

import polars as pl

from core.errors import InputError
from core.importers.base import Import, LeftOut
from core.importers.meaning import Meaning
from core.importers.naming import Value
from core.importers.read.fields import numbers
from core.importers.read.tabular import Table
from core.importers.read.text import place, quoted, shown
from core.records import Basis
from core.tables import frame

_QUERY = ["run_id", "query_id"]
UNNAMED = "not named"
"""Item of usage whose table does not say what was used; it has no price."""


def timings(table: Table, means: Meaning, keys: pl.DataFrame, *, per_row: bool) -> Import:
    """Timings in milliseconds."""
    parts, notes, empty = [], [], []
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
    again = rows.filter(~pl.struct(*_QUERY, "stage", "repeat").is_first_distinct())
    if again.height:
        found = f"Repeat {again['repeat'][0]} of query {quoted(again['query_id'][0])} occurs twice."
        raise InputError(found, where=place(table.name, again["line"][0], "repeat"))
    _refuse(
        rows.filter(~pl.col("repeat").is_between(1, 32_767)), table.name, "repeat", "A repeat counts from 1."
    )
    made = frame("timings", rows.select("run_id", "query_id", "stage", "repeat", "ms").to_dict())
    return Import(frames={"timings": made}, notes=tuple(notes), left_out=tuple(empty))


def usage(table: Table, means: Meaning, keys: pl.DataFrame, *, per_row: bool) -> Import:
    """Usage per query; the mean over the repeats of a query where each row is one."""
    parts, notes, empty = [], [], []
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
    frames = {"usage": frame("usage", rows.to_dict())} if rows.height else {}
    return Import(frames=frames, notes=tuple(notes), left_out=tuple(empty))


def _values(
    table: Table, value: Value, keys: pl.DataFrame, *, per_row: bool
) -> tuple[pl.DataFrame, list[LeftOut]]:
    """Numbers of a column with their keys, without empty cells; one a query unless each row is its own."""
    cells = table.taking({value.column: value.column})
    given = numbers(cells, value.column, table.name) * value.factor
    rows = keys.with_columns(given.alias("value"))
    _refuse(rows.filter(pl.col("value") < 0), table.name, value.column, "The number is negative.")
    filled = rows.filter(pl.col("value").is_not_null())
    missing = rows.height - filled.height
    left = [LeftOut(missing, f"empty cells of `{shown(value.column)}`: missing, not 0")] if missing else []
    if per_row:
        return filled, left
    again = filled.filter(pl.col("value") != pl.col("value").first().over(*_QUERY))
    found = (
        f"The value differs within a query: {value.column} belongs to the query and is the same on its rows."
    )
    _refuse(again, table.name, value.column, found)
    return filled.unique(_QUERY, keep="first", maintain_order=True), left


def _refuse(bad: pl.DataFrame, name: str, column: str, found: str) -> None:
    if bad.height:
        raise InputError(found, where=place(name, bad["line"][0], column))
