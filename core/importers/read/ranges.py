"""Checks numbers against the declared range of their measure: accepted, taken as percent, or refused.

A share may be written in percent if all numbers of its column agree; if some must be percent and others
cannot, the user decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

import polars as pl

from core.errors import InputError
from core.importers.read.number_format import Open, Reading
from core.importers.read.text import shown

Range = tuple[float, float]
_Verdict = Literal["fits", "percent", "open", "outside"]
_LEAST_PERCENT = 5  # Numbers up to this may be on a scale such as 1 to 5
_OVER = 1e-6  # How far a sum of shares in single precision may exceed its range
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Figures:
    """Numbers of one measure, from a column or a key of a file."""

    column: str  # the column, or the file's name for the measure
    values: pl.Series  # floats; null for missing values
    range: Range | None  # the declared range of the measure
    share: bool  # whether it may be in percent
    where: Callable[[int], str]  # returns the location of a number


def verdict(figures: Figures) -> _Verdict:
    """Return whether numbers lie in the range of their measure, are plainly percent of it, or neither."""
    values = figures.values
    if figures.range is None and not figures.share:
        return "fits"
    low, high = figures.range or (-inf, inf)
    above = figures.share and bool((values > 1 + _OVER).any())
    if above and bool(values.is_between(0, 100 + _OVER).all()) and bool((values > _LEAST_PERCENT).any()):
        return "percent" if bool(((values == 0) | (values > 1 + _OVER)).all()) else "open"
    return "fits" if bool(values.is_between(low - _OVER, high + _OVER).all()) else "outside"


def as_shares(values: pl.Series) -> pl.Series:
    """Return numbers as shares, reading those above 1 as percent."""
    return pl.select(pl.when(values > 1 + _OVER).then(values / 100).otherwise(values)).to_series()


def question(figures: Figures) -> Open:
    """Ask whether all numbers are percent, or only those above 1, quoting the first of each."""
    values = figures.values
    small = (values > 0) & (values <= 1 + _OVER)
    first = pl.concat([values.filter(small).head(1), values.filter(~small & (values > 1)).head(_SHOWN - 1)])
    ways: Mapping[Reading, pl.Series] = {"percent": first / 100, "share": as_shares(first)}
    written = {way: tuple(f"{value:.10g}" for value in read) for way, read in ways.items()}
    return Open(figures.column, tuple(f"{value:.10g}" for value in first), written)


def refuse_outside(all_figures: Sequence[Figures]) -> None:
    """Refuse the first number that its measure cannot have.

    Raises:
        InputError: A measure cannot have this number; its location is given.
    """
    for figures in all_figures:
        if verdict(figures) != "outside" or figures.range is None:
            continue
        low, high = figures.range
        inside = figures.values.is_between(low - _OVER, high + _OVER).fill_null(value=True)
        at = (~inside).arg_true()[0]
        value = figures.values[at]
        ends = f"is at least {low:g}" if high == inf else f"lies between {low:g} and {high:g}"
        do = f"Correct it, or leave the column out (--without '{shown(figures.column)}')."
        if figures.share and 0 < value <= 100:
            do += f" Where all are percent, say so (--numbers '{shown(figures.column)}=percent')."
        problem = f"{shown(figures.column)} {ends}, and {value:.10g} does not."
        raise InputError(problem, where=figures.where(at), do=do)
