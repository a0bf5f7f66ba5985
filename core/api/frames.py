"""Input of a user to a store: paths, and DataFrames of pandas, Polars and whatever narwhals knows."""

from __future__ import annotations

import io
import os
from typing import Any

import narwhals as nw
import polars as pl

from core.errors import InputError
from core.importers import Offered, Upload


def offered(thing: object, name: str) -> Offered:
    """Return an input in the importers' form; a DataFrame becomes a Parquet file of that name.

    Raises:
        InputError: If it is neither a path nor a DataFrame, or has columns that Parquet cannot store.
    """
    if isinstance(thing, str | os.PathLike):
        return thing
    frame = as_polars(thing)
    data = io.BytesIO()
    try:
        frame.write_parquet(data)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise InputError(f"The DataFrame cannot be written: {error}", where=name) from None
    return Upload(f"{name}.parquet", data.getvalue())


def as_polars(thing: object) -> pl.DataFrame:
    """Convert a DataFrame of any library to Polars; a named index becomes columns.

    Raises:
        InputError: If it isn't a DataFrame.
    """
    try:
        native: Any = nw.from_native(thing, allow_series=False)
    except TypeError:
        raise InputError(
            f"{type(thing).__name__} is neither a path nor a DataFrame.", do="Give a path, or a DataFrame."
        ) from None
    if isinstance(native, nw.LazyFrame):
        native = native.collect()
    index = getattr(thing, "index", None)
    if index is not None and any(name is not None for name in getattr(index, "names", ())):
        indexed: Any = thing
        native = nw.from_native(indexed.reset_index())
    try:
        frame: pl.DataFrame = native.to_polars()
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"The DataFrame has a column of mixed values: {error}", do="Give each column one type."
        ) from None
    return frame
