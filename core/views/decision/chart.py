"""The Pareto chart: latency against quality, the frontier, what the constraints exclude and why."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.decide.axes import LATENCY, Axis
from core.decide.frontier import frontier
from core.decide.pareto import frontier_2d
from core.decide.rules import Constraints, Decision
from core.views import text, theme
from core.views.decision.density import DENSE_FROM, Grid, density, grid
from core.views.decision.marks import LATENCY_AXIS, UNKNOWN_AXIS, marks
from core.views.workspace.scope import Latency, Quality

OVER = "over-"
"""How the meta of a trace begins that holds for these limits only: frontier, whiskers, rings."""
WHISKERS_UP_TO = 40
LABELS_ON_FRONTIER = 6
_ROOM = "\u2003"
STRIP_FROM = 0.87
"""Where the strip of stacks with unknown latency begins, as a share of the chart's width."""


@dataclass(frozen=True)
class ParetoView:
    """The page's content.

    Attributes:
        figure: The chart; customdata[0] of every mark, and of every cell of a density, is a row of the table.
        rows: The stack table with feasible, reason and frontier, the frontier and the best first.
        undrawn: Stacks that have no quality and are therefore not on the chart.
        drawn: The others, in table order.
        grid: The cells that `drawn` lies in, where the chart shows density; else None.
        axes: All axes, that of quality in its direction.
        required: Those of which a number must be known, whatever the limits.
    """

    figure: go.Figure
    rows: pl.DataFrame
    undrawn: pl.DataFrame
    drawn: pl.DataFrame
    grid: Grid | None
    axes: tuple[Axis, ...]
    required: tuple[Axis, ...]


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
    weak: bool = False,
) -> ParetoView:
    """Draw the stacks of a workspace.

    Args:
        table: The stack table.
        decision: What the constraints select from it.
        constraints: SLA, budget and floor, drawn as lines.
        quality: The y axis.
        latency: The x axis.
        colour: One of `core.views.decision.marks.COLOURS`.
        size: One of `core.views.decision.marks.SIZES`.
        selected: run_id of the stack to ring besides the chosen one.
        weak: Take the paper's form of the frontier for the table; the line stays that of the usual form.

    Returns:
        The chart and the table behind it.
    """
    rows = marked(table, decision, weak=weak)
    drawn = _placed(rows.filter(pl.col("quality").is_not_null()))
    layout = theme.layout(x=latency.name, y=quality.name, height=520)
    _axes(layout, drawn, decision.quality)
    layout["shapes"] = _band(table, decision)
    _limits(layout, constraints, decision.quality)
    dense = drawn.height > DENSE_FROM
    over = grid(drawn, log=layout["xaxis"].get("type") == "log") if dense else None
    # The frontier stands out of a density as marks; everything is marks where there is no density.
    stacks = marks(drawn.filter(pl.col("line") | pl.col("frontier")) if dense else drawn, colour, size)
    if over:
        for trace in stacks:
            trace["name"] = str(trace["name"]).replace("feasible", "on the frontier")
    if not dense and drawn.height > theme.FIXED_MARGINS_FROM:
        layout["margin"] = theme.fixed_margins(stacks[0]["marker"]["colorbar"].get("ticktext", ()))
    rings = _rings(drawn, table, decision, selected)
    below = density(drawn, over, decision.quality) if over else []
    fig = theme.finished([*below, *_frontier(drawn), *stacks, *_whiskers(drawn), *rings], layout)
    return ParetoView(
        figure=fig,
        rows=ordered(rows, decision),
        undrawn=rows.filter(pl.col("quality").is_null()),
        drawn=drawn,
        grid=over,
        axes=decision.axes,
        required=tuple(axis for axis in decision.required if axis.compared),
    )


def ordered(rows: pl.DataFrame, decision: Decision) -> pl.DataFrame:
    """The feasible first, of these the frontier, the best first."""
    down = [True, True, decision.quality.higher_is_better]
    return rows.sort(["feasible", "frontier", "quality"], descending=down, nulls_last=True)


def _placed(rows: pl.DataFrame) -> pl.DataFrame:
    """Where each stack stands: at its latency, or spread over a strip of its own where that is unknown."""
    known = pl.col("latency_ms").is_not_null()
    place = (~known).cast(pl.Float64).cum_sum()
    return rows.with_columns(
        pl.when(known).then(pl.col("latency_ms")).otherwise(place).alias("x"),
        pl.when(known).then(pl.lit(LATENCY_AXIS)).otherwise(pl.lit(UNKNOWN_AXIS)).alias("axis"),
    )


def marked(table: pl.DataFrame, decision: Decision, *, weak: bool = False) -> pl.DataFrame:
    """The stack table with what the decision says of every row.

    Args:
        table: The stack table.
        decision: What the constraints select from it.
        weak: Whether "frontier" takes the paper's form; see `core.decide.pareto.nondominated`.

    Returns:
        `table` with row (position), feasible, reason (why excluded, or null), line (on the latency-quality
        frontier of the feasible stacks) and frontier (not dominated in cost, latency and quality).
    """
    feasible = decision.feasible
    line = np.zeros(table.height, dtype=np.bool_)
    merit = decision.quality.merit(decision.quality.read(table))
    line[frontier_2d(np.where(feasible, LATENCY.read(table), np.nan), merit)] = True
    on = frontier(table, decision, weak=weak)
    reasons = decision.excluded().select("row", "reason", "constraint")
    return (
        table.with_row_index("row")
        .with_columns(
            pl.Series("feasible", feasible),
            pl.Series("line", line),
            pl.Series("frontier", on),
        )
        .join(
            reasons.with_columns(pl.col("row").cast(pl.UInt32)), on="row", how="left", maintain_order="left"
        )
    )


def _frontier(drawn: pl.DataFrame) -> list[theme.Spec]:
    alike = pl.len().over("latency_ms", "quality") - 1
    line = drawn.with_columns(alike.alias("alike")).filter(pl.col("line"))
    # The first of the table is the last of those in one place, whose name is shown.
    line = line.sort("latency_ms", "quality", "row", descending=[False, False, True])
    if line.is_empty():
        return []
    labels, places = _labels(line)
    return [
        {
            "type": "scatter",
            "meta": f"{OVER}frontier",
            "x": line["latency_ms"].to_numpy(),
            "y": line["quality"].to_numpy(),
            "mode": "lines+text",
            "line": {"shape": "hv", "color": theme.FRONTIER, "width": 2},
            "text": labels,
            "textposition": places,
            "textfont": {"size": 11},
            "cliponaxis": False,
            "name": "frontier",
            "hoverinfo": "skip",
        }
    ]


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
        _beside_mark(name, alike) if place in kept else ""
        for place, (name, alike) in enumerate(line.select("name", "alike").iter_rows())
    ]
    return names, ["top right" if value < x.min() + wide / 2 else "top left" for value in x]


def _beside_mark(name: str, alike: int) -> str:
    """A name with room on both sides for the mark that it stands beside, and how many share the place."""
    more = f" (+{alike} equal)" if alike else ""
    return f"{_ROOM}{text.escape(text.shorten(name, 34))}{more}{_ROOM}"


def _with_whisker(drawn: pl.DataFrame) -> pl.DataFrame:
    """The stacks whose interval is drawn."""
    part = drawn.filter(pl.col("line") & pl.col("quality_low").is_not_null())
    return part if part.height <= WHISKERS_UP_TO else part.clear()


def _whiskers(drawn: pl.DataFrame) -> list[theme.Spec]:
    """Intervals of the stacks on the frontier, where there are few enough to read."""
    part = _with_whisker(drawn)
    if part.is_empty():
        return []
    return [
        {
            "type": "scatter",
            "meta": f"{OVER}whiskers",
            "x": part["latency_ms"].to_numpy(),
            "y": part["quality"].to_numpy(),
            "mode": "markers",
            "marker": {"size": 1, "color": theme.FRONTIER},
            "error_y": {
                "type": "data",
                "symmetric": False,
                "array": (part["quality_high"] - part["quality"]).to_numpy(),
                "arrayminus": (part["quality"] - part["quality_low"]).to_numpy(),
                "thickness": 1,
                "width": 3,
                "color": theme.FRONTIER,
            },
            "name": "95 % interval",
            "hoverinfo": "skip",
        }
    ]


def _rings(
    drawn: pl.DataFrame, table: pl.DataFrame, decision: Decision, selected: str | None
) -> list[theme.Spec]:
    picked = _row_of(table, selected)
    looks = (
        (decision.chosen, "chosen", theme.ACCENT, 3, 20),
        (decision.runner_up, "runner-up", theme.NEUTRAL, 2, 17),
        (None if picked == decision.chosen else picked, "selected", theme.OKABE_ITO[3], 3, 24),
    )
    rows = drawn["row"].to_numpy()
    return [
        {
            "type": "scatter",
            "meta": f"{OVER}{title}",
            "x": [drawn["x"][int(place)]],
            "xaxis": drawn["axis"][int(place)],
            "y": [drawn["quality"][int(place)]],
            "mode": "markers",
            "marker": {"symbol": "circle-open", "size": size, "line": {"width": width}, "color": colour},
            "name": title,
            "hoverinfo": "skip",
        }
        for row, title, colour, width, size in looks
        if row is not None
        for place in np.flatnonzero(rows == row)
    ]


def _row_of(table: pl.DataFrame, run_id: str | None) -> int | None:
    if run_id is None:
        return None
    found = np.flatnonzero((table["run_id"] == run_id).to_numpy())
    return int(found[0]) if len(found) else None


def _limits(layout: theme.Spec, constraints: Constraints, quality: Axis) -> None:
    """The SLA and the floor, or cap, as labelled lines; the axes must be set."""
    line = {"color": theme.ACCENT, "width": 1.5, "dash": "dash"}
    sla, floor = constraints.sla_ms, constraints.floor
    if sla is not None:
        layout["shapes"].append(
            {"type": "line", "line": line, "x0": sla, "x1": sla, "y0": 0, "y1": 1, "yref": "y domain"}
        )
        # A shape takes the value on a logarithmic axis, an annotation its logarithm.
        at = math.log10(sla) if layout["xaxis"].get("type") == "log" and sla > 0 else sla
        label = {"text": f"SLA {text.ms(sla)}", "xanchor": "left", "yanchor": "bottom", "showarrow": False}
        layout["annotations"].append({"x": at, "y": 0, "yref": "paper", **label})
    if floor is not None:
        layout["shapes"].append(
            {"type": "line", "line": line, "x0": 0, "x1": 1, "y0": floor, "y1": floor, "xref": "x domain"}
        )
        label = {
            "text": f"{quality.limit} {floor:.2f}",
            "xanchor": "right",
            "yanchor": "top",
            "showarrow": False,
        }
        layout["annotations"].append({"x": 1, "y": floor, "xref": "x domain", **label})


def _band(table: pl.DataFrame, decision: Decision) -> list[theme.Spec]:
    """A strip over the latencies that are not told apart from that of the chosen stack."""
    latency = None if decision.chosen is None else table["latency_ms"][decision.chosen]
    if latency is None or not decision.jitter_ms:
        return []
    # No wider than the marks reach: a shape would stretch the axis.
    ends = np.array([latency - decision.jitter_ms, latency + decision.jitter_ms])
    low, high = ends.clip(*np.nanquantile(LATENCY.read(table), [0, 1]))
    span = {"x0": low, "x1": high, "y0": 0, "y1": 1, "yref": "y domain"}
    return [{"type": "rect", **span, "fillcolor": theme.SOFT, "line": {"width": 0}, "layer": "below"}]


def _axes(layout: theme.Spec, drawn: pl.DataFrame, quality: Axis) -> None:
    """Ranges, ticks and the strip of unknown latencies."""
    latency = drawn["latency_ms"].drop_nulls()
    positive = latency.filter(latency > 0)
    low, high = positive.min(), positive.max()
    if isinstance(low, float) and isinstance(high, float) and high > 10 * low:
        ticks = [
            step * 10.0**power
            for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            for step in (1, 2, 5)
        ]
        layout["xaxis"] |= {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}
    if not drawn.is_empty():
        bounds = _with_whisker(drawn).select("quality_low", "quality_high").to_numpy().ravel()
        qualities = np.concatenate([drawn["quality"].to_numpy(), bounds[np.isfinite(bounds)]])
        room = max(0.03, 0.08 * np.ptp(qualities))
        least = -0.01 if qualities.min() >= 0 else -np.inf
        # Labels of one width: else they change the margin, which changes the labels, without end on paper.
        layout["yaxis"]["tickformat"] = ".3f"
        layout["yaxis"]["range"] = [max(least, qualities.min() - room), qualities.max() + room]
    unknown = drawn.height - len(latency)
    if unknown:
        start = STRIP_FROM if unknown < drawn.height else 0.0
        layout["xaxis"] |= {"domain": [0, start - 0.02] if start else [0, 1], "visible": start > 0}
        layout["xaxis2"] = {
            "domain": [start, 1],
            "anchor": "y",
            "range": [0, unknown + 1],
            "showticklabels": False,
            "showgrid": False,
            "zeroline": False,
            "title": {"text": "latency unknown"},
        }
    layout["annotations"] = [theme.better(higher=quality.higher_is_better)]
