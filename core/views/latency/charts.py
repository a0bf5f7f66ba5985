"""Charts of the Latency page: stages as bars or ECDF, reranker against K, generator by prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.stats.latency import TOTAL, Generation
from core.tables import FIRST_TOKEN, GENERATE
from core.views import text, theme
from core.views.latency.data import shown_stages
from core.views.legend import labels_of
from core.views.theme import logarithmic

LatencyShape = Literal["ECDF", "box"]
_PATTERNS = ("", "/", "\\", ".", "x", "-", "|", "+")
_TICKS = 6  # Maximum ticks of a logarithmic axis
_POINTS = 400  # Maximum points of a step line: longer samples are reduced to quantiles


def stage_bars(stages: pl.DataFrame, names: Sequence[str], today: str | None = None) -> go.Figure:
    """Draw the medians of `path_stages` end to end, a bar per stack; the first and today's are marked."""
    known = [name for name in names if name in set(stages["name"])]
    parts = []
    for place, stage in enumerate(shown_stages(stages)):
        ms = dict(stages.filter(pl.col("stage") == stage).select("name", "p50").iter_rows())
        notes = [f"{name}: {stage} {text.ms(ms.get(name))}" for name in known]
        colour, pattern = theme.OKABE_ITO[place % 8], _PATTERNS[place % len(_PATTERNS)]
        parts.append(theme.BarPart(stage, [ms.get(name) for name in known], colour, pattern, notes))
    first = names[0] if names else None
    return theme.stacked(known, parts, x="median of each stage (ms)", chosen=first, today=today)


def distributions(
    samples: pl.DataFrame,
    colours: Mapping[str, str],
    shape: LatencyShape,
    jitter_ms: float,
    today: str | None = None,
) -> go.Figure:
    """Draw every stage of some stacks, one panel each; logarithmic if the times span over a decade.

    Args:
        samples: From `core.views.latency.data.stage_samples`.
        colours: Colour by name of the stack; the jitter band is around the first.
        shape: Share of the queries answered within x, or boxes (quartiles, whiskers 1.5 times their range).
        jitter_ms: Half of the width of the band around the median total of the first stack; ms.
        today: The stack that runs today, which is marked.
    """
    there = [TOTAL, *(stage for stage in shown_stages(samples) if stage != TOTAL)]
    titles = ["all stages" if stage == TOTAL else stage for stage in there]
    panels = theme.Panels(titles, across=2, x="ms", height=200)
    labels = labels_of(colours, today)
    for place, stage in enumerate(there):
        part = samples.filter(pl.col("stage") == stage)
        for name, colour in colours.items():
            ms = np.sort(part.filter(pl.col("name") == name)["ms"].to_numpy())
            if len(ms):
                panels.add(place, _trace(ms, labels[name], colour, shape))
        panels.figure.update_xaxes(**_scale(part["ms"].drop_nulls().to_numpy()), **panels.at(place))
        if stage == TOTAL:
            _band(panels, part, next(iter(colours), ""), jitter_ms)
    axis = {"range": [0, 1.02], "tickformat": ".0%"} if shape == "ECDF" else {"showticklabels": False}
    return panels.figure.update_yaxes(**axis)


def _scale(ms: np.ndarray) -> theme.Spec:
    """Return a logarithmic axis with few ticks, if the times span over a decade."""
    if not logarithmic(ms):
        return {}
    ticks = theme.ticks_of(float(np.log10(ms.min())), float(np.log10(ms.max())), log=True)
    some = ticks[:: len(ticks) // _TICKS + 1]
    return {"type": "log", "tickvals": some, "ticktext": [f"{tick:g}" for tick in some]}


def _band(panels: theme.Panels, rows: pl.DataFrame, name: str, jitter_ms: float) -> None:
    """Draw a stack's jitter band in the first panel, unless it covers most of the panel."""
    own, every = rows.filter(pl.col("name") == name)["ms"].to_numpy(), rows["ms"].to_numpy()
    if len(own) and 0 < jitter_ms < np.ptp(every) / 4:
        low, high = np.median(own) + np.array([-jitter_ms, jitter_ms])
        panels.figure.add_vrect(x0=low, x1=high, fillcolor=theme.SOFT, line_width=0, layer="below",
                                **panels.at(0))  # fmt: skip


def _trace(ms: np.ndarray, label: str, colour: str, shape: LatencyShape) -> go.BaseTraceType:
    if shape == "box":
        return go.Box(x=ms, name=label, boxpoints="outliers", marker={"color": colour, "size": 3})
    share = np.arange(1, len(ms) + 1) / len(ms)
    if len(ms) > _POINTS:
        share = np.linspace(1 / _POINTS, 1, _POINTS)
        ms = np.quantile(ms, share)
    return go.Scatter(
        x=ms,
        y=share,
        mode="lines",
        name=label,
        line={"shape": "hv", "color": colour, "width": 2},
        hovertemplate="%{fullData.name}<br>%{y:.0%} within %{x:.4g} ms<extra></extra>",
    )


def by_depth(rows: pl.DataFrame) -> go.Figure:
    """Draw reranker medians against K with their fitted lines; points off their line are ringed."""
    groups = rows.partition_by("reranker", "embedder", maintain_order=True)
    labels = [
        f"{reranker} over {embedder}" if embedder else str(reranker)
        for reranker, embedder in (group.select("reranker", "embedder").row(0) for group in groups)
    ]
    colours, rerankers = theme.colours_for(labels), rows["reranker"].unique().sort().to_list()
    traces = []
    for label, group in zip(labels, groups, strict=True):
        colour, name = colours[label], text.escape(text.shorten(label, 50))
        symbol = theme.SYMBOLS[rerankers.index(group["reranker"][0]) % len(theme.SYMBOLS)]
        x, y, over = (group[column].to_numpy() for column in ("candidates", "latency_ms", "over_ms"))
        hover = (
            "%{fullData.name}<br>K = %{x}: %{y:.0f} ms, %{customdata:+.0f} ms from its line<extra></extra>"
        )
        marker = {"color": colour, "symbol": symbol, "size": 8, "opacity": 0.85}
        own: theme.Spec = {"legendgroup": name, "customdata": over, "hovertemplate": hover}
        traces.append(theme.scatter(name, x, y, marker=marker, **own))
        slope, intercept = group["slope"][0], group["intercept"][0]
        if slope is not None:
            along = np.array([0.0, float(x.max())])
            hover = f"%{{fullData.name}}<br>{intercept:.0f} ms + {slope:.2f} ms a candidate<extra></extra>"
            own = {"mode": "lines", "legendgroup": name, "showlegend": False, "hovertemplate": hover}
            line = {"color": colour, "width": 1.5, "dash": "dash"}
            traces.append(theme.scatter(name, along, intercept + slope * along, line=line, **own))
    out = rows.filter("departs")
    if out.height:
        ring = {"symbol": "circle-open", "size": 17, "color": theme.ACCENT, "line": {"width": 2}}
        x, y = out["candidates"].to_numpy(), out["latency_ms"].to_numpy()
        name = f"leaves its line ({out.height})"
        traces.append(theme.scatter(name, x, y, marker=ring, hoverinfo="skip"))
    layout = theme.layout(x="candidates K", y="reranker latency p50 (ms)")
    layout["xaxis"]["rangemode"] = layout["yaxis"]["rangemode"] = "tozero"  # on a log axis lines are curves
    return theme.finished(traces, layout)


def depth_lines(rows: pl.DataFrame) -> pl.DataFrame:
    """Return one row per reranker and embedder: its line, where it breaks, and its data.

    Returns:
        reranker, embedder, slope (ms per candidate), intercept (ms), stacks, depths, breaks_at, worst_ms
        (largest distance from the line among points off it), reason.
    """
    return rows.group_by("reranker", "embedder", maintain_order=True).agg(
        pl.col("slope").first(),
        pl.col("intercept").first(),
        pl.len().alias("stacks"),
        pl.col("candidates").n_unique().alias("depths"),
        pl.col("breaks_at").first(),
        pl.col("over_ms").filter(pl.col("departs")).max().alias("worst_ms"),
        pl.col("reason").first(),
    )


def generator(timed: pl.DataFrame, model: Generation | None, prompts: Sequence[float]) -> go.Figure:
    """Draw first token and whole answer against prompt tokens: timed answers as points, the model as lines.

    The prompts of the stacks shown are marked on the axis.
    """
    known = timed.filter(pl.col("input_tokens").is_finite())
    looks = ((FIRST_TOKEN, "first token", theme.OKABE_ITO[0]), (GENERATE, "whole answer", theme.OKABE_ITO[1]))
    longest = max([*prompts, *known["input_tokens"].drop_nulls().to_list(), 1000.0])
    traces = []
    for stage, title, colour in looks:
        rows = known.filter(pl.col("stage") == stage)
        if not rows.is_empty():
            marker = {"color": colour, "size": 5, "opacity": 0.5}
            x, y = rows["input_tokens"].to_numpy(), rows["ms"].to_numpy()
            traces.append(theme.scatter(f"{title}, timed", x, y, marker=marker))
        if model is not None:
            ends = np.array([0.0, 1.1 * longest])
            takes = model.speed.first_token_ms if stage == FIRST_TOKEN else model.ms
            line = {"color": colour, "dash": "dash"}
            y = np.array([takes(end) for end in ends])
            traces.append(theme.scatter(f"{title}, modelled", ends, y, mode="lines", line=line))
    fig = theme.finished(traces, theme.layout(x="prompt tokens", y="ms", height=380))
    for prompt in sorted(set(prompts)) if model is not None else ():
        fig.add_vline(x=prompt, line={"color": theme.NEUTRAL, "width": 1, "dash": "dot"})
    return fig.update_yaxes(rangemode="tozero")
