"""Charts of the Measures page: coefficients, their dependence on alpha, and grades by K / Np."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import polars as pl
from plotly.colors import sample_colorscale

from core.stats.correlation import CorrelationKind
from core.views import text, theme
from core.views.measures.outcome import Curve

PANELS = 6  # Runs whose grades are drawn; the table has all


def bars(table: pl.DataFrame, kind: CorrelationKind) -> go.Figure:
    """Draw the coefficient of every measure with its interval."""
    shown = table.filter(pl.col("value").is_not_null())
    value = shown["value"].to_numpy()
    low, high = (shown[end].fill_null(shown["value"]).to_numpy() for end in ("low", "high"))
    said = [f"{name}: {at:.3f}, n = {n}" for name, at, n in shown["measure", "value", "n"].iter_rows()]
    marks = theme.scatter(
        f"{kind} correlation",
        value,
        list(range(shown.height)),
        hover=said,
        marker={"size": 10, "color": theme.OKABE_ITO[0]},
        error_x=theme.whiskers(low, value, high, color=theme.NEUTRAL),
    )
    title, height = f"{kind} correlation with the answer's grade", 100 + 28 * shown.height
    fig = theme.figure([go.Scatter(marks)], x=title, height=height, legend=False)
    return theme.name_rows(fig, shown["measure"].to_list())


def alpha_figure(curves: Sequence[Curve], kind: CorrelationKind) -> go.Figure:
    """Draw the coefficients of F and T over alpha, the best one of each marked."""
    traces: list[go.Scatter] = []
    for place, curve in enumerate(curves):
        best, colour = curve.best, theme.OKABE_ITO[place]
        traces.append(
            go.Scatter(
                x=best.alphas,
                y=[None if np.isnan(value) else float(value) for value in best.values],
                name=curve.name,
                mode="lines+markers",
                line={"color": colour, "dash": ("solid", "dash")[place % 2]},
                marker={"size": [12 if alpha == best.best else 4 for alpha in best.alphas]},
                hovertemplate=f"{curve.name}, alpha %{{x:.2f}}: %{{y:.3f}}<extra></extra>",
            )
        )
    return theme.figure(traces, x="alpha", y=f"{kind} correlation", height=340)


def heatmap(table: pl.DataFrame, measure: str, reference: str) -> go.Figure:
    """Draw a measure's coefficient minus another's: run by K / Np.

    Blue = better than the other, orange = worse.
    """
    ratios = table["ratio"].unique().sort().to_list()
    names = table["name"].unique().sort().to_list()
    whole = pl.DataFrame({"name": names}).join(pl.DataFrame({"ratio": ratios}), how="cross")
    cells = whole.join(table, on=["name", "ratio"], how="left", maintain_order="left")
    shape = (len(names), len(ratios))
    values = cells["difference"].to_numpy().reshape(shape)
    words = ["" if value is None else text.signed(value, "{:.2f}".format) for value in cells["difference"]]
    most = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    trace = go.Heatmap(
        z=values,
        x=[f"{ratio:g}" for ratio in ratios],
        y=[text.shorten(text.escape(name), 40) for name in names],
        customdata=cells["n"].fill_null(0).to_numpy().reshape(shape),
        text=np.array(words).reshape(shape),
        texttemplate="%{text}",
        colorscale=[[0, "#D55E00"], [0.5, "#f2f2f2"], [1, "#0072B2"]],
        zmin=-most,
        zmax=most,
        hovertemplate="%{y}, K / Np = %{x}: %{z:+.3f}, n = %{customdata}<extra></extra>",
        colorbar={"title": {"text": f"{measure} − {reference}"}},
    )
    fig = theme.figure([trace], x="K / Np", height=160 + 34 * len(names), legend=False)
    return fig.update_xaxes(type="category")


def distribution_figure(table: pl.DataFrame) -> go.Figure:
    """Draw the shares of the grades against K / Np as stacked bars, a panel for each of the first runs."""
    names = table["name"].unique(maintain_order=True).head(PANELS).to_list()
    levels = table.select("place", "grade").unique().sort("place")
    colours = sample_colorscale("Viridis", np.linspace(0.95, 0.05, max(levels.height, 2)).tolist())
    panels = theme.Panels([text.shorten(name, 60) for name in names], across=1, x="K / Np", height=170)
    for panel, name in enumerate(names):
        rows = table.filter(pl.col("name") == name)
        for (place, grade), colour in zip(levels.iter_rows(), colours, strict=False):
            part = rows.filter(pl.col("place") == place)
            bar = go.Bar(
                x=[f"{ratio:g}" for ratio in part["ratio"]],
                y=part["share"].to_numpy(),
                name=f"grade {grade}",
                marker={"color": colour},
                customdata=part["n"].to_list(),
                hovertemplate="K / Np = %{x}: %{y:.1%}, n = %{customdata}<extra>%{fullData.name}</extra>",
            )
            panels.add(panel, bar)
    ratios = [f"{ratio:g}" for ratio in table["ratio"].unique().sort()]
    fig = panels.figure.update_xaxes(type="category", categoryarray=ratios)
    return fig.update_yaxes(tickformat=".0%", range=[0, 1]).update_layout(barmode="stack")
