"""The routing simulator's chart: quality against latency or cost, over the workspace's stacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.views import text, theme
from core.views.workspace.scope import Quality

AXES: Mapping[str, str] = {
    "p50": "latency p50 (ms)",
    "p95": "latency p95 (ms)",
    "mean_ms": "mean latency (ms)",
    "cost": "$ per 1,000 queries",
}
"""What can stand on the x axis, with its title."""
_MARKS: Mapping[str, tuple[str, str, int]] = {
    "always": ("circle", theme.FRONTIER, 12),
    "random": ("x", theme.NEUTRAL, 10),
    "routed": ("star", theme.ACCENT, 17),
    "optimistic": ("star-open", theme.ACCENT, 15),
    "own": ("square", theme.OKABE_ITO[3], 12),
    "oracle": ("diamond", theme.OKABE_ITO[2], 12),
}
"""Symbol, colour and size of each kind of way."""
_LINES: Mapping[str, tuple[str, str, str]] = {
    "random": ("chance at every rate", theme.NEUTRAL, "dot"),
    "threshold": ("every threshold, in sample", theme.ACCENT, "solid"),
}


def drawable(rows: pl.DataFrame) -> list[str]:
    """The axes that every way of one depth for all is known on; keys of `AXES`."""
    single = rows.filter(pl.col("kind") == "always")
    return [axis for axis in AXES if single[axis].null_count() == 0]


def chart(
    rows: pl.DataFrame, path: pl.DataFrame, stacks: pl.DataFrame, quality: Quality, axis: str
) -> go.Figure:
    """Draw the ways of answering the queries.

    Args:
        rows: As in `core.views.what_if.routing.policies.Simulation`.
        stacks: The stack table, dimmed behind; its latency is shown where `axis` is its percentile.
        axis: A key of `AXES` that `drawable` names.

    Returns:
        The chart; it opens on the ways, the other stacks may lie outside until it is zoomed out.
    """
    shown = rows.filter(pl.col(axis).is_not_null())
    layout = theme.layout(x=AXES[axis], y=quality.name, height=480)
    traces = [*_stacks(stacks, axis), *(_line(path, kind, axis) for kind in _LINES)]
    traces += [_mark(row, axis) for row in shown.iter_rows(named=True)]
    layout["annotations"] = [theme.better(higher=quality.higher_is_better)]
    if not shown.is_empty():
        drawn = pl.concat([path.select(axis, "quality"), shown.select(axis, "quality")])
        layout["xaxis"]["range"] = theme.span(drawn[axis].drop_nulls(), 0.12)
        whole = pl.concat([drawn["quality"], shown["low"], shown["high"]]).drop_nulls()
        layout["yaxis"]["range"] = theme.span(whole, 0.08)
    return theme.finished([trace for trace in traces if len(trace["x"])], layout)


def _stacks(stacks: pl.DataFrame, axis: str) -> list[theme.Spec]:
    """The workspace's stacks, where they are known on this axis."""
    column = "cost" if axis == "cost" else "latency_ms"
    known = stacks.drop_nulls([column, "quality"])
    if axis == "mean_ms":
        return []
    return [
        theme.scatter(
            f"stacks of the workspace ({known.height:,})",
            known[column].to_numpy(),
            known["quality"].to_numpy(),
            marker={"size": 7, "color": theme.NEUTRAL, "opacity": theme.DIMMED},
            text=[text.escape(name) for name in known["name"]],
            hovertemplate="%{text}<br>%{y:.3f} at %{x:.4g}<extra></extra>",
        )
    ]


def _line(path: pl.DataFrame, kind: str, axis: str) -> theme.Spec:
    rows = path.filter((pl.col("kind") == kind) & pl.col(axis).is_not_null())
    title, colour, dash = _LINES[kind]
    return theme.scatter(
        title,
        rows[axis].to_numpy(),
        rows["quality"].to_numpy(),
        mode="lines",
        line={"color": colour, "width": 1.3, "dash": dash},
        opacity=0.7,
        customdata=(100 * rows["deeper"]).to_numpy(),
        hovertemplate=f"{title}<br>%{{customdata:.0f}} % deeper: %{{y:.3f}} at %{{x:.4g}}<extra></extra>",
    )


def _mark(row: Mapping[str, Any], axis: str) -> theme.Spec:
    kind, name, low, high = row["kind"], row["way"], row["low"], row["high"]
    symbol, colour, size = _MARKS[kind]
    trace = theme.scatter(
        text.escape(text.shorten(name, 40)),
        [row[axis]],
        [row["quality"]],
        marker={"symbol": symbol, "size": size, "color": colour},
        hovertext=[text.escape(name)],
        hovertemplate="%{hovertext}<br>%{y:.3f} at %{x:.4g}<extra></extra>",
    )
    if kind in ("routed", "always") and low is not None and high is not None:
        ends = [np.array([end]) for end in (low, row["quality"], high)]
        trace["error_y"] = theme.whiskers(*ends, thickness=1, width=3, color=colour)
    return trace
