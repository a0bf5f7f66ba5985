"""The chart of the queries page: one bar per query, its score or its difference to a second stack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import polars as pl

from core.views import text, theme
from core.views.queries.page import WEAK
from core.views.workspace.scope import Quality

BARS = 200
"""Bars drawn at most: the two ends of the order; the table has every query."""
_LABELLED = 40
_QUESTION = 60


@dataclass(frozen=True)
class Bars:
    """The chart.

    Attributes:
        figure: The bars, ascending; customdata[0] of every mark is the row of `drawn`.
        drawn: The queries that are drawn, ascending.
    """

    figure: go.Figure
    drawn: pl.DataFrame


def bars(rows: pl.DataFrame, quality: Quality, *, against: bool, selected: str | None = None) -> Bars | None:
    """Draw the score of every query, or its difference to a second stack.

    Args:
        rows: Rows of the query table.
        quality: Measure and cutoff.
        against: Whether to draw the differences.
        selected: query_id to point at.

    Returns:
        The chart; None when no query has a value.
    """
    column = "delta" if against else "score"
    drawn = rows.filter(pl.col(column).is_not_null()).sort(column, "query_id")
    if drawn.is_empty():
        return None
    if drawn.height > BARS:
        drawn = pl.concat([drawn.head(BARS // 2), drawn.tail(BARS // 2)])
    title = f"difference in {quality.name}" if against else quality.name
    fig = theme.figure(x="queries, lowest first", y=title, height=320)
    (_differences if against else _scores)(fig, drawn)
    _pointer(fig, drawn, column, selected)
    few = drawn.height <= _LABELLED
    fig.update_xaxes(
        range=[-0.8, drawn.height - 0.2],
        tickvals=np.arange(drawn.height) if few else [],
        ticktext=[text.escape(text.shorten(name, 12)) for name in drawn["query_id"]] if few else [],
        showgrid=False,
    )
    fig.update_yaxes(zeroline=True)
    fig.update_layout(barmode="overlay", bargap=0.15)
    return Bars(fig, drawn)


def _scores(fig: go.Figure, drawn: pl.DataFrame) -> None:
    score, best, share = (drawn[name].to_numpy() for name in ("score", "best", "share"))
    weak = share < WEAK
    _bars(
        fig,
        drawn,
        score,
        ~weak & (score > 0),
        ("half or more of what its pool holds", theme.OKABE_ITO[0], ""),
    )
    _bars(fig, drawn, score, weak & (score > 0), ("less than half", theme.OKABE_ITO[5], "/"))
    _marks(fig, drawn, np.zeros(drawn.height), score == 0, ("scores 0", theme.OKABE_ITO[5], "x-thin"))
    _marks(fig, drawn, best, ~np.isnan(best), ("best order of its pool (PROC)", theme.NEUTRAL, "line-ew"))
    fig.update_yaxes(range=[-0.03, 1.12])


def _differences(fig: go.Figure, drawn: pl.DataFrame) -> None:
    delta = drawn["delta"].to_numpy()
    _bars(fig, drawn, delta, delta > 0, ("gain", theme.OKABE_ITO[0], ""))
    _bars(fig, drawn, delta, delta < 0, ("loss", theme.OKABE_ITO[5], "/"))
    _marks(fig, drawn, delta, delta == 0, ("tie", theme.NEUTRAL, "circle"))
    top = 1.15 * max(0.05, float(np.abs(delta).max()))
    fig.update_yaxes(range=[-top, top])


Mask = npt.NDArray[np.bool_]
Look = tuple[str, str, str]
"""Name in the legend, colour, and pattern or symbol: nothing is told by colour alone."""


def _bars(fig: go.Figure, drawn: pl.DataFrame, heights: npt.NDArray[Any], mask: Mask, look: Look) -> None:
    name, colour, pattern = look
    marker = {"color": colour, "line": {"width": 0}, "pattern": {"shape": pattern, "fillmode": "replace"}}
    _add(fig, go.Bar(name=name, marker=marker), drawn, heights, mask)


def _marks(fig: go.Figure, drawn: pl.DataFrame, heights: npt.NDArray[Any], mask: Mask, look: Look) -> None:
    name, colour, symbol = look
    size = float(np.clip(500 / drawn.height, 4, 9))
    marker = {"color": colour, "symbol": symbol, "size": size, "line": {"color": colour, "width": 2}}
    _add(fig, go.Scatter(name=name, mode="markers", marker=marker), drawn, heights, mask)


def _add(
    fig: go.Figure, trace: go.BaseTraceType, drawn: pl.DataFrame, heights: npt.NDArray[Any], mask: Mask
) -> None:
    picked = np.flatnonzero(mask)
    if not len(picked):
        return
    trace.update(
        x=picked,
        y=heights[picked],
        customdata=picked[:, None],
        hovertext=[_hover(row) for row in drawn[picked].iter_rows(named=True)],
        hovertemplate="%{hovertext}<extra></extra>",
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
    )
    fig.add_trace(trace)


def _hover(row: dict[str, Any]) -> str:
    question = text.escape(text.shorten(row["text"] or "", _QUESTION))
    against = "" if row["other"] is None else f"<br>second stack {text.score(row['other'])}"
    return (
        f"<b>{text.escape(row['query_id'])}</b> {question}<br>score {text.score(row['score'])} of a possible "
        f"{text.score(row['best'])}{against}<br>{text.count(row['holes'], 'hole')} in the Top-K"
    )


def _pointer(fig: go.Figure, drawn: pl.DataFrame, column: str, selected: str | None) -> None:
    place = None if selected is None else drawn["query_id"].index_of(selected)
    if place is None:
        return
    top = max(float(drawn[column][place]), drawn["best"][place] or 0 if column == "score" else 0)
    fig.add_annotation(x=place, y=top, text="▼", showarrow=False, yshift=12, font={"size": 13})
