"""What a browser needs to follow the limits of the Pareto chart while they are dragged.

The browser removes the stacks that a limit excludes and draws what is left; it decides nothing. The frontier
of what is left is read off an order that is given here, not off the frontier of all stacks: a budget that
removes a dear rival brings stacks onto the frontier of latency and quality that were not on it before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from core.clq.pareto import nondominated
from core.views import theme
from core.views.density import Grid
from core.views.pareto import ParetoView
from core.views.pareto_marks import MARKS


def points(table: pl.DataFrame, view: ParetoView) -> pl.DataFrame:
    """The numbers that limits compare, one row per stack.

    Args:
        table: The stack table.
        view: Its chart.

    Returns:
        latency (ms), cost ($ per 1,000 queries) and quality (NaN = unknown), order (rows by rising latency,
        the better first among equals) and cell (of `ParetoView.grid`, −1 = none).
    """
    latency, cost, quality = (
        table[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
        for name in ("latency_ms", "cost", "quality")
    )
    cell = np.full(table.height, -1, dtype=np.int32)
    if view.grid is not None:
        cell[view.drawn["row"].to_numpy()] = view.grid.cell
    return pl.DataFrame(
        {
            "latency": latency,
            "cost": cost,
            "quality": quality,
            "order": np.lexsort((-quality, latency)).astype(np.int32),
            "cell": cell,
        }
    )


def drawing(table: pl.DataFrame, view: ParetoView) -> dict[str, Any]:
    """How the browser draws while a limit is dragged.

    Returns:
        names (by row, of every stack that can be the best by quality under some limits), marks (rows of every
        trace of marks by its meta), panels (edges and first cell of the density's grids), most (stacks
        in one cell), and colours.
    """
    marks = [trace for trace in view.figure.data if str(trace.meta or "").startswith(MARKS)]
    return {
        "names": {str(row): table["name"][row] for row in _leaders(table)},
        "marks": {trace.meta: [int(each[0]) for each in trace.customdata] for trace in marks},
        "panels": _panels(view.grid),
        "most": view.grid.most if view.grid else 0,
        "opacity": [0.9, theme.DIMMED],
        "shades": [
            [shade.css(1), shade.least, shade.most] for shade in (theme.DENSITY_OUT, theme.DENSITY_IN)
        ],
        "frontier": theme.FRONTIER,
        "accent": theme.ACCENT,
    }


def _panels(over: Grid | None) -> list[dict[str, Any]]:
    return [
        {"axis": panel.axis, "x": panel.x.tolist(), "y": panel.y.tolist(), "start": panel.start}
        for panel in (over.panels if over else ())
    ]


def _leaders(table: pl.DataFrame) -> list[int]:
    """Rows of which one is the best by quality, whatever the limits: those that nobody dominates.

    What is unknown counts as the worst, since it stays as long as no limit asks for it.
    """
    cost, latency = (_worst_if_unknown(table[name].cast(pl.Float64)) for name in ("cost", "latency_ms"))
    quality = table["quality"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    return [int(row) for row in np.flatnonzero(nondominated(cost, latency, quality))]


def _worst_if_unknown(values: pl.Series) -> pl.Series:
    known = values.fill_nan(None)
    largest = known.max()
    return known.fill_null(1.0 + largest if isinstance(largest, float) else 0.0)
