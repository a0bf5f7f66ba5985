"""The three limits that a decision is made under: their ranges, their sliders, and what was set elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl
import streamlit as st

from core.clq.rules import JITTER_MS, Constraints
from core.views.scope import Quality
from core.views.text import plain

SLIDERS = "limits"
"""Key of the container that holds the sliders; pages that bring sliders of their own hide it."""
_SHORT = {"sla": "latency", "budget": "cost", "floor": "quality"}
_NEW_RANGES = "_new_ranges"


@dataclass(frozen=True)
class Limit:
    """A limit that can be set.

    Attributes:
        key: Setting of the address that holds it.
        label: Its name with the unit; may hold the name of a measure, which is a user's text.
        help: What it does.
        top: Upper end of its range; the lower end is 0.
        step: Distance of its values.
        none: The value at which there is no limit.
        column: What it is compared with: latency, cost or quality.
        prefix: What stands before its number.
        suffix: What stands behind its number.
    """

    key: str
    label: str
    help: str
    top: float
    step: float
    none: float
    column: str
    prefix: str = ""
    suffix: str = ""

    def inside(self, value: object) -> float | None:
        """A value that came from outside, kept in the range; None where it is no number."""
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            return None
        return min(max(float(value), 0.0), self.top)


def limits(table: pl.DataFrame, quality: Quality) -> list[Limit]:
    """The limits that make sense for a workspace.

    Args:
        table: The stack table.
        quality: The measure that stands for quality.

    Returns:
        SLA, budget and floor; the first two only where latencies, or costs, are known.
    """
    upper = " At the upper end there is no limit."
    found = []
    if top := _ceiling(table["latency_ms"]):
        text = "Stacks slower than this are excluded." + upper
        found.append(Limit("sla", "SLA (ms)", text, *_steps(top), "latency", suffix=" ms"))
    if top := _ceiling(table["cost"]):
        text = "Stacks that cost more are excluded." + upper
        label = "Budget ($ per 1,000 queries)"
        found.append(Limit("budget", label, text, *_steps(top), "cost", prefix="$", suffix=" / 1k"))
    text = "Stacks that score less are excluded. At 0 there is no floor."
    found.append(Limit("floor", f"Quality floor ({quality.name})", text, 1.0, 0.01, 0.0, "quality"))
    return found


def _steps(top: float) -> tuple[float, float, float]:
    """Upper end, step, and the value that stands for no limit: the upper end."""
    digits = max(0, 4 - math.floor(math.log10(top)))
    top = round(top, digits)  # exact: tops have two significant digits
    return top, round(top / 200, digits), top


def _ceiling(values: pl.Series) -> float | None:
    """A round number at or above the largest known value; None where nothing is known or all is free."""
    largest = values.max()
    if not isinstance(largest, (int, float)) or largest <= 0:
        return None
    scale = 10.0 ** math.floor(math.log10(largest))
    return next(scale * step for step in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if scale * step >= largest)


def forget_ranges() -> None:
    """The next sliders have other ranges: values of the old ones do not carry over."""
    st.session_state[_NEW_RANGES] = True


def constraints(table: pl.DataFrame, quality: Quality) -> Constraints:
    """Draw the sliders and the jitter band.

    Args:
        table: The stack table, which the ranges come from.
        quality: The measure that the floor is about.

    Returns:
        What they say.
    """
    with st.container(key=SLIDERS):
        found = limits(table, quality)
        values = {each.key: _slider(each) for each in found}
        if free := [_SHORT[each.key] for each in found if values[each.key] is None]:
            st.caption(f"Not limited: {', '.join(free)}.")
    jitter = st.number_input(
        "Jitter (ms)",
        min_value=0.0,
        value=JITTER_MS,
        step=5.0,
        format="%g",
        key="jitter",
        bind="query-params",
        help="Latencies that differ by less are not told apart (CLQ paper §3.2): among stacks within it and "
        "within the quality interval of the best, the smaller and cheaper one is chosen.",
    )
    if st.session_state.pop(_NEW_RANGES, False):
        # A slider with a new range begins with the value of the address; from the second run on ours counts.
        st.session_state[_NEW_RANGES] = False
        st.rerun()
    return Constraints(
        sla_ms=values.get("sla"), budget=values.get("budget"), floor=values["floor"], jitter_ms=jitter
    )


def _slider(limit: Limit) -> float | None:
    """A slider over the range of the data; at one of its ends there is no limit."""
    if _NEW_RANGES in st.session_state:
        st.session_state[limit.key] = limit.none
    value: float = st.slider(
        plain(limit.label) if limit.key == "floor" else limit.label,
        0.0,
        limit.top,
        limit.none,
        limit.step,
        format="%.2f" if limit.key == "floor" else "%.3g",
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
