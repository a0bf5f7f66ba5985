"""What a browser needs to follow the limits of the Pareto chart while they are dragged.

The browser removes the stacks that a limit excludes and draws what is left; it decides nothing. The frontier
of what is left is read off an order that is given here, not off the frontier of all stacks: a budget that
removes a dear rival brings stacks onto the frontier of latency and quality that were not on it before.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from plotly.utils import PlotlyJSONEncoder

from core.decide.axes import QUALITY, Axis
from core.decide.pareto import undominated
from core.views import theme
from core.views.decision.chart import ParetoView
from core.views.decision.density import Grid
from core.views.decision.marks import BRIGHT, MARKS

_KINDS = {"float64": "f8", "float32": "f4", "int32": "i4", "int16": "i2", "int8": "i1", "uint8": "u1"}
"""Plotly's word for numbers that it reads as bytes."""


class _Encoder(PlotlyJSONEncoder):  # type: ignore[misc]
    def default(self, o: object) -> object:
        """Return numbers as bytes where Plotly knows their kind."""
        if not isinstance(o, np.ndarray) or not o.size or str(o.dtype) not in _KINDS:
            return super().default(o)
        shape = {"shape": ", ".join(map(str, o.shape))} if o.ndim > 1 else {}
        data = b64encode(o.tobytes()).decode("ascii")
        return {"dtype": _KINDS[str(o.dtype)], "bdata": data, **shape}


def figure_json(view: ParetoView) -> str:
    """The chart as the browser's Plotly reads it.

    Plotly's own way copies the chart and looks at every text in it: a fifth of what a slider move cost.

    Args:
        view: The chart.

    Returns:
        What `view.figure.to_json()` says, whole numbers of 64 bits as a list.
    """
    return json.dumps({"data": view.traces, "layout": view.layout}, cls=_Encoder)


def points(table: pl.DataFrame, view: ParetoView) -> pl.DataFrame:
    """The numbers that limits compare, one row per stack.

    Returns:
        By the key of each axis its numbers (NaN = unknown), order (rows by rising number of
        `ParetoView.across`, the better first among equals) and cell (of `ParetoView.grid`, −1 = none).
    """
    among = view.axes
    numbers = {axis.key: axis.read(table) for axis in among}
    cell = np.full(table.height, -1, dtype=np.int32)
    if view.grid is not None:
        cell[view.drawn["row"].to_numpy()] = view.grid.cell
    merit = _quality(among).merit(numbers[QUALITY.key])
    order = np.lexsort((-merit, numbers[view.across.key])).astype(np.int32)
    return pl.DataFrame({**numbers, "order": order, "cell": cell})


def _quality(among: Sequence[Axis]) -> Axis:
    return next(axis for axis in among if axis.key == QUALITY.key)


def drawing(table: pl.DataFrame, view: ParetoView) -> dict[str, Any]:
    """How the browser draws while a limit is dragged.

    Returns:
        axes (as far as anything is known there: key, limit, direction, and whether a stack must be known on
        it), names (by row, of every stack that can be the best by quality under some limits), across (key of
        the x axis), limit and quality (the limits on x and on y), marks (rows of every trace of marks by its
        meta), panels (edges and first cell of the density's grids), most (stacks in one cell), and colours.
    """
    marks = [trace for trace in view.traces if trace.get("meta", "").startswith(MARKS)]
    required = {axis.key for axis in view.required}
    return {
        "axes": [
            {
                "key": axis.key,
                "limit": axis.limit,
                "higher": axis.higher_is_better,
                "required": axis.key in required,
            }
            for axis in view.axes
            if axis.key == QUALITY.key or not np.isnan(axis.read(table)).all()  # else not asked for
        ],
        "names": {str(row): table["name"][row] for row in _leaders(table, view)},
        "marks": {trace["meta"]: trace["customdata"][:, 0].astype(int).tolist() for trace in marks},
        "panels": _panels(view.grid),
        "most": view.grid.most if view.grid else 0,
        "across": view.across.key,
        "limit": view.across.limit,
        "quality": _quality(view.axes).limit,
        "opacity": [BRIGHT, theme.DIMMED],
        "shades": [
            [shade.css(1), shade.least, shade.most] for shade in (theme.DENSITY_OUT, theme.DENSITY_IN)
        ],
        "dark": theme.SEQUENTIAL_DARK,
        "frontier": theme.FRONTIER,
        "accent": theme.ACCENT,
    }


def _panels(over: Grid | None) -> list[dict[str, Any]]:
    return [
        {"axis": panel.axis, "x": panel.x.tolist(), "y": panel.y.tolist(), "start": panel.start}
        for panel in (over.panels if over else ())
    ]


def _leaders(table: pl.DataFrame, view: ParetoView) -> list[int]:
    """Rows of which one is the best by quality, whatever the limits: those that nobody dominates.

    Of an axis that need not be known what is unknown counts as the worst: it stays until a limit asks for it.
    """
    points = []
    for axis in view.axes:
        lost = -axis.merit(axis.read(table))
        if not np.isnan(lost).all():
            points.append(lost if axis in view.required else np.nan_to_num(lost, nan=np.inf))
    return [int(row) for row in np.flatnonzero(undominated(points))] if points else []
