"""Turns objects within the rows of a table, as in JSON, JSONL and Parquet, into columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import polars as pl

from core.importers.naming import named

_DEEPEST, _MOST = 4, 200  # Levels of nesting, and keys of an object, that become columns


def flattened(rows: pl.DataFrame) -> pl.DataFrame:
    """Turn the fields of objects in a table into columns.

    A field that names a figure keeps its name; any other is prefixed with the name of its object.
    """
    for _ in range(_DEEPEST):
        nested = [column for column, dtype in rows.schema.items() if _unfolds(dtype)]
        if not nested:
            break
        rows = _once(rows, nested)
    return rows


def _unfolds(dtype: pl.DataType) -> bool:
    return isinstance(dtype, pl.Struct) and 0 < len(dtype.fields) <= _MOST


def _once(rows: pl.DataFrame, nested: Sequence[str]) -> pl.DataFrame:
    inner = {column: rows[column].struct.unnest() for column in nested}
    times = Counter([*rows.columns, *(field for fields in inner.values() for field in fields.columns)])
    taken, columns = set(rows.columns), []
    for column in rows.get_columns():
        for field in inner[column.name].get_columns() if column.name in inner else ():
            value = named(field.name, field.name)
            own = value is not None and value.stage is None and times[field.name] == 1
            name = field.name if own else f"{column.name}_{field.name}"
            while name in taken:
                name += "_"
            taken.add(name)
            columns.append(field.alias(name))
        columns += [column] if column.name not in inner else []
    return pl.DataFrame(columns)
