"""Charts of the compare page: differences with intervals, score against score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import polars as pl

from core.views import text, theme
from core.views.compare.page import LOSSES, OPEN, TIES, WINS
from core.views.compare.words import gap, p_value
from core.views.workspace.scope import Quality

Places = npt.NDArray[np.int64]
Looks = Mapping[str, tuple[str, str]]

LABELLED = 12  # Rows of a forest that get a label above their mark; more of them are told apart by pointing
LOOKS: Looks = {
    WINS: (theme.OKABE_ITO[0], "triangle-up"),
    LOSSES: (theme.OKABE_ITO[5], "triangle-down"),
    TIES: (theme.NEUTRAL, "circle"),
    OPEN: (theme.NEUTRAL, "circle-open"),
}
"""Colour and symbol of a verdict: nothing is told by colour alone."""
_QUESTION = 60
_LINE = 50  # characters of a label that a narrow screen has room for
_NAME = 34
_LISTED = 3
_STILL = {"selected": {"marker": {"opacity": 0.9}}, "unselected": {"marker": {"opacity": 0.9}}}
"""A click opens something; the other marks stay as they are."""


def looks_of(first: str, second: str) -> Looks:
    """`LOOKS` of one pair: what the second wins has its colour, what it loses that of the first."""
    colours = theme.colours_for((second, first))
    won, lost = ((colours[name], LOOKS[side][1]) for name, side in ((second, WINS), (first, LOSSES)))
    return {**LOOKS, WINS: won, LOSSES: lost}


def forest(
    rows: pl.DataFrame, labels: Sequence[str], title: str, *, looks: Looks = LOOKS, short: bool = False
) -> go.Figure:
    """Differences with their intervals, one below the other.

    Args:
        rows: From `core.views.compare.page.differences`, or with the same columns.
        short: Whether the labels are short enough to stand beside the rows.

    Returns:
        The chart; customdata[0] of every mark is the row.
    """
    roomy = rows.height <= LABELLED and not short
    lines = [_wrapped(label) for label in labels] if roomy else []
    a_row = 26 if short else (72 if any("<br>" in line for line in lines) else 46) if roomy else 13
    layout = theme.layout(x=title, height=90 + a_row * rows.height)
    y = np.arange(rows.height)[::-1]
    marks = []
    for verdict in (WINS, LOSSES, OPEN):
        picked = np.flatnonzero((rows["verdict"] == verdict) & rows["difference"].is_not_null())
        if len(picked):
            trace = _whiskered(rows[picked], y[picked], picked, [labels[row] for row in picked.tolist()])
            colour, symbol = looks[verdict]
            line = {"width": 2, "color": colour}
            trace["marker"] = {
                "color": colour, "symbol": symbol, "line": line, "size": 11 if roomy or short else 8
            }  # fmt: skip
            marks.append({**trace, "name": verdict, "error_x": {**trace["error_x"], "color": colour}})
    layout["annotations"] = [
        {"x": 0, "xref": "paper", "xanchor": "left", "y": float(place), "yanchor": "bottom", "yshift": 8,
         "showarrow": False, "font": {"size": 12}, "align": "left", "text": label}
        for place, label in zip(y, lines, strict=False)
    ]  # fmt: skip
    ticks = {"tickvals": y, "ticktext": [text.escape(text.shorten(label, 40)) for label in labels]}
    layout["yaxis"] |= {"range": [-0.6, rows.height - (0.4 if short else 0.2)], "showgrid": False}
    layout["yaxis"] |= ticks if short else {"visible": False}
    layout["xaxis"]["range"] = _around_zero(rows)
    return theme.finished([_too_small(rows, y), _zero(y, 0.25 if roomy else 0.5), *marks], layout)


def _wrapped(label: str) -> str:
    """A label on one line, or on two where it is long and names two stacks."""
    parts = label.split(" against ") if len(label) > _LINE else [label]
    return "<br>against ".join(text.escape(text.shorten(part, _LINE)) for part in parts)


def _around_zero(rows: pl.DataFrame) -> list[float]:
    """The axis as far as the intervals reach, with 0 on it."""
    ends = rows.select("difference", "low", "high").to_numpy().ravel()
    low, high = np.nanmin(ends, initial=0.0), np.nanmax(ends, initial=0.0)
    room = max(0.005, 0.08 * float(high - low))
    return [float(low) - room, float(high) + room]


def _too_small(rows: pl.DataFrame, y: Places) -> theme.Spec:
    """A light bar over the differences that the queries are too few to show."""
    least = rows["detectable"].fill_null(0.0).to_numpy()
    return {
        "type": "bar",
        "orientation": "h",
        "x": 2 * least,
        "base": -least,
        "y": y,
        "width": 0.34,
        "name": "too small to show",
        "marker": {"color": theme.NEUTRAL, "opacity": 0.22, "line": {"width": 0}},
        "hoverinfo": "skip",
    }


def _zero(y: Places, half: float) -> theme.Spec:
    """The line of no difference, row by row: in one piece it would run through the labels."""
    ends = np.column_stack([y - half, y + half, np.full(len(y), np.nan)]).ravel()
    return {
        "type": "scatter",
        "x": np.where(np.isnan(ends), np.nan, 0.0),
        "y": ends,
        "mode": "lines",
        "line": {"color": theme.NEUTRAL, "width": 1},
        "showlegend": False,
        "hoverinfo": "skip",
    }


def _whiskered(part: pl.DataFrame, y: Places, rows: Places, labels: Sequence[str]) -> theme.Spec:
    apart = part["difference"]
    return {
        "type": "scatter",
        "x": apart.to_numpy(),
        "y": y,
        "mode": "markers",
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": (part["high"] - apart).fill_null(0).to_numpy(),
            "arrayminus": (apart - part["low"]).fill_null(0).to_numpy(),
            "thickness": 1.5,
            "width": 4,
        },
        "customdata": rows[:, None],
        "hovertext": [_told(row, name) for row, name in zip(part.iter_rows(named=True), labels, strict=True)],
        "hovertemplate": "%{hovertext}<extra></extra>",
        **_STILL,
    }


def _told(row: dict[str, Any], label: str) -> str:
    return (
        f"<b>{text.escape(label)}</b><br>{gap(row)}, {p_value(row['p_holm'])} (adjusted), n = {row['n']}<br>"
        f"wins {row['wins']}, ties {row['ties']}, losses {row['losses']}"
    )


def scatter(rows: pl.DataFrame, names: tuple[str, str], quality: Quality, tolerance: float) -> go.Figure:
    """Each query at its two scores; queries with the same scores share one, larger mark.

    Args:
        rows: From `core.views.compare.sides.flips`.
        names: The first stack (x) and the second (y).
        tolerance: Half the height of the band of ties.

    Returns:
        The chart; customdata[0] of every mark is the row of its first query.
    """
    known = rows.with_row_index("row").filter(pl.col("outcome").is_not_null())
    marks = (
        known.with_columns(pl.col("other", "score").round(4).name.suffix("_at"))
        .group_by("other_at", "score_at", "outcome", maintain_order=True)
        .agg(pl.col("row").first(), pl.len().alias("queries"), pl.col("query_id", "text").head(_LISTED))
    )
    layout = theme.layout(height=320)
    for axis, name in zip(("xaxis", "yaxis"), names, strict=True):
        layout[axis]["title"] = {
            "text": f"{text.escape(quality.name)} of<br>{text.escape(text.shorten(name, 26))}"
        }
    ends = known.select("other", "score").to_numpy()
    low, high = np.min(ends, initial=1.0), np.max(ends, initial=0.0)
    room = max(0.02, 0.05 * float(high - low))
    fitted = {"range": [float(low) - room, float(high) + room]}
    layout["xaxis"] |= {**fitted, "constrain": "domain"}
    layout["yaxis"] |= {**fitted, "constrain": "domain", "scaleanchor": "x"}
    layout["shapes"] = _band(tolerance, *fitted["range"])
    looks = looks_of(*names)
    titles = {WINS: f"{text.shorten(names[1], _NAME)} better", TIES: TIES}
    titles[LOSSES] = f"{text.shorten(names[0], _NAME)} better"
    traces = []
    for outcome, title in titles.items():
        part = marks.filter(outcome=outcome)
        if part.is_empty():
            continue
        colour, symbol = looks[outcome]
        size, line = 9 * np.sqrt(np.minimum(part["queries"].to_numpy(), 9)), {"width": 1, "color": colour}
        traces.append({
            "type": "scatter",
            "x": part["other_at"].to_numpy(),
            "y": part["score_at"].to_numpy(),
            "mode": "markers",
            "name": f"{text.escape(title)} ({part['queries'].sum()})",
            "marker": {"color": colour, "symbol": symbol, "size": size, "line": line},
            "customdata": part["row"].to_numpy()[:, None],
            "hovertext": [_queries(row) for row in part.iter_rows(named=True)],
            "hovertemplate": "%{hovertext}<extra></extra>",
            **_STILL,
        })  # fmt: skip
    return theme.finished(traces, layout)


def _band(tolerance: float, low: float, high: float) -> list[theme.Spec]:
    """The diagonal, and the light band of ties along it."""
    path = (
        f"M {low} {low - tolerance} L {high} {high - tolerance} L {high} {high + tolerance} "
        f"L {low} {low + tolerance} Z"
    )
    band = {"type": "path", "path": path, "fillcolor": theme.NEUTRAL, "opacity": 0.2, "line": {"width": 0}}
    line = {"type": "line", "x0": low, "y0": low, "x1": high, "y1": high}
    return [
        {**band, "layer": "below"},
        {**line, "line": {"color": theme.NEUTRAL, "width": 1}, "layer": "below"},
    ]


def _queries(row: dict[str, Any]) -> str:
    lines = [
        f"<b>{text.escape(name)}</b> {text.escape(text.shorten(question or '', _QUESTION))}"
        for name, question in zip(row["query_id"], row["text"], strict=True)
    ]
    more = row["queries"] - len(lines)
    if more:
        lines.append(f"and {text.count(more, 'other query', 'other queries')}")
    return "<br>".join([*lines, f"{text.score(row['other_at'])} → {text.score(row['score_at'])}"])
