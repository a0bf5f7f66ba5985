"""The limits that a decision is made under: their ranges, their sliders, and what was set elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import streamlit as st

from core.decide.axes import HARM, QUALITY, Axis, Floats, axes
from core.decide.jitter import JITTER_MS
from core.decide.rules import Constraints
from core.ui.state import bound
from core.views.text import plain
from core.views.workspace.harm import harm_measure
from core.views.workspace.jitter import jitter_kinds
from core.views.workspace.scope import Quality

SLIDERS = "limits"
"""Key of the container that holds the sliders; pages that bring sliders of their own hide it."""
_NEW_RANGES = "_new_ranges"


@dataclass(frozen=True)
class Limit:
    """A limit that can be set.

    Attributes:
        key: Setting of the address that holds it.
        label: Its name with the unit; may hold the name of a measure, which is a user's text.
        help: What it does.
        bottom: Lower end of its range.
        top: Upper end of its range.
        step: Distance of its values.
        none: The value at which there is no limit.
        word: What it limits.
        free: What is said where there is no limit.
        digits: Decimals of a share; None for a number with a unit, which is told with three digits.
        prefix: What stands before its number.
        suffix: What stands behind its number.
    """

    key: str
    label: str
    help: str
    bottom: float
    top: float
    step: float
    none: float
    word: str
    free: str
    digits: int | None
    prefix: str = ""
    suffix: str = ""

    def inside(self, value: object) -> float | None:
        """A value that came from outside, kept in the range; None where it is no number."""
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            return None
        return min(max(float(value), self.bottom), self.top)


def limits(table: pl.DataFrame, quality: Quality) -> list[Limit]:
    """The limits that make sense for a workspace.

    Args:
        table: The stack table.
        quality: The measure that stands for quality.

    Returns:
        One per axis of `core.decide.axes`; that of quality always, the others where numbers are known.
    """
    found = (_limit(axis, table, quality) for axis in axes(higher_is_better=quality.higher_is_better))
    return [each for each in found if each is not None]


def _limit(axis: Axis, table: pl.DataFrame, quality: Quality) -> Limit | None:
    numbers, share = axis.read(table), not axis.unit
    if axis.key != QUALITY.key and np.isnan(numbers).all():
        return None
    counted = axis.key == QUALITY.key and not quality.is_share
    scale = _counted(numbers) if counted else (0.0, 1.0, 0.01) if share else _steps(_ceiling(numbers))
    if scale is None:
        return None
    bottom, top, step = scale
    none, where = (bottom, "the lower end") if axis.higher_is_better else (top, "the upper end")
    prefix, _, suffix = axis.pattern.partition("{}")
    measure = harm_measure(table) if axis.key == HARM.key else quality.name
    return Limit(
        key=axis.limit,
        label=f"{axis.limit_word[0].upper()}{axis.limit_word[1:]} ({axis.unit_words or measure})",
        help=f"Stacks {axis.beyond} are excluded. At {where} there is none.",
        bottom=bottom,
        top=top,
        step=step,
        none=none,
        word=axis.word,
        free=f"no {axis.limit_word.split()[-1]}" if share else "no limit",
        digits=2 if share else None,
        prefix=prefix,
        suffix=suffix,
    )


def _steps(top: float | None) -> tuple[float, float, float] | None:
    """Lower end, upper end and step of a range from 0."""
    if top is None:
        return None
    digits = max(0, 4 - math.floor(math.log10(top)))
    top = round(top, digits)  # exact: tops have two significant digits
    return 0.0, top, round(top / 200, digits)


def _counted(values: Floats) -> tuple[float, float, float]:
    """Lower end, upper end and step for a quality that is no share: hundredths around the known values."""
    known = values[~np.isnan(values)]
    if not len(known):
        return 0.0, 1.0, 0.01
    bottom = math.floor(known.min() * 10)
    return bottom / 10, max(math.ceil(known.max() * 10), bottom + 1) / 10, 0.01


def _ceiling(values: Floats) -> float | None:
    """A round number at or above the largest value, of which some are known; None where all is free."""
    largest = float(np.nanmax(values))
    if largest <= 0:
        return None
    scale = 10.0 ** math.floor(math.log10(largest))
    return next(scale * step for step in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if scale * step >= largest)


def forget_ranges() -> None:
    """The next sliders have other ranges: values of the old ones do not carry over."""
    st.session_state[_NEW_RANGES] = True


def constraints(table: pl.DataFrame, quality: Quality, jitter_ms: float | None) -> Constraints:
    """Draw the sliders.

    Args:
        table: The stack table, which the ranges come from.
        quality: The measure that the floor is about.
        jitter_ms: The band that was set; None = that of the table.

    Returns:
        What they say.
    """
    with st.container(key=SLIDERS):
        found = limits(table, quality)
        values = {each.key: _slider(each) for each in found}
        if free := [each.word for each in found if values[each.key] is None]:
            st.caption(f"Not limited: {', '.join(free)}.")
    if st.session_state.pop(_NEW_RANGES, False):
        # A slider with a new range begins with the value of the address; from the second run on ours counts.
        st.session_state[_NEW_RANGES] = False
        st.rerun()
    given = {axis.field: values.get(axis.limit) for axis in axes(higher_is_better=quality.higher_is_better)}
    return Constraints(**given, jitter_ms=jitter_ms, higher_is_better=quality.higher_is_better)


def jitter(table: pl.DataFrame) -> float | None:
    """Draw the field of the jitter band, a setting that is rarely changed."""
    bands = jitter_kinds(table)
    value: float | None = st.number_input(
        "Jitter (ms)",
        min_value=0.0,
        value=None,
        step=5.0,
        format="%g",
        placeholder=f"{JITTER_MS:g}" if len(bands) != 1 else bands[0].partition(" ")[0],
        **bound("jitter", None),
        help="Latencies that differ by less are not told apart (CLQ paper §3.2): of the stacks within it "
        "that are not significantly worse than the best, query by query, the one with the smaller prompt is "
        "chosen. Left empty it is measured where passes were repeated, else 75 ms.",
    )
    if value is None and bands:
        st.caption(plain("; ".join(bands)))
    return value


def _slider(limit: Limit) -> float | None:
    """A slider over the range of the data; at one of its ends there is no limit."""
    if _NEW_RANGES in st.session_state:
        st.session_state[limit.key] = limit.none
    value: float = st.slider(
        limit.label if limit.digits is None else plain(limit.label),
        limit.bottom,
        limit.top,
        limit.none,
        limit.step,
        format="%.3g" if limit.digits is None else f"%.{limit.digits}f",
        key=limit.key,
        bind="query-params",
        help=limit.help,
    )
    return None if value == limit.none else value


def current(found: Sequence[Limit]) -> dict[str, float]:
    """Where the sliders of this script run stand."""
    return {each.key: float(st.session_state.get(each.key, each.none)) for each in found}


def take(found: Sequence[Limit], values: Mapping[str, object]) -> None:
    """In a callback: move the sliders to values that came from elsewhere, as far as those are numbers."""
    for each in found:
        value = each.inside(values.get(each.key))
        if value is not None:
            st.session_state[each.key] = value
