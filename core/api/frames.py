"""A user's input to a store: paths, DataFrames that narwhals knows, dicts of runs and judgements."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping, Sequence
from math import isfinite
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from core.errors import InputError, cut
from core.importers import Offered, Upload

_GRADES, _SCORES = "ranx-qrels", "ranx-run"
_FEW = 5  # Most passages of a query whose grades may all differ


def offered(thing: object, name: str) -> Offered:
    """Return an input in the importers' form; a DataFrame becomes a Parquet file of that name, a dict JSON.

    Raises:
        InputError: If it is not a path, DataFrame or dict of dicts of numbers, or has columns that Parquet
            cannot store.
    """
    if isinstance(thing, str | os.PathLike):
        return Path(thing).expanduser()
    if (scores := scored(thing)) is not None:
        return Upload(f"{name}.json", json.dumps(_numbers(scores, name), ensure_ascii=False).encode())
    frame = as_polars(thing)
    data = io.BytesIO()
    try:
        frame.write_parquet(data)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise InputError(f"The DataFrame cannot be written: {error}", where=name) from None
    return Upload(f"{name}.parquet", data.getvalue())


def formats(
    things: Sequence[object], given: Sequence[Offered], said: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the formats of dicts by the names of their files: whole numbers only are grades.

    Args:
        said: Formats that the user names, which need no guess.

    Raises:
        InputError: If whole numbers may as well be scores.
    """
    named = {}
    for thing, upload in zip(things, given, strict=True):
        scores = scored(thing)
        if scores is not None and isinstance(upload, Upload) and upload.name not in (said or {}):
            kind = type(thing).__name__ if type(thing).__module__.startswith("ranx") else ""
            graded = kind == "Qrels" or (kind != "Run" and _graded(scores, upload.name))
            named[upload.name] = _GRADES if graded else _SCORES
    return named


def _graded(scores: Mapping[Any, Mapping[Any, Any]], name: str) -> bool:
    """Return whether a dict holds grades, which are whole numbers; many passages rarely differ in them.

    Raises:
        InputError: If the numbers are whole, but tell all passages of every query apart, as ranks do.
    """
    if not all(isinstance(number, Integral) for of in scores.values() for number in of.values()):
        return False
    apart = all(len(set(of.values())) == len(of) for of in scores.values())
    if apart and any(len(of) > _FEW for of in scores.values()):
        raise InputError(
            "Whole numbers are grades, but these differ for all passages of every query, as scores do.",
            where=name,
            do=f"Scores: write 3.0, or formats={{{name!r}: {_SCORES!r}}}. Grades: {_GRADES!r} there.",
        )
    return True


def scored(thing: object) -> Mapping[Any, Mapping[Any, Any]] | None:
    """Return a dict of dicts, also that of a Run or Qrels of ranx; None if it is something else."""
    if type(thing).__module__.partition(".")[0] == "ranx" and hasattr(thing, "to_dict"):
        thing = thing.to_dict()
    return thing if isinstance(thing, Mapping) else None


def _numbers(scores: Mapping[Any, Any], name: str) -> dict[str, dict[str, float]]:
    """Return scores as JSON has them.

    Raises:
        InputError: If a query has no dict, or a passage no finite number.
    """
    plain: dict[str, dict[str, float]] = {}
    for query, passages in scores.items():
        if not isinstance(passages, Mapping):
            found = f"{query}: {cut(repr(passages), 40)} is not a dict of passages."
            raise InputError(found, where=name, do="Give {query: {passage: score}}.")
        row = plain.setdefault(str(query), {})
        for passage, number in passages.items():
            if isinstance(number, bool) or not isinstance(number, Real) or not isfinite(number):
                found = f"{query}, {passage}: {cut(repr(number), 40)} is not a finite number."
                raise InputError(found, where=name, do="Give each passage its score, or its grade.")
            row[str(passage)] = int(number) if isinstance(number, Integral) else float(number)
    return plain


def as_polars(thing: object) -> pl.DataFrame:
    """Convert a DataFrame of any library to Polars; a named index becomes columns.

    Raises:
        InputError: If it isn't a DataFrame.
    """
    try:
        native: Any = nw.from_native(thing, allow_series=False)
    except TypeError:
        raise InputError(
            f"{type(thing).__name__} is neither a path, a DataFrame nor a dict.",
            do="Give a path, a DataFrame, or {query: {passage: score}}.",
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
