"""The Pareto chart, which follows a dragged limit in the browser.

The strip of limits (`core.ui.limits`) and the chart communicate in the browser. If the browser
cannot load the charting library, the page is told and draws the chart like every other page.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import streamlit as st

from core.analysis.workspace.view import View
from core.ui import figures
from core.ui.assets import CARTESIAN
from core.ui.limits import current
from core.ui.pick import pick_from_chart
from core.views.decision.charts import ParetoView, drawing, figure_json, points
from core.views.decision.limits import limits
from core.views.text import plain
from core.views.theme import chart_config

_HERE = Path(__file__).parent
_KEY = "live_pareto"
_CHART = "pareto"

_component = st.components.v2.component(
    "clq_live_pareto",
    html=(_HERE / "chart.html").read_text(encoding="utf-8"),
    css=(_HERE / "chart.css").read_text(encoding="utf-8"),
    js=figures.script("chart.js"),
    isolate_styles=False,  # Plotly's own style sheet doesn't reach into a shadow root
)


def pareto_chart(view: View, drawn: ParetoView, alt: str, note: str) -> None:
    """Draw the chart with a note above it; a click on a mark selects its stack."""
    table = view.table
    if figures.failed():
        st.caption(plain(note))
        figures.draw(drawn.figure, _CHART, alt, pick_from_chart(table, f"chart_{_CHART}"))
        return

    def picked() -> None:
        _picked(table)

    _component(
        key=_KEY,
        data={
            **view.once(_tables, drawn),
            # A tuple, as Streamlit would look whether each value of the dictionary is a table.
            "told": (
                {
                    "drawing": view.once(_drawing, drawn),
                    "values": current(limits(table, view.quality, view.latency)),
                    "config": chart_config(_CHART),
                    "library": CARTESIAN,
                    "alt": alt,
                    "note": note,
                },
            ),
        },
        on_picked_change=picked,
        on_failed_change=figures.fail,
    )


def _drawing(view: View, drawn: ParetoView) -> dict[str, Any]:
    """Return what the browser draws over the chart, the same for all visitors."""
    return drawing(view.table, drawn)


def _tables(view: View, drawn: ParetoView) -> dict[str, pa.Table]:
    """Return the marks and the chart, the same for all visitors."""
    return {
        "points": points(view.table, drawn).to_arrow(compat_level=pl.CompatLevel.oldest()),
        # As a table: Streamlit would parse and rewrite text to identify it.
        "figure": pa.table({"json": [figure_json(drawn)]}),
    }


def _picked(table: pl.DataFrame) -> None:
    """Select the stack of a clicked mark; clients can send anything."""
    state: Any = st.session_state.get(_KEY)
    row = state.get("picked") if state else None
    if isinstance(row, int) and 0 <= row < table.height:
        st.session_state["stack"] = table["name"][row]
