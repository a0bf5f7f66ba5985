"""Charts of the record that no page has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from core.views import text, theme

SHOWN = 16
"""Stacks drawn at most, in the order of the table."""
_LOOKS: Mapping[str, tuple[str, str]] = {
    "chosen": (theme.ACCENT, "diamond"),
    "runner-up": (theme.OKABE_ITO[0], "square"),
    "frontier": (theme.NEUTRAL, "circle"),
}


def intervals(rows: Sequence[Mapping[str, Any]], quality: str) -> go.Figure | None:
    """The quality of the finalists with its interval, one line each, the chosen one on top."""
    shown = [row for row in rows if row["quality"] is not None][:SHOWN]
    if len(shown) < 2 or all(row["quality_low"] is None for row in shown):
        return None
    traces = [_marks(shown, status) for status in _LOOKS if any(row["status"] == status for row in shown)]
    layout = theme.layout(x=f"{quality}, 95 % interval", height=110 + 30 * len(shown))
    names = [text.escape(text.shorten(str(row["stack"]), 56)) for row in shown]
    layout["yaxis"] |= {
        "tickvals": list(range(len(shown))),
        "ticktext": names,
        "range": [len(shown) - 0.4, -0.6],
    }
    return theme.finished(traces, layout)


def _marks(shown: Sequence[Mapping[str, Any]], status: str) -> theme.Spec:
    picked = [(place, row) for place, row in enumerate(shown) if row["status"] == status]
    colour, symbol = _LOOKS[status]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": status,
        "x": [row["quality"] for _, row in picked],
        "y": [place for place, _ in picked],
        "marker": {"color": colour, "symbol": symbol, "size": 11},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [_reach(row["quality_high"], row["quality"]) for _, row in picked],
            "arrayminus": [_reach(row["quality"], row["quality_low"]) for _, row in picked],
            "color": colour,
            "thickness": 2,
            "width": 5,
        },
        "text": [text.escape(str(row["stack"])) for _, row in picked],
        "customdata": [text.sample(row["n"]) for _, row in picked],
        "hovertemplate": "%{text}<br>%{x:.3f}, %{customdata}<extra></extra>",
    }


def _reach(high: float | None, low: float | None) -> float:
    return 0.0 if high is None or low is None else high - low
