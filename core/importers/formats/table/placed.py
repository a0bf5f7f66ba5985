"""Tables of rankings that locate their passages: by text, document, characters or heading."""

from __future__ import annotations

import polars as pl

from core.importers.base import TOLD
from core.importers.meaning import Meaning
from core.importers.read.rows import numbers
from core.importers.read.tabular import Table
from core.importers.samples import text_id


def named_by_place(table: Table, means: Meaning) -> tuple[Table, str]:
    """Return a table with a column of ids made from the passages' locations, and that column."""
    column = "passage"
    while column in table.rows.columns:
        column += " "
    ids = [_id(row) for row in table.taking(means.places).iter_rows(named=True)]
    rows = table.rows.with_columns(pl.Series(column, ids, dtype=pl.String))
    return Table(table.name, rows, table.lines), column


def _id(row: dict[str, object]) -> str | None:
    """Return an id for a passage, or None if the row does not describe one."""
    source, text = row.get("source"), row.get("text")
    place = "-".join(str(row[name]) for name in ("start", "end", "heading") if row.get(name) is not None)
    if source and place:
        return f"{source}#{place}"
    return text_id(str(text), "t") if text else None


def told_of(table: Table, means: Meaning) -> pl.DataFrame:
    """Return what a table says about its passages other than ids: frame of `TOLD`."""
    if not means.places:
        return TOLD.to_frame()
    rows = table.taking({"passage_id": means.roles["passage_id"], **means.places})
    places = [name for name in ("start", "end") if name in means.places]
    rows = rows.with_columns(numbers(rows, name, table.name, whole=True) for name in places)
    absent = [pl.lit(None).alias(name) for name in TOLD if name not in rows.columns]
    told = rows.with_columns(absent).select(pl.col(name).cast(dtype) for name, dtype in TOLD.items())
    return told.drop_nulls("passage_id").unique("passage_id", keep="first", maintain_order=True)
