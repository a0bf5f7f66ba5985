"""What the next larger K buys, as words, a table and a chart (CLQ paper §5.4)."""

from __future__ import annotations

import re
from typing import Literal

import plotly.graph_objects as go
import polars as pl

from core.views import text, theme

Per = Literal["100 ms", "$1 / 1k"]
PER: dict[Per, str] = {"100 ms": "per_100_ms", "$1 / 1k": "per_usd"}
SHOWN = 8
"""Families of stacks in the chart; the table has all."""
_BEYOND = "Where results per query are known it must rise by more than chance."
_DEPTH = re.compile(r",? K = \d+")


def step_rows(steps: pl.DataFrame, table: pl.DataFrame, *, higher_is_better: bool = True) -> pl.DataFrame:
    """Name the families of `core.views.what_if.deeper.steps`.

    Returns:
        family (name without K), from_k, to_k, d_quality, gain interval where known, d_ms, d_usd, per_100_ms,
        per_usd, pays, reason, run_id; families in the order of their best quality.
    """
    names = table.select("run_id", "name", "quality")
    rows = steps.join(names, on="run_id", how="left", maintain_order="left")
    families = [_DEPTH.sub("", name or "") for name in rows["name"]]
    best = pl.col("quality").max() if higher_is_better else pl.col("quality").min()
    return (
        rows.with_columns(pl.Series("family", families, dtype=pl.String))
        .with_columns(best.over("series").alias("best"))
        .sort(["best", "series", "to_k"], descending=[higher_is_better, False, False], maintain_order=True)
        .select(
            "family",
            *("from_k", "to_k", "d_quality", "d_ms", "d_usd", "per_100_ms", "per_usd", "pays", "reason"),
            "run_id",
            "series",
        )
    )


def step_words(rows: pl.DataFrame) -> str:
    """How many of the steps pay, in words."""
    if rows.is_empty():
        return "No two stacks here differ in K alone, so there is no step to price."
    pays = rows.filter("pays").height
    all_steps = text.count(rows.height, "step")
    words = f"{pays} of {all_steps} to the next larger K pay"
    stop = rows.filter(~pl.col("pays")).group_by("series").agg(pl.col("from_k").min())
    families = rows["series"].n_unique()
    if stop.is_empty():
        return f"{words}: quality rises. {_BEYOND}"
    several = text.count(families, "family", "families")
    return f"{words}: quality rises; {stop.height} of {several} stop paying at some K. {_BEYOND}"


def step_chart(rows: pl.DataFrame, per: Per) -> go.Figure | None:
    """Quality bought per 100 ms or per dollar, at each step of each family; hollow where it does not pay.

    Args:
        rows: From `step_rows`.
        per: What is paid.

    Returns:
        The chart; None where no step has a price in that currency, or none moves quality.
    """
    column = PER[per]
    known = rows.filter(pl.col(column).is_not_null())
    if not (known["d_quality"] != 0).any():
        return None
    layout = theme.layout(x="step to K", y=f"quality per {per} more", height=380)
    depths = sorted(set(known["to_k"]))
    place = {depth: at for at, depth in enumerate(depths)}
    layout["xaxis"] |= {"tickvals": list(place.values()), "ticktext": [str(depth) for depth in depths]}
    layout["yaxis"] |= {"zeroline": True}
    kept = known["series"].unique(maintain_order=True).head(SHOWN).to_list()
    titles = [known.filter(pl.col("series") == series)["family"][0] for series in kept]
    colours = theme.colours_for(titles)
    traces = [
        _trace(known.filter(pl.col("series") == series), title, colours[title], (column, place))
        for series, title in zip(kept, titles, strict=True)
    ]
    return theme.finished(traces, layout)


def _trace(rows: pl.DataFrame, title: str, colour: str, axes: tuple[str, dict[int, int]]) -> theme.Spec:
    column, place = axes
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": text.escape(text.shorten(title, 34)),
        "x": [place[depth] for depth in rows["to_k"]],
        "y": rows[column].to_numpy(),
        "line": {"color": colour, "width": 1.5},
        "marker": {
            "size": 10,
            "color": colour,
            "symbol": ["circle" if pays else "circle-open" for pays in rows["pays"]],
        },
        "hovertext": [
            f"{text.escape(row['family'])}<br>K {row['from_k']} → {row['to_k']}: {row['d_quality']:+.3f}, "
            f"{_signed(row['d_ms'], 'ms')}, {_signed(row['d_usd'], '$ / 1k')}"
            f"{'<br>' + text.escape(row['reason']) if row['reason'] else ''}"
            for row in rows.iter_rows(named=True)
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _signed(value: float | None, unit: str) -> str:
    return f"{unit} unknown" if value is None else f"{value:+.3g} {unit}"
