"""The Pareto chart: latency against quality, the frontier, what the constraints exclude and why."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.clq.pareto import frontier_2d, nondominated
from core.clq.rules import Constraints, Decision
from core.views import text, theme
from core.views.pareto_marks import LATENCY_AXIS, UNKNOWN_AXIS, add_marks
from core.views.scope import Latency, Quality

WHISKERS_UP_TO = 40
LABELS_ON_FRONTIER = 6
STRIP_FROM = 0.87
"""Where the strip of stacks with unknown latency begins, as a share of the chart's width."""


@dataclass(frozen=True)
class ParetoView:
    """The page's content.

    Attributes:
        figure: The chart; customdata[0] of every mark is the row of `rows`.
        rows: The stack table with feasible, reason and frontier, the frontier and the best first.
        undrawn: Stacks that have no quality and are therefore not on the chart.
    """

    figure: go.Figure
    rows: pl.DataFrame
    undrawn: pl.DataFrame


def pareto(
    table: pl.DataFrame,
    decision: Decision,
    constraints: Constraints,
    *,
    quality: Quality,
    latency: Latency,
    colour: str = "cost",
    size: str = "same",
    selected: str | None = None,
) -> ParetoView:
    """Draw the stacks of a workspace.

    Args:
        table: The stack table.
        decision: What the constraints select from it.
        constraints: SLA, budget and floor, drawn as lines.
        quality: The y axis.
        latency: The x axis.
        colour: One of `core.views.pareto_marks.COLOURS`.
        size: One of `core.views.pareto_marks.SIZES`.
        selected: run_id of the stack to ring besides the chosen one.

    Returns:
        The chart and the table behind it.
    """
    rows = marked(table, decision)
    drawn = _placed(rows.filter(pl.col("quality").is_not_null()))
    fig = theme.figure(x=latency.name, y=quality.name, height=520)
    _frontier(fig, drawn)
    add_marks(fig, drawn, colour, size)
    _whiskers(fig, drawn)
    _rings(fig, drawn, table, decision, selected)
    _axes(fig, drawn)
    _limits(fig, constraints)
    order = rows.sort(["feasible", "frontier", "quality"], descending=True, nulls_last=True)
    return ParetoView(fig, order, rows.filter(pl.col("quality").is_null()))


def _placed(rows: pl.DataFrame) -> pl.DataFrame:
    """Where each stack stands: at its latency, or spread over a strip of its own where that is unknown."""
    known = pl.col("latency_ms").is_not_null()
    place = (~known).cast(pl.Float64).cum_sum()
    return rows.with_columns(
        pl.when(known).then(pl.col("latency_ms")).otherwise(place).alias("x"),
        pl.when(known).then(pl.lit(LATENCY_AXIS)).otherwise(pl.lit(UNKNOWN_AXIS)).alias("axis"),
    )


def marked(table: pl.DataFrame, decision: Decision) -> pl.DataFrame:
    """The stack table with what the decision says of every row.

    Returns:
        `table` with row (position), feasible, reason (why excluded, or null), line (on the latency-quality
        frontier of the feasible stacks) and frontier (not dominated in cost, latency and quality).
    """
    feasible = decision.feasible
    cost, latency, quality = (
        np.where(feasible, table[name].cast(pl.Float64).fill_null(np.nan).to_numpy(), np.nan)
        for name in ("cost", "latency_ms", "quality")
    )
    priced = bool((~np.isnan(cost)).any())
    line = np.zeros(table.height, dtype=np.bool_)
    line[frontier_2d(latency, quality)] = True
    reasons = decision.excluded().select("row", "reason", "constraint")
    return (
        table.with_row_index("row")
        .with_columns(
            pl.Series("feasible", feasible),
            pl.Series("line", line),
            pl.Series("frontier", nondominated(cost, latency, quality) if priced else line),
        )
        .join(
            reasons.with_columns(pl.col("row").cast(pl.UInt32)), on="row", how="left", maintain_order="left"
        )
    )


def _frontier(fig: go.Figure, drawn: pl.DataFrame) -> None:
    line = drawn.filter(pl.col("line")).sort("latency_ms", "quality")
    if line.is_empty():
        return
    labels, places = _labels(line)
    fig.add_trace(
        go.Scatter(
            x=line["latency_ms"].to_numpy(),
            y=line["quality"].to_numpy(),
            mode="lines+text",
            line={"shape": "hv", "color": theme.FRONTIER, "width": 2},
            text=labels,
            textposition=places,
            textfont={"size": 11},
            cliponaxis=False,
            name="frontier",
            hoverinfo="skip",
        )
    )


def _labels(line: pl.DataFrame) -> tuple[list[str], list[str]]:
    """Names for the frontier: the best first, none that would lie on another, each towards the free side."""
    x, y = line["latency_ms"].to_numpy(), line["quality"].to_numpy()
    wide, high = max(np.ptp(x), 1e-9), max(np.ptp(y), 1e-9)
    kept: list[int] = []
    for place in range(line.height - 1, -1, -1):
        clear = all(abs(y[place] - y[k]) > 0.06 * high or abs(x[place] - x[k]) > 0.4 * wide for k in kept)
        if clear and len(kept) < LABELS_ON_FRONTIER:
            kept.append(place)
    names = [
        text.escape(text.shorten(name, 34)) if row in kept else "" for row, name in enumerate(line["name"])
    ]
    return names, ["top right" if value < x.min() + wide / 2 else "top left" for value in x]


def _whiskers(fig: go.Figure, drawn: pl.DataFrame) -> None:
    """Intervals of the stacks on the frontier, where there are few enough to read."""
    part = drawn.filter(pl.col("line") & pl.col("quality_low").is_not_null())
    if part.is_empty() or part.height > WHISKERS_UP_TO:
        return
    fig.add_trace(
        go.Scatter(
            x=part["latency_ms"].to_numpy(),
            y=part["quality"].to_numpy(),
            mode="markers",
            marker={"size": 1, "color": theme.FRONTIER},
            error_y={
                "type": "data",
                "symmetric": False,
                "array": (part["quality_high"] - part["quality"]).to_numpy(),
                "arrayminus": (part["quality"] - part["quality_low"]).to_numpy(),
                "thickness": 1,
                "width": 3,
                "color": theme.FRONTIER,
            },
            name="95 % interval",
            hoverinfo="skip",
        )
    )


def _rings(
    fig: go.Figure, drawn: pl.DataFrame, table: pl.DataFrame, decision: Decision, selected: str | None
) -> None:
    picked = _row_of(table, selected)
    rings = (
        (decision.chosen, "chosen", theme.ACCENT, 3, 20),
        (decision.runner_up, "runner-up", theme.NEUTRAL, 2, 17),
        (None if picked == decision.chosen else picked, "selected", theme.OKABE_ITO[3], 3, 24),
    )
    for row, title, colour, width, size in rings:
        part = drawn.filter(pl.col("row") == row) if row is not None else drawn.clear()
        if not part.is_empty():
            fig.add_trace(
                go.Scatter(
                    x=part["x"].to_numpy(),
                    xaxis=part["axis"][0],
                    y=part["quality"].to_numpy(),
                    mode="markers",
                    marker={"symbol": "circle-open", "size": size, "line": {"width": width}, "color": colour},
                    name=title,
                    hoverinfo="skip",
                )
            )


def _row_of(table: pl.DataFrame, run_id: str | None) -> int | None:
    if run_id is None:
        return None
    found = np.flatnonzero((table["run_id"] == run_id).to_numpy())
    return int(found[0]) if len(found) else None


def _limits(fig: go.Figure, constraints: Constraints) -> None:
    line = {"color": theme.ACCENT, "width": 1.5, "dash": "dash"}
    sla, floor = constraints.sla_ms, constraints.floor
    if sla is not None:
        fig.add_vline(x=sla, line=line)
        # A shape takes the value on a logarithmic axis, an annotation its logarithm.
        at = math.log10(sla) if fig.layout.xaxis.type == "log" and sla > 0 else sla
        fig.add_annotation(
            x=at,
            y=0,
            yref="paper",
            text=f"SLA {text.ms(sla)}",
            showarrow=False,
            xanchor="left",
            yanchor="bottom",
        )
    if floor is not None:
        fig.add_hline(
            y=floor, line=line, annotation={"text": f"floor {floor:.2f}"}, annotation_position="bottom right"
        )


def _axes(fig: go.Figure, drawn: pl.DataFrame) -> None:
    positive = drawn["latency_ms"].drop_nulls().filter(drawn["latency_ms"].drop_nulls() > 0)
    low, high = positive.min(), positive.max()
    if isinstance(low, float) and isinstance(high, float) and high > 10 * low:
        ticks = [
            step * 10.0**power
            for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            for step in (1, 2, 5)
        ]
        fig.update_xaxes(type="log", tickvals=ticks, ticktext=[f"{tick:g}" for tick in ticks])
    if not drawn.is_empty():
        qualities = drawn["quality"].to_numpy()
        room = max(0.03, 0.08 * np.ptp(qualities))
        fig.update_yaxes(range=[max(-0.01, qualities.min() - room), qualities.max() + room])
    unknown = drawn.filter(pl.col("axis") == UNKNOWN_AXIS).height
    if unknown:
        start = STRIP_FROM if unknown < drawn.height else 0.0
        fig.update_xaxes(domain=[0, start - 0.02] if start else [0, 1], visible=start > 0)
        fig.update_layout(
            xaxis2={
                "domain": [start, 1],
                "anchor": "y",
                "range": [0, unknown + 1],
                "showticklabels": False,
                "showgrid": False,
                "zeroline": False,
                "title": {"text": "latency unknown"},
            }
        )
    fig.add_annotation(
        text="↖ better", xref="paper", yref="paper", x=0.01, y=0.99, showarrow=False, font={"size": 12}
    )
