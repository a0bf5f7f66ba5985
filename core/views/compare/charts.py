"""Charts of the compare page: differences with intervals, score against score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.analysis.paired import LOSSES, TIES, UNDECIDED, WINS
from core.analysis.workspace.scope import Quality
from core.arrays import Ints
from core.views import text, theme
from core.views.compare.words import gap, p_value

_Looks = Mapping[str, tuple[str, str]]

LABELLED = 12  # Maximum rows of a forest whose marks are labelled; above that, hovering identifies them
LOOKS: _Looks = {
    WINS: (theme.OKABE_ITO[0], "triangle-up"),
    LOSSES: (theme.OKABE_ITO[5], "triangle-down"),
    TIES: (theme.NEUTRAL, "circle"),
    **dict.fromkeys(UNDECIDED, (theme.NEUTRAL, "circle-open")),
}
"""Colour and symbol of a verdict, so that nothing depends on colour alone."""
_QUESTION = 60
_LINE = 50  # characters of a label that fit on a narrow screen
_LISTED = 3
_STILL = {"selected": {"marker": {"opacity": 0.9}}, "unselected": {"marker": {"opacity": 0.9}}}
"""A click opens something; the other marks stay as they are."""


def looks_of(colours: Mapping[str, str]) -> _Looks:
    """Return `LOOKS` of a pair: the second stack's wins have its colour, its losses that of the first."""
    first, second = colours.values()
    return {**LOOKS, WINS: (second, LOOKS[WINS][1]), LOSSES: (first, LOOKS[LOSSES][1])}


def forest(
    rows: pl.DataFrame, labels: Sequence[str], title: str, *, looks: _Looks = LOOKS, short: bool = False
) -> go.Figure:
    """Draw differences with their intervals, one per line.

    Args:
        rows: From `core.analysis.paired.differences`, or with the same columns.
        short: Whether the labels are short enough to fit beside the rows.

    Returns:
        The chart; customdata[0] of every mark is the row.
    """
    roomy = rows.height <= LABELLED and not short
    lines = [_wrapped(label) for label in labels] if roomy else []
    a_row = 26 if short else (72 if any("<br>" in line for line in lines) else 46) if roomy else 13
    layout = theme.layout(x=title, height=90 + a_row * rows.height)
    y = np.arange(rows.height)[::-1]
    marks = []
    for verdict in (WINS, LOSSES, *UNDECIDED):
        picked = np.flatnonzero((rows["verdict"] == verdict) & rows["difference"].is_not_null())
        if len(picked):
            (colour, symbol), part = looks[verdict], rows[picked]
            line = {"width": 2, "color": colour}
            x, low, high = (part[name].to_numpy() for name in ("difference", "low", "high"))
            marker = {"color": colour, "symbol": symbol, "line": line, "size": 11 if roomy or short else 8}
            bars = theme.whiskers(low, x, high, thickness=1.5, width=4, color=colour)
            hover = [_told(rows.row(at, named=True), labels[at]) for at in picked.tolist()]
            look = {"marker": marker, "error_x": bars, "customdata": picked[:, None], **_STILL}
            marks.append(theme.scatter(verdict, x, y[picked], hover=hover, **look))
    layout["annotations"] = [
        {"x": 0, "xref": "paper", "xanchor": "left", "y": float(place), "yanchor": "bottom", "yshift": 8,
         "showarrow": False, "font": {"size": 12}, "align": "left", "text": label}
        for place, label in zip(y, lines, strict=False)
    ]  # fmt: skip
    ticks = {"tickvals": y, "ticktext": [text.escape(text.shorten(label, 40)) for label in labels]}
    layout["yaxis"] |= {"range": [-0.6, rows.height - (0.4 if short else 0.2)], "showgrid": False}
    layout["yaxis"] |= ticks if short else {"visible": False}
    ends = rows.select("difference", "low", "high").to_numpy().ravel()
    layout["xaxis"]["range"] = theme.span([0.0, *ends[~np.isnan(ends)]], 0.08, 0.005)
    return theme.finished([_too_small(rows, y), _zero(y, 0.25 if roomy else 0.5), *marks], layout)


def _wrapped(label: str) -> str:
    """Return a label on one line, or on two if it is long and names two stacks."""
    parts = label.split(" against ") if len(label) > _LINE else [label]
    return "<br>against ".join(text.escape(text.shorten(part, _LINE)) for part in parts)


def _too_small(rows: pl.DataFrame, y: Ints) -> theme.Spec:
    """Return a light bar over the differences too small to detect with this many queries."""
    least = rows["detectable"].fill_null(0.0).to_numpy()
    bar = {"type": "bar", "orientation": "h", "x": 2 * least, "base": -least, "y": y, "width": 0.34}
    marker = {"color": theme.NEUTRAL, "opacity": 0.22, "line": {"width": 0}}
    return {**bar, "name": "too small to detect", "marker": marker, "hoverinfo": "skip"}


def _zero(y: Ints, half: float) -> theme.Spec:
    """Return the line of no difference in one piece per row, as a single line would cross the labels."""
    ends = np.column_stack([y - half, y + half, np.full(len(y), np.nan)]).ravel()
    x = np.where(np.isnan(ends), np.nan, 0.0)
    return theme.quiet("", x, ends, mode="lines", line={"color": theme.NEUTRAL, "width": 1})


def _told(row: dict[str, Any], label: str) -> str:
    tested = f"{gap(row)}, {p_value(row['p_adjusted'])} (adjusted), {text.sample(row)}"
    return (
        f"<b>{text.escape(label)}</b><br>{tested}<br>"
        f"wins {row['wins']}, ties {row['ties']}, losses {row['losses']}"
    )


def scatter(
    rows: pl.DataFrame,
    colours: Mapping[str, str],
    quality: Quality,
    tolerance: float,
    called: tuple[str, str],
) -> go.Figure:
    """Draw each query of `sides.flips` at its two scores, the first stack's on x; equal points share a mark.

    Args:
        colours: Colour by name of the two stacks.
        called: What the page calls them.

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
    for axis, name in zip(("xaxis", "yaxis"), called, strict=True):
        layout[axis]["title"] = {"text": f"{text.escape(quality.name)} of {name}"}
    ends = theme.span([*known["other"], *known["score"]] or [0.0, 1.0], 0.05, 0.02)
    layout["xaxis"] |= {"range": ends, "constrain": "domain"}
    layout["yaxis"] |= {"range": ends, "constrain": "domain", "scaleanchor": "x"}
    layout["shapes"] = _band(tolerance, *ends)
    looks = looks_of(colours)
    titles = {WINS: f"{called[1]} better", LOSSES: f"{called[0]} better", TIES: TIES}
    traces = []
    for outcome, title in titles.items():
        part = marks.filter(outcome=outcome)
        if part.is_empty():
            continue
        colour, symbol = looks[outcome]
        size, line = 9 * np.sqrt(np.minimum(part["queries"].to_numpy(), 9)), {"width": 1, "color": colour}
        hover = [_queries(row) for row in part.iter_rows(named=True)]
        look = {"marker": {"color": colour, "symbol": symbol, "size": size, "line": line}, **_STILL}
        name, rows_of = f"{text.escape(title)} ({part['queries'].sum()})", part["row"].to_numpy()[:, None]
        x, y = part["other_at"].to_numpy(), part["score_at"].to_numpy()
        traces.append(theme.scatter(name, x, y, hover=hover, customdata=rows_of, **look))
    return theme.finished(traces, layout)


def _band(tolerance: float, low: float, high: float) -> list[theme.Spec]:
    """Return the diagonal, and the light band of ties along it."""
    path = (
        f"M {low} {low - tolerance} L {high} {high - tolerance} L {high} {high + tolerance} "
        f"L {low} {low + tolerance} Z"
    )
    band = {"type": "path", "path": path, "fillcolor": theme.NEUTRAL, "opacity": 0.2, "line": {"width": 0}}
    line = {"type": "line", "x0": low, "y0": low, "x1": high, "y1": high}
    line["line"] = {"color": theme.NEUTRAL, "width": 1}
    return [{**band, "layer": "below"}, {**line, "layer": "below"}]


def _queries(row: dict[str, Any]) -> str:
    lines = [
        f"<b>{text.escape(name)}</b> {text.escape(text.shorten(question or '', _QUESTION))}"
        for name, question in zip(row["query_id"], row["text"], strict=True)
    ]
    more = row["queries"] - len(lines)
    if more:
        lines.append(f"and {text.count(more, 'other query', 'other queries')}")
    return "<br>".join([*lines, f"{text.score(row['other_at'])} → {text.score(row['score_at'])}"])
