"""Charts of the page that says how sure a choice is."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.decide.rules import Decision
from core.views import text, theme
from core.views.confidence.sure import APART
from core.views.decision.facts import Asked

SHOWN = 12
"""Stacks in the chart of chances; the table has all."""
_LINE = 58
_DOTS = (
    ("p_frontier", "on the frontier", "diamond-open", theme.OKABE_ITO[2]),
    ("p_sla", "meets the SLA", "square-open", theme.OKABE_ITO[1]),
    ("p_feasible", "within all limits", "circle-open", theme.OKABE_ITO[3]),
)


def chances(rows: pl.DataFrame) -> go.Figure | None:
    """Bars: how often a stack is the best; marks: how often it is on the frontier and within the limits.

    Args:
        rows: From `core.views.confidence.sure.share_rows`.

    Returns:
        The first `SHOWN` stacks; None where no chance is known.
    """
    drawn = rows.filter(pl.col("p_best").is_not_null()).head(SHOWN)
    if drawn.is_empty():
        return None
    layout = theme.layout(x="Share of the resamples", height=110 + 42 * drawn.height)
    y = np.arange(drawn.height, dtype=float)[::-1]
    traces: list[theme.Spec] = [
        {
            "type": "bar",
            "orientation": "h",
            "x": drawn["p_best"].to_numpy(),
            "y": y,
            "width": 0.34,
            "name": "is the best",
            "marker": {"color": [_colour(status) for status in drawn["status"]]},
            "hovertext": _hovers(drawn),
            "hovertemplate": "%{hovertext}<extra></extra>",
        }
    ]
    for column, title, symbol, colour in _DOTS:
        if _tells(drawn[column]):
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "x": drawn[column].to_numpy(),
                    "y": y,
                    "name": title,
                    "marker": {"symbol": symbol, "size": 11, "color": colour, "line": {"width": 2}},
                    "hovertext": _hovers(drawn),
                    "hovertemplate": "%{hovertext}<extra></extra>",
                    "cliponaxis": False,
                }
            )
    layout["annotations"] = [
        {"x": 0, "xref": "paper", "xanchor": "left", "y": float(place), "yanchor": "bottom", "yshift": 6,
         "showarrow": False, "font": {"size": 12}, "text": _label(row)}
        for place, row in zip(y, drawn.iter_rows(named=True), strict=True)
    ]  # fmt: skip
    layout["yaxis"] |= {"visible": False, "range": [-0.5, drawn.height - 0.1]}
    layout["xaxis"] |= {"range": [0, 1.02], "tickformat": ".0%"}
    layout["legend"] |= {"traceorder": "normal"}
    return theme.finished(traces, layout)


def _tells(shares: pl.Series) -> bool:
    """Whether a share is known, and is not simply 1 for all."""
    return not (shares.is_null() | (shares == 1)).all()


def _colour(status: str) -> str:
    return theme.ACCENT if status == "chosen" else theme.FRONTIER if status != "excluded" else theme.NEUTRAL


def _label(row: dict[str, object]) -> str:
    status = row["status"]
    mark = f" · <b>{status}</b>" if status in ("chosen", "runner-up", "excluded") else ""
    return text.escape(text.shorten(str(row["name"]), _LINE)) + mark


def _hovers(drawn: pl.DataFrame) -> list[str]:
    words = (
        ("best", "p_best"),
        ("on the frontier", "p_frontier"),
        ("meets the SLA", "p_sla"),
        ("within all limits", "p_feasible"),
    )
    return [
        f"<b>{text.escape(row['name'])}</b><br>"
        + "<br>".join(f"{label}: {text.percent(row[name])}" for label, name in words if row[name] is not None)
        for row in drawn.iter_rows(named=True)
    ]


def band(table: pl.DataFrame, near: pl.DataFrame, decision: Decision, asked: Asked) -> go.Figure | None:
    """Latency and quality with the band in which stacks are not told apart from the chosen one.

    Args:
        table: The stack table.
        near: From `core.views.confidence.sure.alike`.
        decision: What was selected from it, and the width of the band.
        asked: For the names of the axes.

    Returns:
        The chart; None without a chosen stack that has a quality interval and a latency.
    """
    chosen = decision.chosen
    if chosen is None:
        return None
    best = table.row(chosen, named=True)
    if best["quality_low"] is None or best["latency_ms"] is None:
        return None
    rows = table.with_row_index("row").filter(
        pl.Series(decision.feasible), pl.col("quality").is_not_null(), pl.col("latency_ms").is_not_null()
    )
    inside = near["row"].to_list()
    differ = near.filter(pl.col("reading") == APART)["row"].to_list()
    place = pl.col("row")
    groups = (
        ("told apart from it", theme.NEUTRAL, "x-thin-open", ~place.is_in([*inside, chosen])),
        ("told apart query by query", theme.OKABE_ITO[4], "circle-open", place.is_in(differ)),
        ("cannot be told apart", theme.FRONTIER, "circle", place.is_in(inside) & ~place.is_in(differ)),
        ("chosen", theme.ACCENT, "diamond", place == chosen),
    )
    shown = [(title, colour, symbol, rows.filter(which)) for title, colour, symbol, which in groups]
    layout = theme.layout(x=asked.latency.name, y=asked.quality.name, height=400)
    jitter = decision.jitter_ms
    latencies = rows["latency_ms"].to_numpy()
    room = max(0.06 * float(np.ptp(latencies)), 1e-3 * float(latencies.max()), 1e-6)
    low, high = float(latencies.min()) - room, float(latencies.max()) + room
    layout["xaxis"]["range"] = [low, high]
    layout["shapes"] = [
        {
            "type": "rect",
            "x0": max(low, best["latency_ms"] - jitter),
            "x1": min(high, best["latency_ms"] + jitter),
            "y0": best["quality_low"],
            "y1": best["quality_high"],
            "fillcolor": "rgba(213, 94, 0, 0.12)",
            "line": {"width": 0},
            "layer": "below",
        }
    ]
    return theme.finished([_marks(*each) for each in shown if not each[-1].is_empty()], layout)


def _marks(title: str, colour: str, symbol: str, rows: pl.DataFrame) -> theme.Spec:
    quality = rows["quality"].to_numpy()
    trace: theme.Spec = {
        "type": "scatter",
        "mode": "markers",
        "name": f"{title} ({rows.height:,})" if title != "chosen" else title,
        "x": rows["latency_ms"].to_numpy(),
        "y": quality,
        "marker": {
            "color": colour,
            "symbol": symbol,
            "size": 13 if title == "chosen" else 9,
            "line": {"width": 2},
        },
        "hovertext": [
            f"{text.escape(row['name'])}<br>{text.ms(row['latency_ms'])} · {text.score(row['quality'])}"
            f"{text.interval(row['quality_low'], row['quality_high'])}, {text.sample(row['n'])}"
            for row in rows.iter_rows(named=True)
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
    if not title.startswith("told apart") and rows.height <= 40:
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": rows["quality_high"].cast(pl.Float64).to_numpy() - quality,
            "arrayminus": quality - rows["quality_low"].cast(pl.Float64).to_numpy(),
            "thickness": 1,
            "width": 2,
        }
    return trace
