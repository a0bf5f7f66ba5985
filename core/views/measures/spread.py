"""How the grades of the answers are spread at every K / Np (Schwartz et al., Figures 2 to 4)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import plotly.graph_objects as go
import polars as pl
from plotly.colors import sample_colorscale
from plotly.subplots import make_subplots

from core.views import text
from core.views.measures.samples import Samples

LEVELS = 7
"""Distinct grades that are shown one by one; more are put into five ranges."""
PANELS = 6


def distribution(found: Samples, keep: pl.Expr, least: int) -> pl.DataFrame:
    """How the grades of the answers are spread, by run and K / Np.

    Args:
        found: The samples.
        keep: The segment.
        least: Answers that a run needs at a K / Np.

    Returns:
        name, ratio, grade (a level in words), place (of the level, lowest first), n and share of the answers
        of the run at that ratio; sorted.
    """
    rows = found.rows.filter(keep & pl.col("ratio").is_not_null())
    place, words = _levels(rows["grade"].to_numpy())
    return (
        rows.with_columns(pl.Series("place", place, dtype=pl.Int64))
        .group_by("name", "ratio", "place")
        .agg(pl.len().alias("n"))
        .with_columns((pl.col("n") / pl.col("n").sum().over("name", "ratio")).alias("share"))
        .filter(pl.col("n").sum().over("name", "ratio") >= least)
        .with_columns(
            pl.col("place").replace_strict(dict(enumerate(words)), return_dtype=pl.String).alias("grade")
        )
        .select("name", "ratio", "grade", "place", "n", "share")
        .sort("name", "ratio", "place")
    )


def _levels(grades: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[np.ndarray, list[str]]:
    """Return the level of every grade, and the levels in words: its values, or five ranges of many."""
    values = np.unique(grades)
    if len(values) <= LEVELS:
        return np.searchsorted(values, grades), [f"{value:g}" for value in values]
    edges = np.linspace(values[0], values[-1], 6)
    words = [f"{low:.3g} to {high:.3g}" for low, high in pairwise(edges)]
    return np.clip(np.searchsorted(edges, grades, side="right") - 1, 0, 4), words


def distribution_figure(table: pl.DataFrame) -> go.Figure:
    """The shares of the grades against K / Np as stacked bars, a panel for each of the first runs."""
    names = table["name"].unique(maintain_order=True).head(PANELS).to_list()
    levels = table.select("place", "grade").unique().sort("place")
    colours = sample_colorscale("Viridis", np.linspace(0.95, 0.05, max(levels.height, 2)).tolist())
    titles = [text.escape(text.shorten(name, 40)) for name in names]
    fig = make_subplots(rows=len(names), cols=1, shared_xaxes=True, subplot_titles=titles)
    for row, name in enumerate(names, start=1):
        rows = table.filter(pl.col("name") == name)
        for (place, grade), colour in zip(levels.iter_rows(), colours, strict=False):
            part = rows.filter(pl.col("place") == place)
            fig.add_trace(
                go.Bar(
                    x=[f"{ratio:g}" for ratio in part["ratio"]],
                    y=part["share"].to_numpy(),
                    name=f"grade {grade}",
                    legendgroup=str(place),
                    showlegend=row == 1,
                    marker={"color": colour},
                    customdata=part["n"].to_list(),
                    hovertemplate=f"K / Np = %{{x}}: %{{y:.1%}} of grade {grade}, n = %{{customdata}}"
                    "<extra></extra>",
                ),
                row=row,
                col=1,
            )
    ratios = table["ratio"].unique().sort()
    fig.update_xaxes(type="category", categoryarray=[f"{ratio:g}" for ratio in ratios])
    fig.update_xaxes(title_text="K / Np", row=len(names))
    fig.update_yaxes(tickformat=".0%", range=[0, 1])
    fig.update_layout(
        barmode="stack", height=120 + 170 * len(names), margin={"l": 8, "r": 8, "t": 36, "b": 8}
    )
    return fig
