"""The Pareto chart with its limits beside it, which follows a dragged limit in the browser.

The sliders of the sidebar hold the limits on every page: they are what the address, the link and the decision
read. Here the browser hides them and shows its own beside the chart; one that is let go moves that of the
sidebar, and whatever moves that of the sidebar moves this one. Where the browser cannot load the chart's
library, the page is told, draws the chart as every other page does, and the sidebar's sliders stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import plotly
import polars as pl
import streamlit as st
from streamlit.components.v1 import declare_component

from core.ui import show
from core.ui.limits import SLIDERS, Limit, current, limits, take
from core.ui.pick import pick_from_chart
from core.ui.view import View
from core.views.decision.chart import ParetoView
from core.views.decision.live import drawing, points
from core.views.theme import chart_config

_HERE = Path(__file__).parent
_KEY, _ANSWERED, _FAILED = "live_pareto", "_live_answered", "_live_failed"
_CHART = "pareto"

# Streamlit keeps its copy of Plotly to itself, so the one that the plotly package brings is served beside it.
_LIBRARY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"

_component = st.components.v2.component(
    "clq_live_pareto",
    html=(_HERE / "chart.html").read_text(encoding="utf-8"),
    css=(_HERE / "chart.css").read_text(encoding="utf-8").replace("SLIDERS", SLIDERS),
    js=(_HERE / "chart.js").read_text(encoding="utf-8"),
    isolate_styles=False,  # Plotly's own style sheet does not reach into a shadow root
)


@st.cache_resource(show_spinner=False)
def _folder() -> str:
    """Serve the folder of the library; to be called while a page runs, else Streamlit does not take it in."""
    return declare_component("plotly", path=_LIBRARY.parent).name


def pareto_chart(view: View, found: ParetoView, alt: str) -> None:
    """Draw the chart with its sliders; a click on a mark selects its stack.

    Args:
        view: The workspace.
        found: The chart.
        alt: What it shows, in words.
    """
    table = view.table
    if st.session_state.get(_FAILED):
        chosen = pick_from_chart(table, f"chart_{_CHART}")
        show.chart(found.figure, _CHART, on_select=chosen, selection_mode="points", alt=alt)
        return
    offered = limits(table, view.quality)

    def released() -> None:
        _released(offered)

    def picked() -> None:
        _picked(table)

    _component(
        key=_KEY,
        data={
            "points": points(table, found).to_arrow(compat_level=pl.CompatLevel.oldest()),
            "figure": found.figure.to_json(),
            "drawing": drawing(table, found),
            "limits": [asdict(each) for each in offered],
            "values": current(offered),
            "answered": st.session_state.get(_ANSWERED, 0),
            "config": chart_config(_CHART),
            "library": f"component/{_folder()}/{_LIBRARY.name}",
            "alt": alt,
        },
        on_released_change=released,
        on_picked_change=picked,
        on_failed_change=_failed,
    )


def _sent(name: str) -> Any:
    """What the browser sent under a name; anybody can send anything."""
    state = st.session_state.get(_KEY)
    return state.get(name) if state else None


def _failed() -> None:
    """Do without the live chart for the rest of the session."""
    st.session_state[_FAILED] = True


def _released(offered: Sequence[Limit]) -> None:
    """Move the sidebar's sliders to where those of the chart were let go."""
    sent = _sent("released")
    if isinstance(sent, dict) and isinstance(sent.get("values"), dict):
        take(offered, sent["values"])
        number = sent.get("number")
        st.session_state[_ANSWERED] = number if isinstance(number, int) else 0


def _picked(table: pl.DataFrame) -> None:
    """Select the stack of a mark that was clicked."""
    row = _sent("picked")
    if isinstance(row, int) and 0 <= row < table.height:
        st.session_state["stack"] = table["name"][row]
