"""Columns of the tables on the cost page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from core.ui import show


def _exact(label: str, help_text: str = "") -> Any:
    """A column of numbers from millionths to millions: six significant digits, so that none becomes 0."""
    return st.column_config.NumberColumn(label, format="%.6g", help=help_text or None, width=98)


BILL_COLUMNS: Mapping[str, Any] = {
    "stage": show.text_column("stage", width=112),
    "item": show.text_column("item", width=118),
    "units_per_query": _exact("units / query", "Tokens, search units, requests or hours."),
    "unit": show.text_column("unit", width=105),
    "basis": show.text_column(
        "known how", "measured, imported or published: recorded by the stack; else modelled."
    ),
    "unit_price": show.text_column("unit price", "Amount and currency / number of units it buys.", 145),
    "usd_per_query": _exact("$ / query"),
    "usd_per_1k": _exact("$ / 1k", "Per 1,000 queries."),
    "usd_per_month": _exact("$ / month"),
    "confirmed": show.text_column("confirmed", "yes: two independent public pages state it."),
    "looked_up": st.column_config.DateColumn("looked up"),
    "source": show.text_column("source", width="large"),
    "note": show.text_column("note"),
    "reason": show.text_column("unknown because"),
}
"""The columns of the bill, in order."""


def paper_columns(table: pl.DataFrame, first: str) -> dict[str, Any]:
    """Columns of one of the paper's tables: what it counts, then a column of dollars per model."""
    priced = {name: show.number_column(name, 2, prefix="$") for name in table.columns[1:]}
    return {table.columns[0]: show.number_column(first, 0), **priced}


SWING_COLUMNS: Mapping[str, Any] = {
    "input": show.text_column("input", width=230),
    "width": _exact("moves by $", "The monthly bill, from one end of the range to the other."),
    "usd_low": _exact("$ at lower", "Monthly bill where the input is lower."),
    "usd_high": _exact("$ at higher", "Monthly bill where the input is higher."),
    "low": _exact("lower"),
    "value": _exact("as it is"),
    "high": _exact("higher"),
}
"""The columns of the sensitivity, in order."""

RECORDED_COLUMNS: Mapping[str, Any] = {
    "stage": show.text_column("stage", width=112),
    "item": show.text_column("item", width=118),
    "units_per_query": _exact("units / query", "Mean over the queries."),
    "unit": show.text_column("unit", width=105),
    "usd_per_1k": _exact("$ / 1k", "Per 1,000 queries."),
    "basis": show.text_column("known how"),
    "reason": show.text_column("unknown because"),
}
"""The columns of the recorded cost, in order."""
