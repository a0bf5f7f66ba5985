"""Tables as files: CSV that a spreadsheet cannot be tricked with."""

from __future__ import annotations

import polars as pl
import polars.selectors as cs

_FORMULA = r"^[=+\-@\t\r]"


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
    flat = rows.with_columns(
        pl.struct(name).struct.json_encode().alias(name)
        for name, dtype in rows.schema.items()
        if dtype.is_nested() or dtype == pl.Binary
    )
    dangerous = cs.string().str.contains(_FORMULA)
    return flat.with_columns(
        pl.when(dangerous).then(pl.lit("'") + cs.string()).otherwise(cs.string()).name.keep()
    )
