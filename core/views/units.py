"""Tables as people read them: costs in one unit, with as many digits as tell the values apart."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from core.number_format import ASSUMED_DIGITS, SHARED_DIGITS, UNIT, CostUnit, digits_apart
from core.views.columns import Column

_DOLLARS = ("usd", "change")
"""Forms of columns that may hold dollars per 1,000, which their label then includes."""
_MS = re.compile(r"\bms\b")
_LEAST, _FINEST = 2, 5
"""Usual decimals of milliseconds, and the most: a clock tells no less from 0."""


def _of_many(label: str) -> bool:
    return re.search(r"\b1k\b|1,000", label) is not None


def scale_of(label: str, said: CostUnit) -> float:
    """Return the factor that converts the numbers below a label to this cost unit."""
    if not said.million or not _of_many(label):
        return 1.0
    return 1 / said.factor if "per $" in label else said.factor


def unit_of(rows: pl.DataFrame, labels: Mapping[str, str]) -> CostUnit:
    """Return the cost unit of a table: the one in its rows, otherwise one that suits its dollar columns."""
    if rows.height and set(UNIT) <= set(rows.columns):
        return CostUnit.of(rows.select(UNIT).row(0, named=True))
    named = [name for name, label in labels.items() if scale_of(label, CostUnit(million=True)) > 1]
    return CostUnit.among(value for name in named for value in rows[name].cast(pl.Float64))


def for_people(
    rows: pl.DataFrame, shown: Sequence[Column], said: CostUnit | None
) -> tuple[pl.DataFrame, tuple[Column, ...]]:
    """Return rows and columns of a table in human-readable form.

    Args:
        said: The page's cost unit; None = the rows' own unit, or one that suits the table.

    Returns:
        Costs in that unit, dollar columns with enough digits to distinguish the values, four at most, and
        milliseconds with two digits of the least, so that none is written as 0.00.
    """
    dollars = {column.name: column.label for column in shown if column.form in _DOLLARS}
    said = said or unit_of(rows, dollars)
    written = rows.with_columns(in_unit(rows, name, label, said) for name, label in dollars.items())

    def told(column: Column) -> Column:
        if column.name not in dollars:
            return in_ms(column, written)
        digits = column.digits
        if column.form == "usd":
            counted = said.digits if _of_many(column.label) else 0
            each = written[column.name].cast(pl.Float64).round_sig_figs(SHARED_DIGITS)
            digits = max(counted, digits_apart(each))
        return column.replace(label=said.label(column.label), help=said.label(column.help), digits=digits)

    return written, tuple(map(told, shown))


def in_unit(rows: pl.DataFrame, name: str, label: str, said: CostUnit) -> pl.Expr:
    """Return a column of dollars in a unit; a stack table's costs at assumed prices rounded as in sentences.

    Further digits would say more than is known.
    """
    cost = pl.col(name) * scale if (scale := scale_of(label, said)) != 1 else pl.col(name)
    assumed = set(UNIT) <= set(rows.columns) and said.digits <= ASSUMED_DIGITS
    if not assumed or not _of_many(label) or not rows[name].dtype.is_float():
        return cost
    cents = cost.abs() >= 10.0 ** (said.digits - 3)
    return pl.when(cents).then(cost.round(2)).otherwise(cost.round_sig_figs(said.digits)).alias(name)


def in_ms(column: Column, rows: pl.DataFrame) -> Column:
    """Return a column of milliseconds with two digits of the least that is over 0; others as they are."""
    if column.form != "number" or column.digits < _LEAST or not _MS.search(column.label):
        return column
    if column.name not in rows.columns or not rows[column.name].dtype.is_numeric():
        return column
    values = rows[column.name].cast(pl.Float64).to_numpy()
    least = values[values > 0].min(initial=np.inf)
    if least >= 10**-_LEAST:
        return column
    return column.replace(digits=min(_FINEST, 1 - math.floor(math.log10(least))))
