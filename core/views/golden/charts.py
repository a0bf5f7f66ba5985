"""Charts of page Golden sets: grades per query, scores and their bounds, confusion of grades."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.analysis.workspace.scope import Quality
from core.stats.judges import GRADES
from core.views import text, theme
from core.views.golden import judges, soundness
from core.views.golden.data import GoldenContent

BARS = 20  # Maximum stacks drawn in addition to the chosen one; the table has all


def mix_figure(judged: GoldenContent) -> go.Figure:
    """Draw passages per query by grade, one box per grade with every query as a point."""
    grades = [f"grade {grade}" for grade in reversed(soundness.GRADES)]
    boxes = [
        go.Box(
            x=judged.queries[name].to_numpy(),
            name=name,
            orientation="h",
            boxpoints="all" if judged.queries.height <= 500 else False,
            jitter=0.5,
            pointpos=0,
            marker={"color": theme.OKABE_ITO[0], "size": 4, "opacity": 0.5},
            line={"color": theme.NEUTRAL, "width": 1.5},
            text=[text.escape(query) for query in judged.queries["query_id"]],
            hovertemplate="query %{text}: %{x}<extra></extra>",
        )
        for name in grades
    ]
    return theme.figure(boxes, x=f"{judged.unit}s per query", height=330, legend=False)


def bounds_figure(rows: pl.DataFrame, quality: Quality, chosen: str | None = None) -> go.Figure:
    """Draw the score of the best stacks, and of the chosen one, with the bounds from unjudged passages.

    Args:
        rows: From `with_bounds`.
    """
    shown = rows.filter((pl.int_range(pl.len()) < BARS) | pl.col("name").eq_missing(chosen))
    columns = ("name", "quality", "hole_low", "hole_high", "hole")
    hover = [
        f"{text.escape(name)}: {score:.3f}<br>if all unjudged were grade 1 … 5: {text.score(low)} … "
        f"{text.score(high)}<br>unjudged {text.percent(hole)}"
        for name, score, low, high, hole in shown.select(columns).iter_rows()
    ]
    low, score, high = (shown[name].to_numpy() for name in ("hole_low", "quality", "hole_high"))
    bars = theme.whiskers(low, score, high, color=theme.NEUTRAL, thickness=2)
    look = {"color": theme.OKABE_ITO[0], "size": 9}
    marks = theme.scatter("", score, list(range(shown.height)), hover=hover, marker=look, error_x=bars)
    height = 100 + 38 * max(shown.height, 2)
    fig = theme.figure(
        [marks], x=f"{quality.name}, and its bounds if all were judged", height=height, legend=False
    )
    return theme.name_rows(fig, shown["name"].to_list(), chosen)


def pair_figure(judged: judges.ComparedJudges, one: int, other: int) -> go.Figure:
    """Draw how often each grade of the first judge (rows) coincides with each of the second, by row share."""
    rows = judges.met(judged, one, other)
    grid = rows["passages"].to_numpy().reshape(GRADES, GRADES)
    shares = [
        f"{passages:,}" + f"<br>{text.percent(share)}" * bool(passages)
        for passages, share in rows.select("passages", "share").iter_rows()
    ]
    labels = [str(grade) for grade in range(1, GRADES + 1)]
    cells = go.Heatmap(
        z=grid,
        x=labels,
        y=labels,
        text=np.array(shares).reshape(GRADES, GRADES),
        colorscale=[[0, "#F4F9FD"], [1, theme.OKABE_ITO[4]]],  # light enough for dark words on any cell
        textfont={"color": "#111111"},
        texttemplate="%{text}",
        hovertemplate="row %{y}, column %{x}: %{z:,} passages<extra></extra>",
        colorbar={"title": {"text": "passages"}},
    )
    names = [text.shorten(text.escape(judged.names[place]), 40) for place in (one, other)]
    fig = theme.figure([cells], x=f"grade of {names[1]}", y=f"grade of {names[0]}", height=420, legend=False)
    fig.update_xaxes(type="category")
    fig.update_yaxes(type="category")
    return fig
