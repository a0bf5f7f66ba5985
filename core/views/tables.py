"""Tables as files: CSV that a spreadsheet cannot be tricked with, and Parquet with every value as it is."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence

import polars as pl
import polars.selectors as cs

from core.bidi import CONTROLS

_FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
"""How a text begins that a spreadsheet runs; some take the wide signs of East Asian keyboards too."""


def to_csv(rows: pl.DataFrame) -> bytes:
    """Write a table as CSV (UTF-8).

    Text that a spreadsheet would read as a formula gets an apostrophe in front, names of columns too; numbers
    stay as they are; nested values become JSON.

    Returns:
        The file's content, with a header row.
    """
    return defused(rows).write_csv().encode()


def to_parquet(rows: pl.DataFrame) -> bytes:
    """Write a table as Parquet: types, nested values and texts as they are.

    Returns:
        The file's content.
    """
    file = io.BytesIO()
    rows.write_parquet(file)
    return file.getvalue()


def defused(rows: pl.DataFrame) -> pl.DataFrame:
    """The table with flat columns and no text that a spreadsheet would run as a formula."""
    flat = rows.with_columns(_as_json(rows[name]) for name in cs.expand_selector(rows, cs.nested()))
    flat = upright(flat.with_columns((cs.categorical() | cs.enum()).cast(pl.String)))
    dangerous = cs.string().str.contains(_FORMULA)
    safe = flat.with_columns(
        pl.when(dangerous).then(pl.lit("'") + cs.string()).otherwise(cs.string()).name.keep()
    )
    return safe.rename(_safe_names(safe.columns))


def upright(rows: pl.DataFrame) -> pl.DataFrame:
    """The table without the characters in its texts that say in which direction to read."""
    lists = [name for name, dtype in rows.schema.items() if dtype == pl.List(pl.String)]
    return rows.with_columns(
        cs.string().str.replace_all(f"[{CONTROLS}]", ""),
        *(pl.col(name).list.eval(pl.element().str.replace_all(f"[{CONTROLS}]", "")) for name in lists),
    )


def _safe_names(names: Sequence[str]) -> dict[str, str]:
    """New names for the columns whose names a spreadsheet would run; all stay distinct."""
    taken, found = set(names), {}
    for name in names:
        if re.match(_FORMULA, name):
            safe = f"'{name}"
            while safe in taken:
                safe = f"'{safe}"
            taken.add(safe)
            found[name] = safe
    return found


def _as_json(values: pl.Series) -> pl.Series:
    texts = [
        None if each is None else json.dumps(each, ensure_ascii=False, default=str)
        for each in values.to_list()
    ]
    return pl.Series(values.name, texts, dtype=pl.String)
