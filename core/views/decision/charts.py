"""The charts of Decision: stacks over parallel axes, and latency or cost against quality.

The Pareto chart shows the frontier, what the limits exclude and why.

A browser that follows the limits while they are dragged removes the stacks that a limit excludes and draws
the rest; it decides nothing. The frontier of the rest is read off an order that is given here, not
off the frontier of all stacks: a budget that removes a dear rival brings stacks onto the frontier of latency
and quality that were not on it before.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl
from plotly.utils import PlotlyJSONEncoder

from core.analysis.identical import identical, kept, merged
from core.analysis.status import marked, ordered
from core.analysis.workspace.comparable import PROCESSOR_TIME, clock
from core.analysis.workspace.figures.beside import measure_of
from core.analysis.workspace.scope import Latency, Quality
from core.analysis.workspace.view import View
from core.decide.axes import BESIDE, LATENCY, MOVING, QUALITY, Axis
from core.decide.pareto import undominated
from core.decide.rules import Constraints, Decision
from core.number_format import UNIT
from core.tables import remembered
from core.views import columns as cols
from core.views import text, theme
from core.views.decision import overlay
from core.views.decision.marks import (
    BRIGHT,
    DENSE_FROM,
    MARKS,
    PLACED_AXIS,
    UNKNOWN_AXIS,
    MarkGrid,
    density,
    grid,
    marks,
    shapes,
)
from core.views.theme import logarithmic
from core.views.words.advice import second_row
from core.views.words.choice import axis as axis_title

HEIGHT = 300
_DRAWN = (
    *("row", "name", "line", "frontier", "feasible", "reason", "reranker", "n"),
    *("latency_ms", "cost", "cost_least", "cost_missing", *UNIT, "quality", "quality_low", "quality_high"),
)
"""Columns that the chart reads of a stack."""
_KINDS = {np.dtype(kind): kind for kind in ("f8", "f4", "i4", "i2", "i1", "u1")}
"""Plotly's word for numbers that it reads as bytes."""
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


@dataclass(frozen=True, eq=False)
class ParetoView:
    """The page's content."""

    # The chart; customdata[0] of every mark, and of every cell of a density, is a row of the table
    traces: Sequence[theme.Spec]
    layout: theme.Spec  # the chart's axes, lines and labels
    rows: pl.DataFrame  # the stack table from `marked`, the frontier and the best first
    undrawn: pl.DataFrame  # stacks that have no quality and are therefore not on the chart
    drawn: pl.DataFrame  # the others, in table order, with the columns that the chart reads
    grid: MarkGrid | None  # the cells of `drawn` if the chart shows density, otherwise None
    across: Axis  # the x axis
    axes: tuple[Axis, ...]  # all axes; the quality axis in its direction
    required: tuple[Axis, ...]  # the axes whose number must be known, whatever the limits

    @cached_property
    def figure(self) -> go.Figure:
        """The chart as a Plotly object, which the live chart doesn't need."""
        return theme.finished(self.traces, self.layout)


def pareto(
    table: pl.DataFrame,
    decision: Decision,
    constraints: Constraints,
    *,
    quality: Quality,
    latency: Latency,
    across: Axis = LATENCY,
    colour: str = "cost",
    size: str = "same",
    selected: str | None = None,
    today: str | None = None,
    second: int | None = None,
    weak: bool = False,
) -> ParetoView:
    """Draw the stacks of a workspace.

    Args:
        decision: The selection by the constraints.
        constraints: SLA, budget and floor, drawn as lines.
        across: The x axis: latency, cost or harm.
        colour: One of `core.views.decision.marks.COLOURS`.
        size: One of `core.views.decision.marks.SIZES`.
        selected: run_id of the stack to ring in addition to the chosen one.
        today: run_id of the stack that runs today, which has a mark of its own.
        second: Row of the stack that may match the chosen one, marked alike; None = there is none.
        weak: Use the paper's form of the frontier for the table; the line keeps the usual form.

    Returns:
        The chart and the table behind it.
    """
    across = next(axis for axis in decision.axes if axis.key == across.key)
    rows = marked(table, decision, across, weak=weak)
    used = [name for name in {*_DRAWN, across.column, colour, size} if name in rows.columns]
    scored = rows[used]
    drawn = _placed(scored.drop_nulls("quality") if scored["quality"].null_count() else scored, across)
    along = _clocked(table, latency) if across.key == LATENCY.key else across.unit_words
    along = along or measure_of(table, across) or across.word
    layout = theme.layout(x=along, y=axis_title(quality), height=HEIGHT)
    picked = table["run_id"].index_of(selected) if selected is not None else None
    running = table["run_id"].index_of(today) if today is not None else None
    dense = drawn.height > DENSE_FROM
    # On a density the frontier is drawn as marks; without one, all stacks are marks.
    shown = drawn.filter(pl.col("line") | pl.col("frontier")) if dense else drawn
    shown = merged(shown, kept(decision.chosen, picked, running, second), identical(table)[shown["row"]])
    line = overlay.on_line(drawn)
    bars = overlay.with_whisker(line)
    plot = overlay.axes(layout, drawn, bars, across, decision.quality)
    over = grid(drawn, log=plot.log) if dense else None
    stacks = marks(shown, colour, size, table)
    bar = stacks[0]["marker"]["colorbar"] if stacks else {}
    layout["margin"] = overlay.margins(bar.get("ticktext", ()))
    below = density(drawn, over, decision.quality) if over else []
    rings = overlay.rings(drawn, decision, picked, running, second)
    legend = shapes(shown, table)
    overlay.lines(layout, plot, table=table, decision=decision, limits=constraints, across=across)
    plot.take_bars(*(bars[name].to_numpy() for name in ("x", "quality_low", "quality_high")))
    plot.take_steps(line["x"].to_numpy(), line["quality"].to_numpy())
    overlay.labels(
        layout, plot, shown=shown, decision=decision, across=across, selected=picked, today=running,
        second=second,
    )  # fmt: skip
    return ParetoView(
        traces=[*below, *stacks, *overlay.frontier(line), *overlay.whiskers(bars), *rings, *legend],
        layout=layout,
        rows=ordered(rows, decision),
        undrawn=rows.filter(pl.col("quality").is_null()) if drawn.height < rows.height else rows.clear(),
        drawn=drawn,
        grid=over,
        across=across,
        axes=decision.axes,
        required=tuple(axis for axis in decision.required if axis.compared),
    )


@remembered
def _clocked(table: pl.DataFrame, latency: Latency) -> str:
    """Return the name of a latency, which says so if every stack's is processor time."""
    timed = table.drop_nulls("latency_ms")["environment"].unique().to_list()
    told = {clock(json.loads(one or "{}").get("reported")) for one in timed}
    return f"{PROCESSOR_TIME.capitalize()}, {latency.percentile} (ms)" if told and all(told) else latency.name


def pareto_of(
    view: View,
    across: Axis = LATENCY,
    *,
    colour: str = "cost",
    size: str = "same",
    weak: bool = False,
    selected: str | None = None,
) -> ParetoView:
    """Draw the stacks of a view, with its decision and limits; arguments as in `pareto`."""
    return pareto(
        view.table, view.decision, view.constraints, quality=view.quality, latency=view.latency,
        across=across, colour=colour, size=size, weak=weak, selected=selected, today=view.incumbent,
        second=second_row(view),
    )  # fmt: skip


def _placed(rows: pl.DataFrame, across: Axis) -> pl.DataFrame:
    """Return the position of each stack.

    It is its number, or a place in a separate strip if the number is unknown.
    """
    x = rows[across.column].to_numpy().astype(np.float64)
    unknown = np.isnan(x)
    x = np.where(unknown, unknown.cumsum(), x)
    axis = np.where(unknown, UNKNOWN_AXIS, PLACED_AXIS)
    return rows.hstack([pl.Series("x", x), pl.Series("axis", axis.tolist(), dtype=pl.String)])


class _Encoder(PlotlyJSONEncoder):  # type: ignore[misc]
    def default(self, o: object) -> object:
        """Return numbers as bytes if Plotly knows their type."""
        if not isinstance(o, np.ndarray) or not o.size or o.dtype not in _KINDS:
            return super().default(o)
        shape = {"shape": ", ".join(map(str, o.shape))} if o.ndim > 1 else {}
        data = b64encode(o.tobytes()).decode("ascii")
        return {"dtype": _KINDS[o.dtype], "bdata": data, **shape}


def figure_json(view: ParetoView) -> str:
    """Serialise a chart for the browser's Plotly, as `view.figure.to_json()` but 64-bit integers as a list.

    Plotly's method copies the chart and checks every text in it: a fifth of the cost of a slider move.
    """
    return json.dumps({"data": view.traces, "layout": view.layout}, cls=_Encoder)


def points(table: pl.DataFrame, view: ParetoView) -> pl.DataFrame:
    """Return the numbers compared with limits, one row per stack.

    Returns:
        By the key of each axis its numbers (NaN = unknown; except for quality left out if all are), order
        (rows by rising number of `ParetoView.across`, the better first among equals) and cell (in
        `ParetoView.grid`, −1 = none).
    """
    known = _known(table, view.axes, view.across)
    cell = np.full(table.height, -1, dtype=np.int32)
    if view.grid is not None:
        cell[view.drawn["row"].to_numpy()] = view.grid.cell
    return known.hstack([pl.Series("cell", cell)])


@remembered
def _known(table: pl.DataFrame, among: tuple[Axis, ...], across: Axis) -> pl.DataFrame:
    """Return the columns of `points` that don't depend on the limits."""
    numbers = {axis.key: axis.read(table) for axis in among}
    unknown = [axis.key for axis in among if axis in (*BESIDE, *MOVING) and np.isnan(numbers[axis.key]).all()]
    merit = _quality(among).merit(numbers[QUALITY.key])
    order = np.lexsort((-merit, numbers[across.key])).astype(np.int32)
    return pl.DataFrame({**numbers, "order": order}).drop(unknown)


def _quality(among: Sequence[Axis]) -> Axis:
    return next(axis for axis in among if axis.key == QUALITY.key)


def drawing(table: pl.DataFrame, view: ParetoView) -> dict[str, Any]:
    """Return the data for drawing in the browser while a limit is dragged.

    Returns:
        axes (those with known numbers: key, limit, direction, and whether a stack must be known on
        it), names (by row, of every stack that can be the best by quality under some limits), across (key of
        the x axis), limit and quality (the limits on x and on y), words (of these two), marks (rows of every
        trace of marks by its meta), panels (edges and first cell of the density's grids), most (stacks in one
        cell), and colours.
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
            if axis.key == QUALITY.key or not np.isnan(axis.read(table)).all()  # otherwise not asked for
        ],
        "names": _leaders(table, view.axes, view.required),
        "marks": {trace["meta"]: trace["customdata"][:, 0].astype(int).tolist() for trace in marks},
        "panels": [
            {"axis": panel.axis, "x": panel.x.tolist(), "y": panel.y.tolist(), "start": panel.start}
            for panel in (view.grid.panels if view.grid else ())
        ],
        "most": view.grid.most if view.grid else 0,
        "across": view.across.key,
        "limit": view.across.limit,
        "quality": _quality(view.axes).limit,
        "words": {axis.limit: axis.short for axis in (view.across, _quality(view.axes))},
        "opacity": [BRIGHT, theme.DIMMED],
        "shades": [
            [shade.css(1), shade.least, shade.most] for shade in (theme.DENSITY_OUT, theme.DENSITY_IN)
        ],
        "dark": theme.SEQUENTIAL_DARK,
        "light": theme.SEQUENTIAL_LIGHT,
        "frontier": theme.FRONTIER,
        "accent": theme.ACCENT,
    }


@remembered
def _leaders(table: pl.DataFrame, among: tuple[Axis, ...], required: tuple[Axis, ...]) -> dict[str, str]:
    """Return names, by row, of the undominated stacks, which are the best by quality under some limits.

    On an axis that isn't required, unknown counts as worst: the stack stays until a limit asks for it.
    """
    points = []
    for axis in among:
        lost = -axis.merit(axis.read(table))
        if not np.isnan(lost).all():
            points.append(lost if axis in required else np.nan_to_num(lost, nan=np.nanmax(lost) + 1))
    rows = np.flatnonzero(undominated(points)).tolist() if points else []
    return {str(row): table["name"][row] for row in rows}


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
