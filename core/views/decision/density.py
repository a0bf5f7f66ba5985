"""Thousands of stacks as density: how many lie where, what the limits allow over what they exclude."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.decide.axes import QUALITY, Axis
from core.views import theme
from core.views.decision.marks import PLACED_AXIS, UNKNOWN_AXIS

DENSE_FROM = 2000
"""Stacks beyond which a chart draws density, and marks only for the frontier."""
_COLUMNS, _ROWS, _STRIP_COLUMNS = 128, 72, 8
_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Panel:
    """A grid over one x axis."""

    axis: str  # the x axis
    x: _Floats  # edges of the columns, rising
    y: _Floats  # edges of the rows, rising
    start: int  # number of the first cell; cells count along a row, the lowest row first

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.y) - 1, len(self.x) - 1

    @property
    def cells(self) -> int:
        """How many cells it has."""
        return self.shape[0] * self.shape[1]


@dataclass(frozen=True)
class Grid:
    """Where many stacks lie."""

    # The grid of known latencies and that of the strip of unknown ones, as far as there are any
    panels: tuple[Panel, ...]
    cell: NDArray[np.int32]  # cell of every drawn stack [n]; −1 where a logarithmic axis has no place for it

    @property
    def most(self) -> int:
        """The most stacks in one cell; 1 where there are none."""
        return max(1, int(np.bincount(self.cell[self.cell >= 0], minlength=1).max()))


def grid(drawn: pl.DataFrame, *, log: bool) -> Grid:
    """Lay grids over the stacks."""
    x, quality = drawn["x"].to_numpy(), drawn["quality"].to_numpy()
    cell = np.full(drawn.height, -1, dtype=np.int32)
    panels: list[Panel] = []
    for axis, columns, scaled in ((PLACED_AXIS, _COLUMNS, log), (UNKNOWN_AXIS, _STRIP_COLUMNS, False)):
        there = np.flatnonzero((drawn["axis"] == axis).to_numpy() & ((x > 0) | (not scaled)))
        if not len(there):
            continue
        panel = Panel(
            axis,
            _edges(x[there], columns, log=scaled),
            _edges(quality, _ROWS),
            sum(each.cells for each in panels),
        )
        cell[there] = panel.start + _of(panel, x[there], quality[there])
        panels.append(panel)
    return Grid(tuple(panels), cell)


def _edges(values: _Floats, count: int, *, log: bool = False) -> _Floats:
    """Edges of equal width on the axis, around all values."""
    along = np.log10(values) if log else values
    room = max(float(np.ptp(along)), 1e-6) / count
    edges = np.linspace(along.min() - room / 2, along.max() + room / 2, count + 1)
    return np.asarray(10.0**edges if log else edges, dtype=np.float64)


def _of(panel: Panel, x: _Floats, y: _Floats) -> NDArray[np.int32]:
    rows, columns = panel.shape
    row = np.clip(np.searchsorted(panel.y, y, side="right") - 1, 0, rows - 1)
    column = np.clip(np.searchsorted(panel.x, x, side="right") - 1, 0, columns - 1)
    return np.asarray(row * columns + column, dtype=np.int32)


def density(drawn: pl.DataFrame, over: Grid, quality: Axis = QUALITY) -> list[theme.Spec]:
    """Draw how many stacks each cell holds."""
    feasible = drawn["feasible"].to_numpy()
    cells = sum(panel.cells for panel in over.panels)
    traces: list[theme.Spec] = []
    merit = quality.merit(drawn["quality"].to_numpy())
    for allowed, title, shade in (
        (False, "excluded", theme.DENSITY_OUT),
        (True, "feasible", theme.DENSITY_IN),
    ):
        of = np.flatnonzero((feasible == allowed) & (over.cell >= 0))
        counts = np.bincount(over.cell[of], minlength=cells)
        data = np.stack([_best(merit, drawn, over, of, cells), counts], axis=-1).astype(np.int32)
        for panel in over.panels:
            part = data[panel.start : panel.start + panel.cells]
            if part[:, 1].any():
                look = _look(title, shade, over.most)
                traces.append({**look, **_cells(panel, part), "name": f"{title} ({part[:, 1].sum():,})"})
    return traces


def _best(
    merit: NDArray[np.float64], drawn: pl.DataFrame, over: Grid, of: NDArray[np.intp], cells: int
) -> NDArray[np.int32]:
    """The row of the best stack of every cell; −1 where there is none."""
    best = np.full(cells, -1, dtype=np.int32)
    rising = of[np.argsort(merit[of], kind="stable")]
    best[over.cell[rising]] = drawn["row"].to_numpy()[rising]
    return best


def _look(title: str, shade: theme.Shade, most: int) -> theme.Spec:
    return {
        "type": "heatmap",
        "zmin": 0,
        "zmax": math.sqrt(most),
        "colorscale": [[0, shade.css(shade.least)], [1, shade.css(shade.most)]],
        "showscale": False,
        "showlegend": True,
        "hoverongaps": False,
        "hovertemplate": f"%{{customdata[1]}} {title}<br>≈ %{{x:.3g}} · %{{y:.3f}}<extra></extra>",
    }


def _cells(panel: Panel, data: NDArray[np.int32]) -> theme.Spec:
    counts = data[:, 1]
    z = np.where(counts > 0, np.sqrt(counts), np.nan).astype(np.float32)
    return {
        "x": panel.x,
        "y": panel.y,
        "xaxis": panel.axis,
        "z": z.reshape(panel.shape),
        "customdata": data.reshape(*panel.shape, 2),
    }
