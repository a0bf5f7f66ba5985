"""Annotations of a Pareto chart: axes, frontier, intervals, limits, rings and names.

Labels cover neither marks nor lines nor each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import polars as pl

from core.arrays import Floats, Mask
from core.decide.axes import LATENCY, Axis, floats
from core.decide.rules import Constraints, Decision
from core.views import text, theme
from core.views.decision.marks import PLACED_AXIS
from core.views.decision.words import banded
from core.views.theme import logarithmic
from core.views.words.moving import RUNS_TODAY

OVER = "over-"
"""Prefix of the meta of traces that hold for these limits only: frontier, whiskers, rings."""
WHISKERS_UP_TO = 40
LABELS = 6
STRIP_FROM = 0.9
"""Start of the strip of stacks without a number, as a share of the chart's width."""
_WIDTH, _HEIGHT = 880.0, 276.0
"""Size of the area between the axes in a window of 1280 pixels."""
_WIDEST = 0.5
"""Share of the axis up to which a jitter band is informative."""
_TICKS = (1, 2, 3, 5)


_LETTER, _LINE, _ROOM = 6.3, 15.0, 3.0
"""Width of a letter, height of a line, and room around a label; pixels at 12 pixels a letter."""
_NAME = 48
"""Letters of a stack's name in a label."""
_FARTHEST = 90
"""Maximum distance of a label from its mark; pixels."""
_OF_LINE = ("x", "quality", "quality_low", "quality_high")
_UP = {"y0": 0, "y1": 1, "yref": "y domain"}
_DEPTHS = {"bottom": 0.94, "top": 0.06, "middle": 0.5}
"""Possible positions of a band's name, as shares of the plot's height."""
STACK = "stack"
"""Name of the labels of stacks, for which a phone has no room."""
_NEAR, _HALF = 0.1, 45  # Share of the height, and pixels: how near a mark counts as on the label


@dataclass
class Plot:
    """The plot area, insofar as it is known before a browser draws it."""

    x: tuple[float, float]  # its ends on the x axis; logarithms if that is logarithmic
    y: tuple[float, float]  # its ends on the y axis
    log: bool  # whether the x axis is logarithmic
    width: float  # in pixels
    height: float  # in pixels
    # Occupied boxes, a row each [m, 4]: left, top, right and bottom in pixels
    taken: list[Floats] = field(default_factory=list)

    def across(self, x: Floats) -> Floats:
        """Return pixels from the left for x values."""
        along = np.log10(x) if self.log else x
        return (along - self.x[0]) / ((self.x[1] - self.x[0]) or 1.0) * self.width

    def down(self, y: Floats) -> Floats:
        """Return pixels from the top for y values."""
        return (self.y[1] - y) / ((self.y[1] - self.y[0]) or 1.0) * self.height

    def take(self, x: Floats, y: Floats, size: float) -> None:
        """Reserve the boxes of marks of a size."""
        left, top = self.across(x), self.down(y)
        self.taken.append(np.column_stack([left - size, top - size, left + size, top + size]))

    def take_steps(self, x: Floats, y: Floats) -> None:
        """Reserve a line from mark to mark, across and then up or down."""
        left, top = self.across(x), self.down(y)
        runs = np.column_stack([left[:-1], top[:-1], left[1:], top[:-1]])
        rises = np.column_stack([left[1:], top[:-1], left[1:], top[1:]])
        lines = np.concatenate([runs, rises])
        low, high = np.minimum(lines[:, :2], lines[:, 2:]), np.maximum(lines[:, :2], lines[:, 2:])
        self.taken.append(np.column_stack([low - 2, high + 2]))

    def take_bars(self, x: Floats, low: Floats, high: Floats) -> None:
        """Reserve bars from low to high."""
        left = self.across(x)
        self.taken.append(np.column_stack([left - 4, self.down(high), left + 4, self.down(low)]))

    def take_column(self, x: float) -> None:
        """Reserve a line from the bottom to the top."""
        left = float(self.across(np.array([x]))[0])
        self.taken.append(np.array([[left - 2, 0.0, left + 2, self.height]]))

    def take_row(self, y: float) -> None:
        """Reserve a line from side to side."""
        top = float(self.down(np.array([y]))[0])
        self.taken.append(np.array([[0.0, top - 2, self.width, top + 2]]))

    def place(self, words: str, x: float, y: float) -> tuple[float, float] | None:
        """Find room for a label beside a mark, and reserve it.

        Returns:
            Offset of its centre to the right of and above the mark, in pixels; None if there is no room.
        """
        left, top = float(self.across(np.array([x]))[0]), float(self.down(np.array([y]))[0])
        half = (len(words) * _LETTER / 2 + _ROOM, _LINE / 2)
        shifts = _around(*half)
        at = self.first_free(shifts + np.array([left, top]), half)
        return None if at is None else (float(shifts[at, 0]), -float(shifts[at, 1]))

    def first_free(self, centres: Floats, half: tuple[float, float]) -> int | None:
        """Find the first point [n, 2] with an empty box around it, half a width and half a height each way.

        Returns:
            Its position, or None if there is no room.
        """
        free = np.flatnonzero(self._free(centres, np.array(half)))
        if not len(free):
            return None
        centre = centres[free[0]]
        self.taken.append(np.concatenate([centre - half, centre + half])[None, :])
        return int(free[0])

    def _free(self, centres: Floats, half: Floats) -> Mask:
        """Return whether the box around each point is empty, half a width and half a height each way."""
        low, high = centres - half, centres + half
        inside = ((low >= 0) & (high <= (self.width, self.height))).all(axis=1)
        if len(self.taken) != 1:
            self.taken = [np.concatenate([np.empty((0, 4)), *self.taken])]
        there = np.ascontiguousarray(self.taken[0].T)  # a row per edge, which is several times as fast
        near = _over(there, *low.min(axis=0), *high.max(axis=0))
        edges = np.hsplit(np.hstack([low, high]), 4)
        return np.asarray(inside & ~_over(there[:, near], *edges).any(axis=1))


def _over(there: Floats, left: Floats, top: Floats, right: Floats, bottom: Floats) -> Mask:
    """Return whether occupied boxes [4, m] overlap boxes, each a number or a column [n, 1]."""
    return np.asarray((there[2] >= left) & (there[0] <= right) & (there[3] >= top) & (there[1] <= bottom))


@lru_cache(256)
def _around(wide: float, high: float) -> Floats:
    """Return positions around a mark [n, 2], the nearest first; y grows downwards."""
    offsets: list[tuple[float, float]] = []
    for off in range(12, _FARTHEST, 8):
        for up in (-1, 1):
            rows = high + off
            offsets += [(share * (wide + off), up * rows) for share in (-1, 1, 0, -0.5, 0.5)]
        offsets += [(-(wide + off), 0.0), (wide + off, 0.0)]
    return np.array(
        sorted(offsets, key=lambda at: math.hypot(max(0, abs(at[0]) - wide), max(0, abs(at[1]) - high)))
    )


def axes(layout: theme.Spec, drawn: pl.DataFrame, bars: pl.DataFrame, across: Axis, quality: Axis) -> Plot:
    """Set ranges, ticks and the strip of unknowns; `bars` are the stacks whose interval is drawn."""
    x = across.read(drawn)
    known = x[~np.isnan(x)]
    log = logarithmic(known)
    ends = _fitted(np.log10(known) if log else known, least=-np.inf if log else 0.0)
    layout["xaxis"] |= {"range": list(ends), "exponentformat": "none"}
    if log:
        layout["xaxis"] |= {"type": "log", **_log_ticks(ends, across)}
    if across.factor > 1:
        layout["xaxis"] |= _scaled(ends, across.factor, log=log)
    bounds = np.concatenate([bars["quality_low"].to_numpy(), bars["quality_high"].to_numpy()])
    qualities = np.concatenate([drawn["quality"].to_numpy(), bounds[np.isfinite(bounds)]])
    high = _fitted(qualities, least=-0.01 if len(qualities) and qualities.min() >= 0 else -np.inf, share=0.08)
    # Labels of one width: otherwise they change the margin, which changes the labels, endlessly on paper.
    layout["yaxis"] |= {"tickformat": ".2f" if high[1] - high[0] > 0.1 else ".3f", "range": list(high)}
    unknown = drawn.height - len(known)
    start = (STRIP_FROM if len(known) else 0.0) if unknown else 1.02
    if unknown:
        layout["xaxis"] |= {"domain": [0, start - 0.02] if start else [0, 1], "visible": start > 0}
        bare = {"showticklabels": False, "ticks": "", "showgrid": False, "zeroline": False}
        strip = {"domain": [start, 1], "anchor": "y", "range": [0, unknown + 1]}
        layout["xaxis2"] = {**strip, **bare, "title": {"text": across.missing}}
    better = theme.better(higher=quality.higher_is_better)
    layout["annotations"], layout["shapes"] = [better], []
    plot = Plot(ends, high, log, _WIDTH * max(start - 0.02, 0.01), _HEIGHT)
    top = (1 - better["y"]) * (_HEIGHT - 18)
    plot.taken.append(np.array([[0.0, top, 70.0, top + 18]]))
    return plot


def _fitted(values: Floats, *, least: float, share: float = 0.04) -> tuple[float, float]:
    """Return the ends of an axis around its values, with some room."""
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    room = share * (high - low) or max(0.03, 0.05 * abs(high))
    return max(low - room, min(least, low)), high + room


def _scaled(ends: tuple[float, float], factor: int, *, log: bool) -> theme.Spec:
    """Return the ticks of an axis whose numbers are multiplied for display."""
    ticks = theme.ticks_of(*ends, log=log)
    words = [np.format_float_positional(factor * tick, 6, fractional=False, trim="-") for tick in ticks]
    return {"tickvals": ticks, "ticktext": words}


def _log_ticks(ends: tuple[float, float], across: Axis) -> theme.Spec:
    powers = range(math.floor(ends[0]), math.ceil(ends[1]) + 1)
    steps = _TICKS if len(powers) < 4 else (1,) if len(powers) > 6 else (1, 3)
    ticks = [step * 10.0**power for power in powers for step in steps]
    words = [f"{tick / 1000:g} s" if across == LATENCY and tick >= 1000 else f"{tick:g}" for tick in ticks]
    return {"tickvals": ticks, "ticktext": words}


def margins(scale_labels: Sequence[str]) -> theme.Spec:
    """Return margins that fit: otherwise Plotly draws all marks, finds that labels need room, and redraws."""
    right = 72 + 7 * max(len(label) for label in scale_labels) if scale_labels else 12
    return {"l": 78, "r": right, "t": 36, "b": 48, "autoexpand": False}


def on_line(drawn: pl.DataFrame) -> pl.DataFrame:
    """Return the stacks on the line of the frontier, in its order."""
    rows = np.flatnonzero(drawn["line"].to_numpy())
    x, quality = (drawn[name].to_numpy()[rows] for name in ("x", "quality"))
    rows = rows[np.lexsort((quality, x))]
    return pl.DataFrame([drawn[name].gather(rows) for name in _OF_LINE])


def frontier(line: pl.DataFrame) -> list[theme.Spec]:
    """Return the frontier of the remaining stacks, as steps."""
    if line.is_empty():
        return []
    look = {"shape": "hv", "color": theme.FRONTIER, "width": 2}
    x, y = line["x"].to_numpy(), line["quality"].to_numpy()
    return [theme.quiet("frontier", x, y, mode="lines", meta=f"{OVER}frontier", line=look)]


def with_whisker(line: pl.DataFrame) -> pl.DataFrame:
    """Return the frontier stacks whose interval is drawn: those with one, if few enough to read."""
    known = np.flatnonzero(~np.isnan(line["quality_low"].to_numpy()))
    if len(known) > WHISKERS_UP_TO:
        return line.clear()
    return line if len(known) == line.height else line[known]


def whiskers(part: pl.DataFrame) -> list[theme.Spec]:
    """Return intervals of stacks."""
    if part.is_empty():
        return []
    x, low, at, high = (part[name].to_numpy() for name in ("x", "quality_low", "quality", "quality_high"))
    ends = theme.whiskers(low, at, high, thickness=1, width=3, color=theme.FRONTIER)
    marker = {"size": 1, "color": theme.FRONTIER}
    return [theme.quiet("95 % interval", x, at, meta=f"{OVER}whiskers", marker=marker, error_y=ends)]


def rings(
    drawn: pl.DataFrame, decision: Decision, selected: int | None, today: int | None, second: int | None
) -> list[theme.Spec]:
    """Return rings around the chosen stack and the selected one, and a square around the one of today.

    Args:
        second: The stack that may match the chosen one, with the same ring; None = there is none.
    """
    looks = (
        (decision.chosen, "chosen", theme.ACCENT, 20, "circle-open"),
        (second, "second", theme.ACCENT, 20, "circle-open"),
        (
            None if selected in (decision.chosen, second) else selected,
            "selected",
            theme.OKABE_ITO[3],
            22,
            "circle-open",
        ),
        (today, RUNS_TODAY, theme.OKABE_ITO[2], 26, "square-open"),
    )
    traces, numbers = [], drawn["row"].to_numpy()  # rising
    for place, title, colour, size, symbol in looks:
        at = -1 if place is None else int(np.searchsorted(numbers, place))
        if 0 <= at < len(numbers) and numbers[at] == place:
            row = drawn.row(at, named=True)
            ring = {"symbol": symbol, "size": size, "line": {"width": 2.5}, "color": colour}
            place_of = {"meta": f"{OVER}{title}", "xaxis": row["axis"]}
            traces.append(theme.quiet(title, [row["x"]], [row["quality"]], marker=ring, **place_of))
    return traces


def lines(
    layout: theme.Spec,
    plot: Plot,
    *,
    table: pl.DataFrame,
    decision: Decision,
    limits: Constraints,
    across: Axis,
) -> None:
    """Draw the limits as lines, and the band of indistinguishable latencies; `labels` names them."""
    limit = {"type": "line", "line": {"color": theme.ACCENT, "width": 1.5, "dash": "dash"}}
    most, floor = limits.of(across), limits.min_quality
    if across == LATENCY and (band := _band(table, decision, plot, most)):
        layout["shapes"].append(band)
    if most is not None and (most > 0 or not plot.log):
        layout["shapes"].append({**limit, "x0": most, "x1": most, **_UP})
        plot.take_column(most)
    if floor is not None:
        layout["shapes"].append({**limit, "x0": 0, "x1": 1, "y0": floor, "y1": floor, "xref": "x domain"})
        plot.take_row(floor)


def _band(table: pl.DataFrame, decision: Decision, plot: Plot, most: float | None) -> theme.Spec | None:
    """Return a strip over the latencies that don't differ significantly from the chosen stack's.

    Args:
        most: The latency limit, whose line may not cross the strip's label.
    """
    latency = None if decision.chosen is None else table["latency_ms"][decision.chosen]
    if latency is None or not banded(table, decision):
        return None
    # No wider than the range of the marks, and none if it would cover most of them.
    ends = np.array([latency - decision.jitter_ms, latency + decision.jitter_ms])
    low, high = ends.clip(*np.nanquantile(LATENCY.read(table), [0, 1]))
    if np.ptp(plot.across(np.array([low, high]))) > _WIDEST * plot.width:
        return None
    band: theme.Spec = {"type": "rect", "fillcolor": theme.SOFT, "line": {"width": 0}, "layer": "below"}
    band |= {"x0": low, "x1": high, **_UP}
    left, right = plot.across(np.array([low, high])).tolist()
    middle, side, anchor = (left + right) / 2, "center", "center"
    line = None if most is None or most <= 0 else float(plot.across(np.array([most]))[0])
    if line is not None and abs(line - middle) < _HALF:  # beside the strip, away from the limit's line
        side, anchor = ("left", "right") if line > middle else ("right", "left")
        middle = left - _HALF if line > middle else right + _HALF
    free = _freest(table, plot, middle)
    depth = _DEPTHS[free] * plot.height
    plot.taken.append(np.array([[middle - _HALF, depth - _LINE, middle + _HALF, depth + _LINE]]))
    words = f"jitter<br>± {text.ms(decision.jitter_ms)}"
    label = {"text": words, "textposition": f"{free} {side}", "xanchor": anchor, "font": {"size": 11}}
    return {**band, "label": label}


def _freest(table: pl.DataFrame, plot: Plot, column: float) -> str:
    """Return the pixel position in a column of the plot where two short lines cover the fewest marks."""
    with np.errstate(divide="ignore"):  # a logarithmic axis shows no 0
        near = np.abs(plot.across(LATENCY.read(table)) - column) < _HALF
    depths = plot.down(floats(table, "quality")[near]) / plot.height
    crowds = {place: int((np.abs(depths - depth) < _NEAR).sum()) for place, depth in _DEPTHS.items()}
    return min(crowds, key=crowds.__getitem__)


def labels(
    layout: theme.Spec,
    plot: Plot,
    *,
    shown: pl.DataFrame,
    decision: Decision,
    across: Axis,
    selected: int | None,
    today: int | None,
    second: int | None,
) -> None:
    """Label the limits, the chosen, the selected and today's stack, and the frontier, if there is room."""
    x, y = shown["x"].to_numpy(), shown["quality"].to_numpy()
    placed = (shown["axis"] == PLACED_AXIS).to_numpy()
    plot.take(x[placed], y[placed], 6)
    best = [row for row in (decision.chosen, second) if row is not None]
    row_of = shown["row"].to_numpy()
    first = np.isin(row_of, best)
    named = np.isin(row_of, [*best, *(row for row in (selected, today) if row is not None)])
    few = np.flatnonzero(placed & (named | shown["line"].to_numpy()))
    _limit_labels(layout, plot, across, decision.quality)
    wanted = few[np.lexsort((-x[few], ~first[few], ~named[few]))][:LABELS]
    for row in wanted.tolist():
        alike, place = shown["alike"][row], (float(x[row]), float(y[row]))
        words = text.shorten(shown["name"][row], _NAME) + (f" (+{alike} equal)" if alike else "")
        words += f", {RUNS_TODAY}" if row_of[row] == today else ""
        at = plot.place(words, *place)
        if at is not None:
            said = f"<b>{text.escape(words)}</b>" if first[row] else text.escape(words)
            beside = _beside(at[0], len(words) * _LETTER / 2)
            layout["annotations"].append(_label(plot, said, *place, at) | beside | {"name": STACK})


def _label(plot: Plot, words: str, x: float, y: float, shift: Sequence[float]) -> theme.Spec:
    # A shape takes the value on a logarithmic axis, an annotation its logarithm.
    place = {"x": math.log10(x) if plot.log else x, "y": y, "xshift": shift[0], "yshift": shift[1]}
    centred = {"showarrow": False, "xanchor": "center", "yanchor": "middle", "font": {"size": 12}}
    return {**place, **centred, "text": words}


def _beside(shift: float, half: float) -> theme.Spec:
    """Return the side by which a label holds to its mark, as letters are mostly narrower than reserved."""
    if abs(shift) < half:
        return {}
    return (
        {"xanchor": "left", "xshift": shift - half}
        if shift > 0
        else {"xanchor": "right", "xshift": shift + half}
    )


def _limit_labels(layout: theme.Spec, plot: Plot, across: Axis, quality: Axis) -> None:
    """Label each limit at the free end of its line."""
    for shape in [shape for shape in layout["shapes"] if shape["type"] == "line"]:
        if "yref" in shape:
            words = f"{across.limit_word} {across.written(shape['x0'])}"
            half = len(words) * 3.2
            ends = ((plot.y[0], 12.0), (plot.y[1], -12.0))
            spots = [(shape["x0"], y, side * (half + 4), dy) for y, dy in ends for side in (1, -1)]
        else:
            words = f"{quality.short} {shape['y0']:g}"
            half = len(words) * 3.2
            edge = 10 ** plot.x[1] if plot.log else plot.x[1]
            spots = [(edge, shape["y0"], -half - 8, dy) for dy in (10.0, -10.0)]
        left, down, right, up = np.array(spots).T
        centres = np.column_stack([plot.across(left) + right, plot.down(down) - up])
        x, y, *shift = spots[plot.first_free(centres, (half, 7.5)) or 0]
        layout["annotations"].append(_label(plot, words, x, y, shift))
