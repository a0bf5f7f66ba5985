"""The stacks as lines over parallel axes: more than two numbers at once."""

from __future__ import annotations

import math

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.analysis.workspace.scope import Quality
from core.decide.axes import BESIDE
from core.decide.rules import Decision
from core.views import columns as cols
from core.views import text, theme
from core.views.theme import logarithmic

EXCLUDED, WITHIN, FRONTIER = "excluded", "within the limits", "frontier"
SELECTED, CHOSEN = "selected", "chosen"
_LOOKS = {
    EXCLUDED: theme.NEUTRAL,
    WITHIN: theme.OKABE_ITO[4],
    FRONTIER: theme.FRONTIER,
    SELECTED: theme.OKABE_ITO[3],
    CHOSEN: theme.ACCENT,
}
"""Colour of a stack's status, in drawing order."""
_FAINT = 0.25
_FEW = 5
"""Maximum number of different values for which an axis names every one."""
_AXES = (
    ("quality", "", None),
    ("latency_ms", "latency ms", "unknown"),
    ("cost", "$ / {}", "unknown"),
    *((axis.column, cols.COLUMNS[axis.column].label, "unknown") for axis in BESIDE),
    ("candidates", "K", "none"),
    ("dim", "dimensions", "none"),
)
"""Column, title and the word for a missing value of the parallel axes."""


def fates(rows: pl.DataFrame, decision: Decision, selected: str | None = None) -> list[str]:
    """Return each stack's status: excluded, dominated, frontier, chosen or selected."""
    chosen = -1 if decision.chosen is None else decision.chosen
    fate_of = [
        CHOSEN if row == chosen else EXCLUDED if not feasible else FRONTIER if frontier else WITHIN
        for row, feasible, frontier in rows.select("row", "feasible", "frontier").iter_rows()
    ]
    at = rows["run_id"].index_of(selected) if selected else None
    if at is not None and fate_of[at] != CHOSEN:
        fate_of[at] = SELECTED
    return fate_of


def parallel(
    rows: pl.DataFrame, decision: Decision, quality: Quality, selected: str | None = None
) -> go.Figure | None:
    """Draw every stack as a line over all axes with limits, K and dimension; drag an axis to filter.

    Returns:
        The figure, or None if no stack has a quality. Axes unknown for all stacks are left out.
    """
    named = rows.with_columns(fate=pl.Series(fates(rows, decision, selected), dtype=pl.Enum(list(_LOOKS))))
    drawn = named.filter(pl.col("quality").is_not_null()).sort("fate", maintain_order=True)
    if drawn.is_empty():
        return None
    said = text.cost_unit(drawn)
    drawn = drawn.with_columns(pl.col("cost") * said.factor)
    axes = [
        _axis(drawn[name].cast(pl.Float64), title.format(said.per) or quality.name, missing)
        for name, title, missing in _AXES
        if name in drawn.columns and not drawn[name].is_null().all()
    ]
    if 0 < drawn["feasible"].sum() < drawn.height:
        axes.insert(0, _limits(drawn["feasible"]))
    there = [fate for fate in _LOOKS if fate in drawn["fate"].unique().to_list()]
    place = drawn["fate"].cast(pl.String).replace_strict(there, range(len(there)), return_dtype=pl.Float64)
    bar = {"orientation": "h", "thickness": 12, "y": -0.04, "yanchor": "top"}
    line = {
        "color": place.to_numpy(),
        "cmin": -0.5,
        "cmax": len(there) - 0.5,
        "colorscale": theme.steps([_LOOKS[fate] for fate in there]),
        "showscale": True,
        "colorbar": {**bar, "tickvals": list(range(len(there))), "ticktext": there},
    }
    trace = {
        "type": "parcoords",
        "dimensions": axes,
        "line": line,
        "unselected": {"line": {"color": theme.NEUTRAL, "opacity": _FAINT}},
        "labelfont": {"size": 12},
        "tickfont": {"size": 11},
    }
    layout = theme.layout(height=420, legend=False)
    for name in ("xaxis", "yaxis"):
        del layout[name]
    layout["margin"] = {"l": 44, "r": 30, "t": 48, "b": 56}
    return theme.finished([trace], layout)


def _limits(feasible: pl.Series) -> theme.Spec:
    """Return the axis of the limits; excluded stacks are faint until it is set to include them."""
    return {
        "label": "limits",
        "values": feasible.cast(pl.Float64).to_numpy(),
        "tickvals": [0, 1],
        "ticktext": ["broken", "met"],
        "range": [-0.3, 1.3],
        "constraintrange": [0.7, 1.3],
    }


def _axis(values: pl.Series, title: str, missing: str | None) -> theme.Spec:
    """Return one axis; logarithmic over more than a decade, and with a separate place for missing values."""
    known = values.drop_nulls().to_numpy()
    log = logarithmic(known)
    at = np.log10(known) if log else known
    low, high = float(at.min()), float(at.max())
    room = (high - low) or 1.0
    different = np.unique(known)
    ticks = different.tolist() if len(different) <= _FEW else theme.ticks_of(low, high, log=log)
    places = [math.log10(tick) if log else tick for tick in ticks]
    words = [np.format_float_positional(tick, 3, fractional=False, trim="-") for tick in ticks]  # no 5e-06
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
