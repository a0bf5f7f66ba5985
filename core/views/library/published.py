"""The tables that papers print, as they ship with the product (data/published/README.md)."""

from __future__ import annotations

import polars as pl

from core.paths import PUBLISHED

SOURCES = {"CLQ": "CLQ paper", "RAGGED": "RAGGED", "thesis": "thesis on RAG methods"}
"""Sources by their word in the index, as people read them; in full in data/published/README.md."""


def printed_tables() -> pl.DataFrame:
    """The published tables.

    Returns:
        name ("CLQ paper, Table 12: …", unique), file, table (null = the whole file), source; in the papers'
        order.
    """
    index = pl.read_csv(PUBLISHED / "index.csv", infer_schema=False)
    source = pl.col("source").replace_strict(SOURCES)
    number = (
        pl.when(pl.col("table").is_not_null()).then(pl.format(", Table {}", "table")).otherwise(pl.lit(""))
    )
    return index.select(
        pl.format("{}{}: {}", source, number, "title").alias("name"), "file", "table", "source"
    )


def printed(file: str, table: str | None) -> pl.DataFrame:
    """The figures of one published table.

    Args:
        file: A file of the index.
        table: Its number in the paper; None = the whole file.

    Returns:
        One row per printed number with the columns of the file that the table uses, numbers as numbers.
    """
    rows = pl.read_csv(PUBLISHED / file, infer_schema_length=None, schema_overrides={"table": pl.String})
    if table is not None:
        rows = rows.filter(pl.col("table") == table).drop("table")
    return rows.select(column for column in rows if column.null_count() < rows.height)
