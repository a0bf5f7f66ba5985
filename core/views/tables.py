"""Tables as files: CSV that a spreadsheet cannot be tricked with."""

from __future__ import annotations

import json

import polars as pl
import polars.selectors as cs

_FORMULA = r"^[=+\-@\t\r\n]"


def to_csv(rows: pl.DataFrame) -> bytes:
    """Write a table as CSV (UTF-8).

    Text that a spreadsheet would read as a formula gets an apostrophe in front; nested values become JSON.

    Args:
        rows: Any table.

    Returns:
        The file's content, with a header row.
    """
    return defused(rows).write_csv().encode()


def defused(rows: pl.DataFrame) -> pl.DataFrame:
    """The table with flat columns and no text that a spreadsheet would run as a formula."""
    flat = rows.with_columns(_as_json(rows[name]) for name in cs.expand_selector(rows, cs.nested()))
    dangerous = cs.string().str.contains(_FORMULA)
    return flat.with_columns(
        pl.when(dangerous).then(pl.lit("'") + cs.string()).otherwise(cs.string()).name.keep()
    )


def _as_json(values: pl.Series) -> pl.Series:
    texts = [
        None if each is None else json.dumps(each, ensure_ascii=False, default=str)
        for each in values.to_list()
    ]
    return pl.Series(values.name, texts, dtype=pl.String)
