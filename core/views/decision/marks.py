"""The marks of the Pareto chart: one trace per shape, coloured and sized by choice, and their legend.

Thousands of stacks are drawn as density: the number in each cell, feasible stacks over excluded ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from core.arrays import Floats
from core.decide.axes import QUALITY, Axis
from core.tables import remembered
from core.views import text, theme

COLOURS = ("cost", "reranker", "mode", "embedder", "dim", "index", "candidates", "params")
SIZES = ("same", "candidates", "dim", "cost")
PLACED_AXIS, UNKNOWN_AXIS = "x", "x2"
MARKS = "marks-"
"""Prefix of the meta of a trace of marks, by which the browser recognises the trace."""
BRIGHT = 0.9
"""Opacity of a mark within the limits."""
_SMALL, _LARGE = 7.0, 20.0
DENSE_FROM = 2000
"""Stacks beyond which a chart draws density, and marks only for the frontier."""
_COLUMNS, _ROWS, _STRIP_COLUMNS = 128, 72, 8


def marks(drawn: pl.DataFrame, colour: str, size: str, table: pl.DataFrame) -> list[theme.Spec]:
    """Draw every stack, excluded ones below the others.

    One trace per shape, as a shape per mark would be drawn mark by mark.

    Args:
        table: The stack table that `row` refers to.
    """
    shape_of, kind = _shapes(drawn, table)
    symbols = np.array([*shape_of.values()], dtype=np.str_)[kind]
    sizes, data = _sizes(drawn, size), _data(drawn, table)
    shades, scale = _shades(drawn, colour)
    x, y, feasible = drawn["x"].to_numpy(), drawn["quality"].to_numpy(), drawn["feasible"].to_numpy()
    axis = drawn["axis"].to_numpy()
    kinds = sorted({*zip(feasible.tolist(), drawn["axis"].to_list(), symbols.tolist(), strict=True)})
    traces: list[theme.Spec] = []
    for meets, on, symbol in kinds:
        picked = np.flatnonzero((feasible == meets) & (axis == on) & (symbols == symbol))
        marker = {
            "size": sizes[picked] if isinstance(sizes, np.ndarray) else sizes,
            "symbol": symbol,
            "color": shades[picked],
            "opacity": BRIGHT if meets else theme.DIMMED,
            "line": {"width": 1, "color": theme.EDGE},
            **scale,
            "showscale": not traces and scale["showscale"],  # one scale serves all traces
        }
        of_marks = {name: values[picked] for name, values in data.items()}
        # Plotly writes lists of text much faster than arrays of it.
        of_marks = {name: part.tolist() if part.dtype == object else part for name, part in of_marks.items()}
        name, meta = "within the limits" if meets else "excluded", f"{'in' if meets else 'out'}-{on}-{symbol}"
        hover: theme.Spec = {
            "showlegend": False,
            "hovertemplate": "%{text}<br>%{hovertext}<extra></extra>",
            **of_marks,
        }
        place = {"meta": f"{MARKS}{meta}", "xaxis": on, "marker": marker}
        traces.append(theme.scatter(name, x[picked], y[picked], **place, **hover))
    return traces


def _data(drawn: pl.DataFrame, table: pl.DataFrame) -> dict[str, npt.NDArray[Any]]:
    """Return the data for click and hover of each mark: its row, its name, and its numbers in words."""
    rows, alike = drawn["row"].to_numpy(), drawn["alike"].to_numpy()
    names, numbers = (words[rows] for words in _words(table))
    for at in np.flatnonzero(alike).tolist():
        names[at] += f"<br>and {alike[at]} equal in every number"
    for at, reason in enumerate(drawn["reason"].to_list()):
        if reason:
            numbers[at] += f"<br><b>excluded: {reason}</b>"
    return {"customdata": rows.astype(np.float32)[:, None], "text": names, "hovertext": numbers}


@remembered
def _words(table: pl.DataFrame) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]]:
    """Return the name and the numbers of every stack in words [n], which don't depend on the limits."""
    said = text.cost_unit(table)
    columns = ("quality", "n", "latency_ms", "cost", "cost_least", "cost_missing")
    numbers = zip(*(table[name].to_list() for name in columns), strict=True)
    return (
        np.array([text.escape(name) for name in table["name"]], dtype=object),
        np.array([_numbers(said, *row) for row in numbers], dtype=object),
    )


def _numbers(
    said: text.CostUnit,
    quality: float | None,
    n: int | None,
    latency: float | None,
    *cost: *tuple[float | None, float | None, str | None],
) -> str:
    head = f"{text.score(quality)} ({text.sample(n)})"
    dollars = text.told("cost", text.cost(*cost, said.usd))
    return f"{head} · {text.told('latency', text.ms(latency))} · {dollars}"


def _sizes(drawn: pl.DataFrame, size: str) -> np.ndarray | float:
    few = 11.0 if drawn.height <= 300 else 7.0
    if size == "same":
        return few
    values = drawn[size].cast(pl.Float64).to_numpy()
    known = values[~np.isnan(values)]
    if not len(known) or known.max() <= 0:
        return few
    grown = _SMALL + (_LARGE - _SMALL) * np.sqrt(np.nan_to_num(values) / known.max())
    return np.where(np.isnan(values), few, grown)


def _kind(reranker: str | None) -> str:
    return "no reranker" if reranker in (None, "none") else reranker


@remembered
def _rerankers(table: pl.DataFrame) -> tuple[list[str], npt.NDArray[np.intp]]:
    """Return the rerankers, "no reranker" first, and the place of each stack's among them [n]."""
    named = [_kind(name) for name in table["reranker"]]
    kinds = sorted({*named}, key=lambda kind: (kind != _kind(None), kind))
    return kinds, np.array([kinds.index(kind) for kind in named], dtype=np.intp)


def _shapes(drawn: pl.DataFrame, table: pl.DataFrame) -> tuple[dict[str, str], npt.NDArray[np.intp]]:
    """Return the shape of each reranker drawn, in their order, and the place of each mark's among them."""
    kinds, place = _rerankers(table)
    used, kind = np.unique(place[drawn["row"].to_numpy()], return_inverse=True)
    last = len(theme.SYMBOLS) - 1
    return {kinds[each]: theme.SYMBOLS[min(at, last)] for at, each in enumerate(used)}, kind


def shapes(drawn: pl.DataFrame, table: pl.DataFrame) -> list[theme.Spec]:
    """Return the legend of the shapes, if there are several; traces without a mark."""
    named, _ = _shapes(drawn, table)
    return [
        theme.scatter(
            text.escape(text.shorten(kind, 24)),
            [None],
            [None],
            hoverinfo="skip",
            marker={"symbol": symbol, "color": theme.NEUTRAL, "size": 9},
        )
        for kind, symbol in named.items()
        if len(named) > 1
    ]


def _shades(drawn: pl.DataFrame, colour: str) -> tuple[np.ndarray, dict[str, Any]]:
    """Return a number per mark and the scale that colours it.

    Sequential for cost, one flat colour per category.
    """
    if colour == "cost":
        cost = drawn["cost"].cast(pl.Float64).to_numpy()
        said = text.cost_unit(drawn)
        cost = said.factor * cost
        known = cost[~np.isnan(cost)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        place = {"len": 0.26, "x": 1, "xanchor": "right", "y": 1.01, "yanchor": "bottom"}
        title = {"text": f"$ / {said.per} ", "side": "right"}
        bar = {"title": title, "orientation": "h", "thickness": 8, "nticks": 4, "exponentformat": "none"}
        scale = {"colorscale": theme.SEQUENTIAL, "cmin": low, "cmax": high, "colorbar": {**bar, **place}}
        return cost, {**scale, "showscale": bool(len(known))}
    values, kinds, others = _kinds(drawn[colour].cast(pl.String).fill_null("–"), colour)
    code = {kind: place for place, kind in enumerate(kinds)}
    steps = theme.steps(theme.OKABE_ITO[: len(kinds)])
    shown = [text.escape(text.shorten(kind or "", 20)) for kind in kinds]
    words = [*shown[:-1], f"other ({others})"] if others else shown
    bar = {"title": {"text": colour}, "thickness": 12, "tickvals": list(range(len(kinds))), "ticktext": words}
    scale = {"colorscale": steps, "cmin": -0.5, "cmax": len(kinds) - 0.5, "colorbar": bar, "showscale": True}
    return values.replace_strict(code, return_dtype=pl.Float64).to_numpy(), scale


def _kinds(values: pl.Series, colour: str) -> tuple[pl.Series, list[str | None], int]:
    """Return categories in order; if they outnumber the colours, the most frequent and "others"."""
    counted = values.value_counts(sort=True, name="n").sort(["n", values.name], descending=[True, False])
    kept = counted[values.name].to_list()
    most = len(theme.OKABE_ITO)
    others = 0 if len(kept) <= most else len(kept) - most + 1
    kept = sorted(kept[: most - 1] if others else kept)
    if colour in ("dim", "candidates"):
        kept.sort(key=lambda kind: (kind == "–", float(kind) if kind != "–" else math.inf))
    if not others:
        return values, kept, 0
    return values.replace_strict(kept, kept, default=None), [*kept, None], others


@dataclass(frozen=True)
class Panel:
    """A grid over one x axis."""

    axis: str  # the x axis
    x: Floats  # edges of the columns, rising
    y: Floats  # edges of the rows, rising
    start: int  # number of the first cell; cells count along a row, the lowest row first

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return len(self.y) - 1, len(self.x) - 1

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.shape[0] * self.shape[1]


@dataclass(frozen=True)
class MarkGrid:
    """A density of many stacks."""

    # The grid of known latencies and the strip of unknown ones, if there are any
    panels: tuple[Panel, ...]
    cell: npt.NDArray[np.int32]  # cell of every drawn stack [n]; −1 if a logarithmic axis cannot show it

    @property
    def most(self) -> int:
        """The most stacks in one cell, or 1 if there are none."""
        return max(1, int(np.bincount(self.cell[self.cell >= 0], minlength=1).max()))


def grid(drawn: pl.DataFrame, *, log: bool) -> MarkGrid:
    """Divide the plot of the stacks into grids."""
    x, quality = drawn["x"].to_numpy(), drawn["quality"].to_numpy()
    cell = np.full(drawn.height, -1, dtype=np.int32)
    panels: list[Panel] = []
    for axis, columns, scaled in ((PLACED_AXIS, _COLUMNS, log), (UNKNOWN_AXIS, _STRIP_COLUMNS, False)):
        there = np.flatnonzero((drawn["axis"] == axis).to_numpy() & ((x > 0) | (not scaled)))
        if not len(there):
            continue
        start = sum(panel_grid.cells for panel_grid in panels)
        panel = Panel(axis, _edges(x[there], columns, log=scaled), _edges(quality, _ROWS), start)
        column = np.searchsorted(panel.x, x[there], side="right").clip(1, panel.shape[1]) - 1
        row = np.searchsorted(panel.y, quality[there], side="right").clip(1, panel.shape[0]) - 1
        cell[there] = start + row * panel.shape[1] + column
        panels.append(panel)
    return MarkGrid(tuple(panels), cell)


def _edges(values: Floats, count: int, *, log: bool = False) -> Floats:
    """Return edges, equally spaced on the axis, around all values."""
    along = np.log10(values) if log else values
    room = max(float(np.ptp(along)), 1e-6) / count
    edges = np.linspace(along.min() - room / 2, along.max() + room / 2, count + 1)
    return np.asarray(10.0**edges if log else edges, dtype=np.float64)


def density(drawn: pl.DataFrame, over: MarkGrid, quality: Axis = QUALITY) -> list[theme.Spec]:
    """Draw the number of stacks in each cell."""
    feasible, row = drawn["feasible"].to_numpy(), drawn["row"].to_numpy()
    cells = sum(panel.cells for panel in over.panels)
    rising = np.argsort(quality.merit(drawn["quality"].to_numpy()), kind="stable")
    traces: list[theme.Spec] = []
    for allowed, title, shade in (
        (False, "excluded", theme.DENSITY_OUT),
        (True, "feasible", theme.DENSITY_IN),
    ):
        of = rising[((feasible == allowed) & (over.cell >= 0))[rising]]
        counts = np.bincount(over.cell[of], minlength=cells).astype(np.int32)
        best = np.full(cells, -1, dtype=np.int32)  # the row of the best stack of every cell
        best[over.cell[of]] = row[of]
        for panel in over.panels:
            within = slice(panel.start, panel.start + panel.cells)
            held = counts[within].reshape(panel.shape)
            if held.any():
                data = np.stack([best[within].reshape(panel.shape), held], axis=-1)
                look = _look(title, shade, over.most)
                traces.append({**look, **_cells(panel, data), "name": f"{title} ({held.sum():,})"})
    return traces


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


def _cells(panel: Panel, data: npt.NDArray[np.int32]) -> theme.Spec:
    z = np.where(data[..., 1] > 0, np.sqrt(data[..., 1]), np.nan).astype(np.float32)
    return {"x": panel.x, "y": panel.y, "xaxis": panel.axis, "z": z, "customdata": data}
