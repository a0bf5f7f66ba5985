"""Charts of the compare page: differences with intervals, score against score, overlap against difference."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import polars as pl

from core.views import text, theme
from core.views.compare.page import LOSSES, OPEN, TIES, WINS, p_value
from core.views.queries.page import signed
from core.views.workspace.scope import Quality

LABELLED = 12
"""Rows of a forest that get a label above their mark; more of them are told apart by pointing."""
LOOKS = {
    WINS: (theme.OKABE_ITO[0], "triangle-up"),
    LOSSES: (theme.OKABE_ITO[5], "triangle-down"),
    TIES: (theme.NEUTRAL, "circle"),
    OPEN: (theme.NEUTRAL, "circle-open"),
}
"""Colour and symbol of a verdict: nothing is told by colour alone."""
Places = npt.NDArray[np.int64]
_QUESTION = 60
_LINE = 50  # characters of a label that a narrow screen has room for
_LISTED = 3


def forest(rows: pl.DataFrame, labels: list[str], title: str) -> go.Figure:
    """Differences with their intervals, one below the other.

    Args:
        rows: From `core.views.compare.page.differences`, or with the same columns.
        labels: What each row is called.
        title: Name of the difference.

    Returns:
        The chart; customdata[0] of every mark is the row.
    """
    roomy = rows.height <= LABELLED
    lines = [_wrapped(label) for label in labels] if roomy else []
    tall = any("<br>" in each for each in lines)
    layout = theme.layout(x=title, height=90 + (72 if tall else 46 if roomy else 13) * rows.height)
    y = np.arange(rows.height)[::-1]
    marks = []
    for verdict in (WINS, LOSSES, OPEN):
        picked = np.flatnonzero((rows["verdict"] == verdict) & rows["difference"].is_not_null())
        if len(picked):
            trace = _whiskered(rows[picked], y[picked], picked, [labels[row] for row in picked], verdict)
            trace["marker"]["size"] = 11 if roomy else 8
            marks.append(trace)
    layout["annotations"] = [
        {"x": 0, "xref": "paper", "xanchor": "left", "y": float(place), "yanchor": "bottom", "yshift": 8,
         "showarrow": False, "font": {"size": 12}, "align": "left", "text": label}
        for place, label in zip(y, lines, strict=False)
    ]  # fmt: skip
    layout["yaxis"] |= {"visible": False, "range": [-0.6, rows.height - 0.2]}
    layout["xaxis"]["range"] = _around_zero(rows)
    return theme.finished([_too_small(rows, y), _zero(y, 0.25 if roomy else 0.5), *marks], layout)


def _wrapped(label: str) -> str:
    """A label on one line, or on two where it is long and names two stacks."""
    parts = label.split(" against ") if len(label) > _LINE else [label]
    lines = [text.escape(text.shorten(each, _LINE)) for each in parts]
    return "<br>against ".join(lines)


def _around_zero(rows: pl.DataFrame) -> list[float]:
    ends = rows.select("difference", "low", "high", "detectable").to_numpy().ravel()
    reach = 1.1 * max(0.01, float(np.nanmax(np.abs(ends), initial=0.0)))
    return [-reach, reach]


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


def _whiskered(part: pl.DataFrame, y: Places, rows: Places, labels: list[str], verdict: str) -> theme.Spec:
    colour, symbol = LOOKS[verdict]
    return {
        "type": "scatter",
        "x": part["difference"].to_numpy(),
        "y": y,
        "mode": "markers",
        "name": verdict,
        "marker": {"color": colour, "symbol": symbol, "line": {"width": 2, "color": colour}},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": (part["high"] - part["difference"]).fill_null(0).to_numpy(),
            "arrayminus": (part["difference"] - part["low"]).fill_null(0).to_numpy(),
            "color": colour,
            "thickness": 1.5,
            "width": 4,
        },
        "customdata": rows[:, None],
        "hovertext": [_told(row, name) for row, name in zip(part.iter_rows(named=True), labels, strict=True)],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "selected": {"marker": {"opacity": 1}},
        "unselected": {"marker": {"opacity": 1}},
    }


def _told(row: dict[str, Any], label: str) -> str:
    bounds = "" if row["low"] is None else f" [{signed(row['low'])}, {signed(row['high'])}]"
    return (
        f"<b>{text.escape(label)}</b><br>{signed(row['difference'])}{bounds}, {p_value(row['p_holm'])} "
        f"(adjusted), n = {row['n']}<br>wins {row['wins']}, ties {row['ties']}, losses {row['losses']}"
    )


def scatter(rows: pl.DataFrame, names: tuple[str, str], quality: Quality, tolerance: float) -> go.Figure:
    """Each query at its two scores; queries with the same scores share one, larger mark.

    Args:
        rows: From `core.views.compare.pair.flips`.
        names: The first stack (x) and the second (y).
        quality: Measure and cutoff.
        tolerance: Half the height of the band of ties.

    Returns:
        The chart; customdata[0] of every mark is the row of its first query.
    """
    axes = [f"{quality.name} of {text.shorten(name, 44)}" for name in names]
    fig = theme.figure(x=axes[0], y=axes[1], height=420)
    _band(fig, tolerance)
    known = rows.with_row_index("row").filter(pl.col("outcome").is_not_null())
    marks = (
        known.with_columns(pl.col("other", "score").round(4).name.suffix("_at"))
        .group_by("other_at", "score_at", "outcome", maintain_order=True)
        .agg(pl.col("row").first(), pl.len().alias("queries"), pl.col("query_id", "text").head(_LISTED))
    )
    for outcome in (WINS, TIES, LOSSES):
        part = marks.filter(outcome=outcome)
        if part.is_empty():
            continue
        colour, symbol = LOOKS[outcome]
        fig.add_trace(
            go.Scatter(
                x=part["other_at"].to_numpy(),
                y=part["score_at"].to_numpy(),
                mode="markers",
                name=f"{outcome} ({part['queries'].sum()})",
                marker={
                    "color": colour,
                    "symbol": symbol,
                    "size": 9 * np.sqrt(np.minimum(part["queries"].to_numpy(), 9)),
                    "opacity": 0.9,
                    "line": {"width": 1, "color": colour},
                },
                customdata=part["row"].to_numpy()[:, None],
                hovertext=[_queries(row) for row in part.iter_rows(named=True)],
                hovertemplate="%{hovertext}<extra></extra>",
                selected={"marker": {"opacity": 0.9}},
                unselected={"marker": {"opacity": 0.9}},
            )
        )
    fig.update_xaxes(range=[-0.04, 1.04], constrain="domain")
    fig.update_yaxes(range=[-0.04, 1.04], scaleanchor="x", constrain="domain")
    return fig


def _band(fig: go.Figure, tolerance: float) -> None:
    """The diagonal, and the light band of ties along it."""
    low, high = -tolerance, 1 - tolerance
    path = f"M 0 {low} L 1 {high} L 1 {1 + tolerance} L 0 {tolerance} Z"
    fig.add_shape(
        type="path", path=path, fillcolor=theme.NEUTRAL, opacity=0.2, line={"width": 0}, layer="below"
    )
    line = {"color": theme.NEUTRAL, "width": 1}
    fig.add_shape(type="line", x0=0, y0=0, x1=1, y1=1, line=line, layer="below")


def _queries(row: dict[str, Any]) -> str:
    lines = [
        f"<b>{text.escape(name)}</b> {text.escape(text.shorten(question or '', _QUESTION))}"
        for name, question in zip(row["query_id"], row["text"], strict=True)
    ]
    more = row["queries"] - len(lines)
    if more:
        lines.append(f"and {text.count(more, 'other query', 'other queries')}")
    return "<br>".join([*lines, f"{text.score(row['other_at'])} → {text.score(row['score_at'])}"])


def overlaps(rows: pl.DataFrame, quality: Quality) -> go.Figure:
    """Each query at the overlap of its two Top-K and the difference of its scores.

    Args:
        rows: From `core.views.compare.pair.flips`.
        quality: Measure and cutoff.

    Returns:
        The chart; customdata[0] of every mark is the row.
    """
    fig = theme.figure(x=f"overlap@{quality.k}", y=f"difference in {quality.name}", height=340)
    known = rows.with_row_index("row").filter(
        pl.col("outcome").is_not_null() & pl.col("overlap").is_not_null()
    )
    for outcome in (WINS, TIES, LOSSES):
        part = known.filter(outcome=outcome)
        if part.is_empty():
            continue
        colour, symbol = LOOKS[outcome]
        fig.add_trace(
            go.Scatter(
                x=part["overlap"].to_numpy(),
                y=part["delta"].to_numpy(),
                mode="markers",
                name=f"{outcome} ({part.height})",
                marker={"color": colour, "symbol": symbol, "size": 10, "opacity": 0.9},
                customdata=part["row"].to_numpy()[:, None],
                hovertext=[_overlap(row) for row in part.iter_rows(named=True)],
                hovertemplate="%{hovertext}<extra></extra>",
                selected={"marker": {"opacity": 0.9}},
                unselected={"marker": {"opacity": 0.9}},
            )
        )
    fig.add_hline(y=0, line={"color": theme.NEUTRAL, "width": 1})
    fig.update_xaxes(range=[-0.04, 1.04])
    return fig


def _overlap(row: dict[str, Any]) -> str:
    question = text.escape(text.shorten(row["text"] or "", _QUESTION))
    tau = "" if row["tau"] is None else f", tau-b {row['tau']:.2f} of the {row['shared']} shared"
    return (
        f"<b>{text.escape(row['query_id'])}</b> {question}<br>overlap {row['overlap']:.2f}{tau}; "
        f"difference {signed(row['delta'])}"
    )
