"""Charts of the sensitivity page: the grid as a heatmap, and how far each stack moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.views import text, theme
from core.views.confidence.weights import ALPHAS, CAPS3, CAPS4, CELLS, Grid, letters
from core.views.workspace.scores import Floats

RANGES_SHOWN = 15
"""Stacks whose range is drawn: the best of the usual setting."""
_LINE = 46
_COLUMNS = [(cap4, cap3) for cap4 in CAPS4 for cap3 in CAPS3]


def agreement(grid: Grid, chosen: Sequence[str | None]) -> go.Figure:
    """Every cell with Kendall's tau-b against the usual order, and the letter of its choice."""
    named = letters(chosen, grid.start)
    words = [
        f"{'–' if np.isnan(tau) else f'{tau:.2f}'}<br>{named.get(name, '+')}"
        for tau, name in zip(grid.taus, chosen, strict=True)
    ]
    hovers = [
        f"{cell}<br>tau-b {tau:.3f}<br>choice: {text.escape(name or 'none')}"
        for cell, tau, name in zip(grid.cells, grid.taus, chosen, strict=True)
    ]
    floor = min(0.8, float(np.nanmin(grid.taus, initial=1.0)))
    return _heatmap(grid, grid.taus, words, hovers, {"zmin": floor, "zmax": 1, "title": "tau-b"})


def one_stack(grid: Grid, run_id: str) -> go.Figure:
    """Every cell with the score and the rank of one stack."""
    place = grid.run_ids.index(run_id)
    scores, ranks = grid.means[:, place], grid.ranks[:, place]
    words = [
        f"{text.score(score)}<br>#{rank}" if rank else "–" for score, rank in zip(scores, ranks, strict=True)
    ]
    hovers = [
        f"{cell}<br>{text.score(score)}{text.interval(low, high)}, rank {rank}"
        for cell, score, low, high, rank in zip(
            grid.cells, scores, grid.low[:, place], grid.high[:, place], ranks, strict=True
        )
    ]
    return _heatmap(grid, scores, words, hovers, {"title": "score"})


def _heatmap(
    grid: Grid, values: Floats, words: list[str], hovers: list[str], scale: dict[str, object]
) -> go.Figure:
    """The cells of the paper's grid, alpha downwards; a frame around the usual one if it is among them."""
    shape, title = (len(ALPHAS), len(_COLUMNS)), scale.pop("title")
    size = len(CELLS)
    layout = theme.layout(x="cap3", y="alpha", height=330, legend=False)
    middle = len(CAPS3) // 2
    layout["xaxis"] |= {
        "tickvals": list(range(len(_COLUMNS))),
        "ticktext": [
            f"{cap3:.2f}" + (f"<br>cap4 {cap4:g}" if place % len(CAPS3) == middle else "")
            for place, (cap4, cap3) in enumerate(_COLUMNS)
        ],
        "showgrid": False,
    }
    layout["yaxis"] |= {
        "tickvals": list(range(len(ALPHAS))),
        "ticktext": [f"{alpha:g}" for alpha in ALPHAS],
        "autorange": "reversed",
        "showgrid": False,
    }
    if grid.start < size:
        y, x = divmod(grid.start, len(_COLUMNS))
        box = {"x0": x - 0.5, "x1": x + 0.5, "y0": y - 0.5, "y1": y + 0.5}
        layout["shapes"] = [{"type": "rect", "line": {"color": theme.ACCENT, "width": 3}, **box}]
    trace = {
        "type": "heatmap",
        "z": np.asarray(values[:size], dtype=np.float64).reshape(shape),
        "text": np.array(words[:size], dtype=object).reshape(shape).tolist(),
        "texttemplate": "%{text}",
        "hovertext": np.array(hovers[:size], dtype=object).reshape(shape).tolist(),
        "hovertemplate": "%{hovertext}<extra></extra>",
        "colorscale": [[0, "#F4F9FD"], [1, theme.OKABE_ITO[4]]],  # light enough for dark words on any cell
        "textfont": {"color": "#14202B"},
        "colorbar": {"title": {"text": title}, "thickness": 10, "outlinewidth": 0},
        "xgap": 2,
        "ygap": 2,
        **scale,
    }
    return theme.finished([trace], layout)


def ranges(rows: pl.DataFrame, title: str) -> go.Figure:
    """How far the score of each stack moves over the grid: a line from lowest to highest, a dot as usual.

    Args:
        rows: From `core.views.confidence.weights.stack_ranges`; of the first `RANGES_SHOWN` that are no twins.
    """
    drawn = rows.filter(pl.col("twin").is_null()).head(RANGES_SHOWN)
    layout = theme.layout(x=title, height=90 + 40 * drawn.height)
    y = np.arange(drawn.height)[::-1]
    low, high = (drawn[name].to_numpy() for name in ("lowest", "highest"))
    hovers = [
        f"<b>{text.escape(row['name'])}</b><br>as usual {text.score(row['quality'])}, rank {row['rank']}<br>"
        f"{text.score(row['lowest'])} to {text.score(row['highest'])}, {_rank_range(row)}"
        for row in drawn.iter_rows(named=True)
    ]
    middle = drawn["quality"].to_numpy()
    mark = {
        "type": "scatter",
        "x": middle,
        "y": y,
        "mode": "markers",
        "name": "as usual; line: over the grid",
        "marker": {"color": theme.FRONTIER, "size": 10},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": high - middle,
            "arrayminus": middle - low,
            "color": theme.FRONTIER,
            "thickness": 4,
            "width": 0,
        },
        "hovertext": hovers,
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
    layout["annotations"] = [
        {"x": 0, "xref": "paper", "xanchor": "left", "y": float(place), "yanchor": "bottom", "yshift": 6,
         "showarrow": False, "font": {"size": 12},
         "text": f"{text.escape(text.shorten(row['name'], _LINE))}{_twins(row)} · {_rank_range(row)}"}
        for place, row in zip(y, drawn.iter_rows(named=True), strict=True)
    ]  # fmt: skip
    layout["yaxis"] |= {"visible": False, "range": [-0.6, drawn.height - 0.1]}
    layout["showlegend"] = True
    return theme.finished([mark], layout)


def _twins(row: dict[str, Any]) -> str:
    return f" (+{row['twins']} equal)" if row["twins"] else ""


def _rank_range(row: dict[str, Any]) -> str:
    best, worst = row["best_rank"], row["worst_rank"]
    return f"rank {best}" if best == worst else f"rank {best} to {worst}"
