"""The Pareto chart: latency against quality, the frontier, what the constraints exclude and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.clq.pareto import frontier_2d, nondominated
from core.clq.rules import Constraints, Decision
from core.views import text, theme
from core.views.scope import Latency, Quality

COLOURS = ("cost", "reranker", "mode", "embedder", "dim", "index", "candidates")
SIZES = ("same", "candidates", "dim", "cost")
NAMED_UP_TO = 2000
"""Marks whose hover names the stack; beyond it names would be most of what is sent to the browser."""
WHISKERS_UP_TO = 40
LABELS_ON_FRONTIER = 6
_EXCLUDED = {"sla": "over the SLA", "budget": "over the budget", "floor": "under the quality floor"}
_SMALL, _LARGE = 7.0, 20.0


@dataclass(frozen=True)
class ParetoView:
    """The page's content.

    Attributes:
        figure: The chart; customdata[0] of every mark is the row of `rows`.
        rows: The stack table with feasible, reason and frontier, the frontier and the best first.
        undrawn: Stacks that have no latency or no quality and are therefore not on the chart.
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
        colour: One of `COLOURS`.
        size: One of `SIZES`.
        selected: run_id of the stack to ring besides the chosen one.

    Returns:
        The chart and the table behind it.
    """
    rows = marked(table, decision)
    drawn = rows.filter(pl.col("latency_ms").is_not_null() & pl.col("quality").is_not_null())
    fig = theme.figure(x=latency.name, y=quality.name, height=520)
    _frontier(fig, drawn)
    _marks(fig, drawn, colour, size)
    _whiskers(fig, drawn)
    _rings(fig, drawn, table, decision, selected)
    _limits(fig, constraints)
    _axes(fig, drawn)
    order = rows.sort(["feasible", "frontier", "quality"], descending=True, nulls_last=True)
    return ParetoView(fig, order, rows.filter(pl.col("latency_ms").is_null() | pl.col("quality").is_null()))


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


def _marks(fig: go.Figure, drawn: pl.DataFrame, colour: str, size: str) -> None:
    """One trace per reason, so that a hover says why a stack is out without a text per mark."""
    kind = go.Scattergl if drawn.height > theme.WEBGL_FROM else go.Scatter
    sizes = _sizes(drawn, size)
    symbols = _symbols(drawn)
    shades, scale = _shades(drawn, colour)
    groups: Sequence[tuple[str | None, str]] = ((None, "feasible"), *_EXCLUDED.items(), ("", "unknown value"))
    reasons = drawn["constraint"]
    for constraint, title in groups:
        if constraint is None:
            mask = drawn["feasible"]
        elif constraint:
            mask = reasons == constraint
        else:
            mask = ~drawn["feasible"] & ~reasons.is_in(list(_EXCLUDED))
        picked = np.flatnonzero(mask.fill_null(False).to_numpy())
        if not len(picked):
            continue
        part = drawn[picked]
        out = "" if constraint is None else f"<br><b>excluded: {title}</b>"
        data, hover = _hover(part, drawn.height, out)
        marker = {
            "size": sizes[picked] if isinstance(sizes, np.ndarray) else sizes,
            "symbol": symbols[picked],
            "color": shades[picked],
            **scale,
            "opacity": 0.9 if constraint is None else theme.DIMMED,
        }
        if constraint is not None:
            marker["showscale"] = False
        fig.add_trace(
            kind(
                x=part["latency_ms"].to_numpy(),
                y=part["quality"].to_numpy(),
                mode="markers",
                marker=marker,
                name=f"{title} ({part.height:,})",
                customdata=data,
                hovertemplate=hover,
            )
        )


def _hover(part: pl.DataFrame, total: int, out: str) -> tuple[np.ndarray, str]:
    numbers = part.select("row", "cost", "n", "candidates").to_numpy()
    figures = "%{x:.4g} ms · %{y:.3f} (n = %{customdata[2]}) · $%{customdata[1]:.3g} / 1k"
    end = f"<br>{figures}{out}<extra></extra>"
    if total > NAMED_UP_TO:
        return numbers, "stack %{customdata[0]}, K = %{customdata[3]}" + end
    names = np.array([text.escape(name) for name in part["name"]], dtype=object)
    return np.column_stack([numbers.astype(object), names]), "%{customdata[4]}" + end


def _sizes(drawn: pl.DataFrame, size: str) -> np.ndarray | float:
    few = 11.0 if drawn.height <= 300 else 7.0 if drawn.height <= 3000 else 4.0
    if size == "same":
        return few
    values = drawn[size].cast(pl.Float64).to_numpy()
    known = values[~np.isnan(values)]
    if not len(known) or known.max() <= 0:
        return few
    return np.where(
        np.isnan(values), few, _SMALL + (_LARGE - _SMALL) * np.sqrt(np.nan_to_num(values) / known.max())
    )


def _symbols(drawn: pl.DataFrame) -> np.ndarray:
    kinds = sorted(set(drawn["reranker"].fill_null("none")), key=lambda name: (name != "none", name))
    symbol = {kind: theme.SYMBOLS[min(place, len(theme.SYMBOLS) - 1)] for place, kind in enumerate(kinds)}
    return np.array([symbol[kind] for kind in drawn["reranker"].fill_null("none")])


def _shades(drawn: pl.DataFrame, colour: str) -> tuple[np.ndarray, dict[str, object]]:
    """A number per mark and the scale that colours it: sequential for cost, one flat colour per category."""
    if colour == "cost":
        cost = drawn["cost"].cast(pl.Float64).to_numpy()
        known = cost[~np.isnan(cost)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        bar = {"title": {"text": "$ / 1k"}, "thickness": 12, "exponentformat": "power"}
        return cost, {
            "colorscale": theme.SEQUENTIAL,
            "cmin": low,
            "cmax": high,
            "showscale": True,
            "colorbar": bar,
        }
    values = drawn[colour].cast(pl.String).fill_null("–")
    kinds = values.unique().sort(descending=False).to_list()
    if colour in ("dim", "candidates"):
        kinds.sort(key=lambda kind: (kind == "–", float(kind) if kind != "–" else math.inf))
    kinds = kinds[: len(theme.OKABE_ITO)]
    code = {kind: place for place, kind in enumerate(kinds)}
    steps = [
        (edge / len(kinds), theme.OKABE_ITO[place])
        for place in range(len(kinds))
        for edge in (place, place + 1)
    ]
    bar = {
        "title": {"text": colour},
        "thickness": 12,
        "tickvals": list(range(len(kinds))),
        "ticktext": [text.escape(text.shorten(kind, 20)) for kind in kinds],
    }
    scale = {"colorscale": steps, "cmin": -0.5, "cmax": len(kinds) - 0.5, "showscale": True, "colorbar": bar}
    return np.array([code.get(value, len(kinds) - 1) for value in values], dtype=np.float64), scale


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
    rings = (
        (decision.chosen, "chosen", theme.ACCENT, 3, 20),
        (decision.runner_up, "runner-up", theme.NEUTRAL, 2, 17),
        (_row_of(table, selected), "selected", theme.OKABE_ITO[3], 3, 24),
    )
    for row, title, colour, width, size in rings:
        part = drawn.filter(pl.col("row") == row) if row is not None else drawn.clear()
        if not part.is_empty():
            fig.add_trace(
                go.Scatter(
                    x=part["latency_ms"].to_numpy(),
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
    if constraints.sla_ms is not None:
        label = f"SLA {text.ms(constraints.sla_ms)}"
        fig.add_vline(
            x=constraints.sla_ms, line=line, annotation={"text": label}, annotation_position="top right"
        )
    if constraints.floor is not None:
        label = f"floor {constraints.floor:.2f}"
        fig.add_hline(
            y=constraints.floor, line=line, annotation={"text": label}, annotation_position="bottom right"
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
    fig.add_annotation(
        text="↖ better", xref="paper", yref="paper", x=0.01, y=0.99, showarrow=False, font={"size": 12}
    )
