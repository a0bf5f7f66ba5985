"""Charts of page Readers: score against passages sent, and stacks by readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
import polars as pl

from core.analysis.readers import SENT
from core.number_format import PER_1K, CostUnit
from core.views import text, theme
from core.views.text import MINUS, known

_LOOKS: Mapping[str, tuple[str, str]] = {
    "top_k": (theme.OKABE_ITO[0], "solid"),
    "gold_only": (theme.OKABE_ITO[2], "dash"),
    "no_gold": (theme.OKABE_ITO[5], "dashdot"),
    "gold": (theme.OKABE_ITO[3], "dot"),
    "none": (theme.NEUTRAL, "dot"),
    "harm_before": (theme.OKABE_ITO[1], "longdash"),
    "harm_after": (theme.OKABE_ITO[4], "longdashdot"),
    "contradicted": (theme.OKABE_ITO[6], "dash"),
    "dated": (theme.OKABE_ITO[6], "dot"),
    "adversarial": (theme.OKABE_ITO[6], "solid"),
}
"""Colour and dash of each mode."""
X_AXES = {"k": "passages sent, k", "tokens": "tokens sent, mean", "usd_per_1k": "$ of the reader"}
"""Axes for the score, by column."""
_DECADE = 10
_LAST = 2000  # Legend position of the keys common to every curve


def points(value: float | None, high: float | None = None) -> str:
    """Format points as ``57.2``, or an interval as `` [55.0, 59.4]``, "" if it is unknown."""
    if value is None or not known(value):
        return ""
    if high is not None:
        return f" [{value:.1f}, {high:.1f}]".replace("-", MINUS)
    return f"{value:.1f}".replace("-", MINUS)


def by_depth(
    table: pl.DataFrame, depths: pl.DataFrame, colours: Mapping[str, str], *, panel: str, line: str, x: str,
    y: str = "score, points", said: CostUnit = PER_1K,
) -> go.Figure:  # fmt: skip
    """Draw the score of every reader on every stack, with the closed book dotted and k* ringed.

    Args:
        table: From `core.analysis.readers.curve_table`.
        depths: From `core.analysis.readers.depth_table`.
        colours: Colour by the names in column `line`.
        panel: Column with a panel per name: "name" (stacks) or "label" (readers).
        x: One of `X_AXES`.
        y: Title of the y axis.
        said: The page's cost unit.
    """
    title, scale = (f"{X_AXES[x]} / {said.per}", said.factor) if x == "usd_per_1k" else (X_AXES[x], 1)
    top = table.filter(pl.col("mode") == "top_k", pl.col("k") > 0, pl.col(x).is_not_null())
    top = top.with_columns(x=scale * pl.col(x)).sort("x")
    names = top[panel].unique().sort().to_list()
    panels = theme.Panels(
        [text.shorten(name, 40) for name in names], x=title, height=300 if len(names) < 3 else 220
    )
    for place, name in enumerate(names):
        for key, colour in colours.items():
            own = (pl.col(panel) == name) & (pl.col(line) == key)
            rows = top.filter(own)
            if rows.is_empty():
                continue
            _curve(panels, place, rows, key, color=colour)
            _marks(panels, place, rows, depths.filter(own), colour)
    return _finished(panels, top, x, y)


def _curve(panels: theme.Panels, place: int, rows: pl.DataFrame, name: str, **line: str) -> None:
    group = text.escape(name)
    banded = rows.filter(pl.col("low").is_not_null() & pl.col("high").is_not_null())
    if banded.height > 1:
        band = theme.quiet(
            "", pl.concat([banded["x"], banded["x"].reverse()]).to_list(),
            pl.concat([banded["high"], banded["low"].reverse()]).to_list(), legendgroup=group, mode="lines",
            line={"width": 0}, fill="toself", fillcolor=line["color"], opacity=0.12,
        )  # fmt: skip
        panels.figure.add_trace(band, **panels.at(place))
    hover = [
        f"{group}<br>{'' if k is None else f'k = {k}: '}{points(value)}{points(low, high)}, {text.sample(n)}"
        for k, value, low, high, n in rows.select("k", "value", "low", "high", "queries").iter_rows()
    ]
    x, y, look = rows["x"].to_list(), rows["value"].to_list(), {"width": 2.2, **line}
    curve = theme.scatter(text.escape(text.shorten(name)), x, y, hover=hover, mode="lines+markers", line=look)
    panels.add(place, curve, group)


def _marks(panels: theme.Panels, place: int, rows: pl.DataFrame, depths: pl.DataFrame, colour: str) -> None:
    """Draw the closed book and k* of one curve; grey keys in the legend represent all curves' marks."""
    for depth in depths.iter_rows(named=True):
        ends = [rows["x"].min(), rows["x"].max()]
        if depth["closed_book"] is not None and ends[0] != ends[1]:
            level = [depth["closed_book"]] * 2
            _key(panels, place, "closed book", mode="lines", line={"color": theme.NEUTRAL, "dash": "dot"})
            line = {"color": colour, "dash": "dot", "width": 1.2}
            panels.figure.add_trace(theme.quiet("", ends, level, mode="lines", line=line), **panels.at(place))
        best = rows.filter(pl.col("k") == depth["k_star"])
        ring = {"symbol": "circle-open", "size": 15, "line": {"width": 2.5}}
        _key(panels, place, "k*", mode="markers", marker={**ring, "color": theme.NEUTRAL})
        star = theme.quiet("", best["x"].to_list(), best["value"].to_list(), marker={**ring, "color": colour})
        panels.figure.add_trace(star, **panels.at(place))


def _key(panels: theme.Panels, place: int, name: str, **style: Any) -> None:  # noqa: ANN401
    panels.add(place, theme.scatter(name, [None], [None], legendrank=_LAST, **style))


def _finished(panels: theme.Panels, rows: pl.DataFrame, x: str, y: str = "score, points") -> go.Figure:
    figure = panels.figure
    if x == "k":
        by_passages(figure, rows["x"])
    figure.update_yaxes(matches="y", title={"text": ""})
    figure.update_yaxes(title={"text": y}, col=1)
    return figure


def by_passages(figure: go.Figure, sent: pl.Series) -> go.Figure:
    """Mark the evaluated depths on the x axis, which is logarithmic if they span a decade."""
    ks = sent.drop_nulls().unique().sort().to_list()
    wide = bool(ks) and ks[0] > 0 and ks[-1] >= _DECADE * ks[0]
    marks = {"tickvals": ks, "ticktext": [str(k) for k in ks]} if ks else {}
    return figure.update_xaxes(type="log" if wide else None, **marks)


def by_part(table: pl.DataFrame, parts: Sequence[str]) -> go.Figure:
    """Draw one reader's score by the passages sent, a panel per part of the questions.

    Args:
        table: From `core.analysis.readers.slice_table`, for one reader.
        parts: The panels, in order.
    """
    curves = table.filter(pl.col("k") > 0).with_columns(x=pl.col("k"))
    ends = curves.select("x").filter((pl.col("x") == pl.min("x")) | (pl.col("x") == pl.max("x"))).unique()
    level = table.filter(pl.col("k").is_null()).join(ends, how="cross")  # all gold passages, at no k
    rows = pl.concat([curves, level]).sort("x")
    shown = [part for part in parts if part in set(rows["part"])]
    panels = theme.Panels(shown, x=X_AXES["k"], height=300)
    for place, part in enumerate(shown):
        for mode, (colour, dash) in _LOOKS.items():
            own = rows.filter(pl.col("part") == part, pl.col("mode") == mode)
            if own.height:
                _curve(panels, place, own, SENT[mode], color=colour, dash=dash)
    return _finished(panels, rows, "k")


def matrix(depths: pl.DataFrame, figure: str) -> go.Figure:
    """Draw a figure for every reader (columns) on every stack (rows).

    Args:
        depths: From `core.analysis.readers.depth_table`.
        figure: The column to draw.
    """
    names = depths["name"].unique().sort().to_list()
    labels = depths["label"].unique().sort().to_list()
    cells = {(row["name"], row["label"]): row for row in depths.iter_rows(named=True)}
    values = [[(cells.get((name, label)) or {}).get(figure) for label in labels] for name in names]
    written = "{:.0f}" if figure == "k_star" else "{:.3f}" if figure == "rss" else "{:.1f}"
    trace = go.Heatmap(
        z=values,
        x=[text.shorten(text.escape(label), 30) for label in labels],
        y=[text.shorten(text.escape(name), 40) for name in names],
        text=[
            [text.NOT_APPLICABLE if v is None else written.format(v).replace("-", text.MINUS) for v in row]
            for row in values
        ],
        texttemplate="%{text}",
        textfont={"color": "#111111"},
        colorscale=[[0, "#F4F9FD"], [1, theme.OKABE_ITO[4]]],  # light enough for dark words on any cell
        hovertemplate="%{y}<br>%{x}: %{text}<extra></extra>",
        showscale=False,
    )
    drawn = theme.figure([trace], height=150 + 46 * len(names), legend=False)
    style = {"type": "category", "showgrid": False}
    return drawn.update_xaxes(**style).update_yaxes(**style)
