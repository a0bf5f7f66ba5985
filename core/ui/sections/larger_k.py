"""Larger K: what every step to the next K buys, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from core.ui import cache, show
from core.ui.view import View
from core.views.text import plain
from core.views.what_if import words
from core.views.what_if.deeper import PER, Per, step_chart, step_rows, steps
from core.views.what_if.routing.families import without_depth


def larger_k(view: View) -> None:
    """Draw the section."""
    rows = _steps(view)
    sentence = words.step_words(rows, view.quality, view.table)
    show.head(sentence)
    if rows.is_empty():
        return
    show.caveats({"when a step pays": words.PAYS})
    per: Per = st.segmented_control(
        "Quality bought per", tuple(PER), default="100 ms", required=True, key="per", bind="query-params"
    )
    row = view.decision.chosen
    chosen = None if row is None else without_depth(view.table["spec"][row])
    drawn = step_chart(rows, per, chosen)
    if drawn is None:
        st.caption(plain(f"Nothing to draw: no step moves quality, or none is known to cost more of {per}."))
    else:
        show.chart(drawn, "steps", alt=sentence)
        st.caption("Hollow: the step does not pay, for the reason in the table.")
    paying = pl.when(pl.col("pays")).then(pl.lit("yes")).otherwise(pl.lit("no")).alias("pays")
    show.table(rows.with_columns(paying), "steps", STEPS, more=STEPS_MORE)


@cache.cached("Pricing every step in K…", entries=16)
def _steps(view: View) -> pl.DataFrame:
    found = steps(view.snapshot, view.table, view.scope, quality=view.quality, latency=view.latency)
    return step_rows(found, view.table, higher_is_better=view.quality.higher_is_better)


def _signed(label: str, form: str = "%+.3g") -> Any:
    return st.column_config.NumberColumn(label, format=form)


STEPS: Mapping[str, Any] = {
    "family": show.text_column("stack without K", width=250),
    "from_k": show.number_column("from K", 0),
    "to_k": show.number_column("to K", 0),
    "d_quality": _signed("quality", "%+.3f"),
    "d_ms": _signed("ms"),
    "d_usd": _signed("$ / 1k"),
    "pays": show.text_column("pays"),
    "reason": show.text_column("why not", width=200),
}
STEPS_MORE: Mapping[str, Any] = {
    "per_100_ms": _signed("quality per 100 ms"),
    "per_usd": _signed("quality per $1"),
}
