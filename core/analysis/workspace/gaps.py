"""The difference between two stacks in quality, and whether it exceeds chance, in a few words."""

from __future__ import annotations

import polars as pl

from core.analysis.workspace.view import View
from core.number_format import signed
from core.stats.intervals import CLUSTERS, LEAST

UNTESTED = "averages only, significance unknown"
ALIKE = "no significant difference"


def gap(view: View, stack: str, other: str) -> str:
    """Describe how much better or worse a stack is than another, query by query.

    Args:
        stack: Its name.
        other: The name of the stack to compare with.

    Returns:
        ``significant, +0.031, 95 % CI +0.010 to +0.052`` or ``no significant difference, …`` over the queries
        of both; `UNTESTED` if only averages are known.
    """
    rows = view.table.select("name", "run_id").unique("name", keep="first")
    run_ids = dict(rows.iter_rows())
    if view.paired is None:
        return UNTESTED
    one, two = view.paired.places(pl.Series([run_ids[stack], run_ids[other]], dtype=pl.String))
    if one < 0 or two < 0:
        return UNTESTED
    n = int(view.paired.common(int(two), pl.Series([int(one)]).to_numpy())[0])
    if n < LEAST:
        return f"too few queries to test: {n} in common"
    units = view.paired.units
    if view.paired.clusters is not None and units < CLUSTERS:
        return f"too few groups of questions to test: {units}"
    difference, low, high = (float(end[0]) for end in view.paired.differences(one.reshape(1), int(two)))
    return tested(difference, low, high)


def tested(difference: float, low: float | None, high: float | None) -> str:
    """Describe whether a difference exceeds chance, from its 95 % interval."""
    if low is None or high is None:
        return UNTESTED
    real = "significant" if low > 0 or high < 0 else ALIKE
    return f"{real}, {signed(difference)}, 95 % CI {signed(low)} to {signed(high)}"
