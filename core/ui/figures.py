"""Charts as drawn by the browser: with the library served here, the visible ones first.

Streamlit's own method loads three times as much and draws each chart three or four times. If the browser
cannot load the library, the page is told and draws charts that way.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pyarrow as pa
import streamlit as st
from plotly.io.json import to_json_plotly

from core.ui.assets import CARTESIAN, PLOTLY
from core.views.theme import chart_config

_LIVE = Path(__file__).with_name("live")
_FAILED = "_library_failed"  # Session slot
_FURTHER = ("parcoords",)  # Traces missing from the small library
_HIGH = 450  # Pixels of a chart without a height


def script(name: str) -> str:
    """Return the script of a component that draws charts."""
    return "".join((_LIVE / file).read_text(encoding="utf-8") for file in ("plotly.js", name))


_component = st.components.v2.component(
    "clq_figure",
    html='<div class="clq-figure"><div class="clq-plot"></div></div>',
    js=script("figure.js"),
    isolate_styles=False,  # Plotly's own style sheet doesn't reach into a shadow root
)


def draw(figure: go.Figure, name: str, alt: str, chosen: Callable[[], None] | None = None) -> None:
    """Draw a chart.

    Args:
        name: File name without extension, and key.
        alt: Text for screen readers.
        chosen: Called when a mark is clicked; `core.ui.pick.selected_row` returns which.
    """
    key, config = f"chart_{name}", chart_config(name)
    if failed():
        clicked: dict[str, Any] = {} if chosen is None else {"on_select": chosen, "selection_mode": "points"}
        st.plotly_chart(figure, key=key, config=config, width="stretch", alt=alt, **clicked)
        return
    specification = figure.to_dict()
    specification["layout"].pop("template", None)  # colours are set when it is drawn
    height = figure.layout.height or _HIGH
    data = {
        # As a table: Streamlit would parse and rewrite text to identify it.
        "chart": pa.table({"json": [to_json_plotly(specification)]}),
        "config": config,
        "library": PLOTLY if any(each.type in _FURTHER for each in figure.data) else CARTESIAN,
        "alt": alt,
        "clicks": chosen is not None,
        "height": height,
    }
    _component(key=key, data=data, height=int(height), on_picked_change=chosen, on_failed_change=fail)


def failed() -> bool:
    """Return whether this session's browser failed to load the library."""
    return bool(st.session_state.get(_FAILED))


def fail() -> None:
    """Do without the library for the rest of the session (a callback)."""
    st.session_state[_FAILED] = True
