"""Rows of foreign tables, checked: the first that cannot be used is named with file, line and column."""

from __future__ import annotations

import polars as pl

from core.errors import InputError
from core.importers.read.text import place, quoted


def refuse(bad: pl.DataFrame, found: str, name: str = "", column: str | None = None, *, do: str = "") -> None:
    """Refuse rows, if there are any, by their first; ``{cell}`` in what was found stands for a cell of it.

    The file is the row's own (`file`) where it has one.
    """
    if bad.height:
        row = bad.row(0, named=True)
        cells = {key: quoted(cell) if isinstance(cell, str) else cell for key, cell in row.items()}
        where = place(row.get("file") or name, row.get("line"), column)
        raise InputError(found.format_map(cells), where=where, do=do)


def again(rows: pl.DataFrame, *key: str) -> pl.DataFrame:
    """Return the rows whose key an earlier row has already."""
    return rows.filter(~pl.struct(key).is_first_distinct())


def identified(rows: pl.DataFrame, name: str, *columns: str) -> pl.DataFrame:
    """Return the rows as they are, refused if an id is empty."""
    for column in columns:
        refuse(rows.filter(pl.col(column).fill_null("") == ""), "The id is empty.", name, column)
    return rows


def numbers(rows: pl.DataFrame, column: str, name: str, *, whole: bool = False) -> pl.Series:
    """A text column as numbers, refusing what is none."""
    direct = rows[column].cast(pl.Float64, strict=False)
    if not whole and not direct.null_count() and direct.is_finite().all():
        return direct
    cleaned = rows[column].cast(pl.String).str.strip_chars()
    values = cleaned.cast(pl.Float64, strict=False)
    empty = cleaned.is_null() | (cleaned == "")
    good = values.is_finite().fill_null(value=False)
    if whole:
        good &= (values == values.floor()).fill_null(value=False) & (values.abs() < 2**53).fill_null(
            value=False
        )
    bad = (~good & ~empty).arg_true()
    if len(bad):
        kind = "an integer" if whole else "a finite number"
        raise InputError(
            f"{quoted(cleaned[bad[0]])} is not {kind}.", where=place(name, rows["line"][bad[0]], column)
        )
    return values.cast(pl.Int64) if whole else values
