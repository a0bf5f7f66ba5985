"""The stacks in three axes at once: as points in space, and as lines over parallel axes."""

from __future__ import annotations

import math

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.decide.rules import Decision
from core.views import text, theme
from core.views.workspace.scope import Latency, Quality

VIEWS = ("latency × quality", "3-D", "parallel coordinates")
"""Ways to draw the frontier, the default first."""
EXCLUDED, DOMINATED, FRONTIER, SELECTED, CHOSEN = "excluded", "dominated", "frontier", "selected", "chosen"
_LOOKS = {
    EXCLUDED: (theme.NEUTRAL, 3.5, 0.25),
    DOMINATED: (theme.OKABE_ITO[4], 4.0, 0.55),
    FRONTIER: (theme.FRONTIER, 6.0, 1.0),
    SELECTED: (theme.OKABE_ITO[3], 8.0, 1.0),
    CHOSEN: (theme.ACCENT, 9.0, 1.0),
}
"""Colour, size and opacity of what becomes of a stack, in the order of drawing."""
_HOVERS_UP_TO = 3000
_SYMBOLS = {CHOSEN: "diamond", SELECTED: "square", EXCLUDED: "x"}
_FEW = 5
"""Up to how many different values an axis names every one."""
_AXES = (
    ("quality", "", None),
    ("latency_ms", "latency ms", "unknown"),
    ("cost", "$ / 1k", "unknown"),
    ("candidates", "K", "none"),
    ("dim", "dimensions", "none"),
)
"""Column, title and the word for a missing value of the parallel axes."""


def fates(rows: pl.DataFrame, decision: Decision, selected: str | None = None) -> list[str]:
    """What becomes of every stack: excluded, dominated, frontier or chosen; or that it is selected."""
    chosen = -1 if decision.chosen is None else decision.chosen
    found = [
        CHOSEN if row == chosen else EXCLUDED if not feasible else FRONTIER if frontier else DOMINATED
        for row, feasible, frontier in rows.select("row", "feasible", "frontier").iter_rows()
    ]
    at = rows["run_id"].index_of(selected) if selected else None
    if at is not None and found[at] != CHOSEN:
        found[at] = SELECTED
    return found


def space(
    rows: pl.DataFrame, decision: Decision, quality: Quality, latency: Latency, selected: str | None = None
) -> go.Figure | None:
    """Cost, latency and quality as points in space; the frontier marked, the others dimmed.

    Args:
        rows: As for `fates`.
        decision: What was selected from it.
        quality: The vertical axis.
        latency: The latency that is shown.
        selected: As for `fates`.

    Returns:
        The figure; None where no stack is known on all three axes.
    """
    named = rows.with_columns(pl.Series("fate", fates(rows, decision, selected), dtype=pl.String))
    drawn = named.drop_nulls(["cost", "latency_ms", "quality"])
    if drawn.is_empty():
        return None
    traces = []
    for fate, look in _LOOKS.items():
        part = drawn.filter(pl.col("fate") == fate)
        if not part.is_empty():
            traces.append(_points(part, f"{fate} ({part.height:,})", look))
    layout = theme.layout(height=560)
    for name in ("xaxis", "yaxis"):
        del layout[name]
    layout["margin"] |= {"l": 0, "r": 0, "b": 0}
    layout["scene"] = {
        "xaxis": {"title": {"text": latency.name}, **_scale(drawn["latency_ms"])},
        "yaxis": {"title": {"text": "$ / 1k"}, **_scale(drawn["cost"])},
        "zaxis": {"title": {"text": text.escape(quality.name)}},
        "camera": {"eye": {"x": -1.35, "y": -1.45, "z": 0.6}, "center": {"x": 0, "y": 0, "z": -0.12}},
        "aspectmode": "cube",
    }
    return theme.finished(traces, layout)


def _scale(values: pl.Series) -> theme.Spec:
    """A logarithmic axis where positive values span more than a decade, as in the flat chart."""
    low, high = float(values.to_numpy().min()), float(values.to_numpy().max())
    if low <= 0 or high <= 10 * low:
        return {"exponentformat": "none"}
    ticks = _ticks(math.log10(low), math.log10(high), log=True)
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}


def _points(part: pl.DataFrame, title: str, look: tuple[str, float, float]) -> theme.Spec:
    colour, size, opacity = look
    trace: theme.Spec = {
        "type": "scatter3d",
        "mode": "markers",
        "name": title if title.partition(" ")[0] not in (CHOSEN, SELECTED) else title.partition(" ")[0],
        "x": part["latency_ms"].to_numpy(),
        "y": part["cost"].to_numpy(),
        "z": part["quality"].to_numpy(),
        "marker": {
            "color": colour,
            "size": size,
            "opacity": opacity,
            "symbol": _SYMBOLS.get(title.partition(" ")[0], "circle"),
            "line": {"width": 0},
        },
        "hovertemplate": "%{x:.4g} ms · $%{y:.3g} / 1k · %{z:.3f}<extra></extra>",
    }
    if part.height <= _HOVERS_UP_TO:
        trace["text"] = [text.escape(name) for name in part["name"]]
        trace["hovertemplate"] = "%{text}<br>" + trace["hovertemplate"]
    return trace


def parallel(
    rows: pl.DataFrame, decision: Decision, quality: Quality, selected: str | None = None
) -> go.Figure | None:
    """Every stack as a line over quality, latency, cost, K and dimension; drag along an axis to filter.

    Args:
        rows: As for `fates`.
        decision: What was selected from it.
        quality: What the first axis is called.
        selected: As for `fates`.

    Returns:
        The figure; None where no stack has a quality. Axes that are unknown for all are left out.
    """
    order = {fate: place for place, fate in enumerate(_LOOKS)}
    codes = pl.Series("code", [order[fate] for fate in fates(rows, decision, selected)], dtype=pl.Int64)
    drawn = rows.with_columns(codes).filter(pl.col("quality").is_not_null()).sort("code", maintain_order=True)
    if drawn.is_empty():
        return None
    axes = [
        _axis(drawn[name].cast(pl.Float64), title or quality.name, missing)
        for name, title, missing in _AXES
        if not drawn[name].is_null().all()
    ]
    last = len(_LOOKS) - 1
    steps = [
        ((place + end) / (last + 1), look[0]) for place, look in enumerate(_LOOKS.values()) for end in (0, 1)
    ]
    trace = {
        "type": "parcoords",
        "dimensions": axes,
        "line": {
            "color": drawn["code"].to_numpy().astype(float),
            "cmin": -0.5,
            "cmax": last + 0.5,
            "colorscale": steps,
            "showscale": True,
            "colorbar": {
                "orientation": "h",
                "thickness": 12,
                "y": -0.04,
                "yanchor": "top",
                "tickvals": list(range(last + 1)),
                "ticktext": list(_LOOKS),
            },
        },
        "labelfont": {"size": 12},
        "tickfont": {"size": 11},
    }
    layout = theme.layout(height=460, legend=False)
    for name in ("xaxis", "yaxis"):
        del layout[name]
    layout["margin"] = {"l": 44, "r": 30, "t": 48, "b": 56}
    return theme.finished([trace], layout)


def _axis(values: pl.Series, title: str, missing: str | None) -> theme.Spec:
    """One axis; logarithmic over more than a decade, and with a place of its own for what is missing."""
    known = values.drop_nulls().to_numpy()
    log = bool(known.min() > 0 and known.max() > 10 * known.min())
    at = np.log10(known) if log else known
    low, high = float(at.min()), float(at.max())
    room = (high - low) or 1.0
    different = np.unique(known)
    ticks = different.tolist() if len(different) <= _FEW else _ticks(low, high, log=log)
    places = [math.log10(tick) if log else tick for tick in ticks]
    words = [f"{tick:g}" for tick in ticks]
    filled = np.full(len(values), low - 0.15 * room)
    filled[values.is_not_null().to_numpy()] = at
    if len(known) < len(values):
        places, words = [low - 0.15 * room, *places], [missing or text.UNKNOWN, *words]
    return {
        "label": text.escape(text.shorten(title, 24)),
        "values": filled,
        "tickvals": places,
        "ticktext": words,
        "range": [min([low, *places]), max([high, *places])],
    }


def _ticks(low: float, high: float, *, log: bool) -> list[float]:
    """Values to label: 1, 2, 5 of every power of ten, or about five round ones."""
    if log:
        wanted = [
            step * 10.0**power
            for power in range(math.floor(low), math.ceil(high) + 1)
            for step in ((1, 2, 5) if high - low < 3 else (1,))
        ]
        return [tick for tick in wanted if 10**low * 0.999 <= tick <= 10**high * 1.001] or [10**low, 10**high]
    if high == low:
        return [low]
    raw = (high - low) / 5
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * each for each in (1, 2, 2.5, 5, 10) if size * each >= raw)
    first = math.ceil(low / step - 1e-9)
    return [round(each * step, 12) for each in range(first, math.floor(high / step + 1e-9) + 1)]


def undrawn(rows: pl.DataFrame) -> int:
    """How many stacks lack one of the three axes of `space`."""
    return rows.height - rows.drop_nulls(["cost", "latency_ms", "quality"]).height
