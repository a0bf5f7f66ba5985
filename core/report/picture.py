"""The chart of a record: the stacks listed in its table, drawn as SVG, which needs no script.

The file contains a wide and a narrow drawing of the same figure, so that words are readable on a
screen of any width; the page shows one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from markupsafe import Markup

from core.arrays import Floats
from core.decide.axes import LATENCY, Axis, cost_axis
from core.decide.pareto import frontier_2d
from core.report.render import Chart
from core.report.svg import Canvas, svg
from core.report.tables import STACKS, Data, finalists, letters, places, roles, said_in
from core.views import text, theme
from core.views.theme import logarithmic

WIDE, NARROW = Canvas(width=760, letter=13, named=True), Canvas(width=360, letter=12)
_HEIGHT = 400
_LOOKS = {
    "excluded": ("outside the limits", theme.NEUTRAL, "circle-open", 7),
    "feasible": ("within the limits", theme.OKABE_ITO[0], "circle", 7),
    "alternative": ("alternative", theme.OKABE_ITO[1], "square", 11),
    "chosen": ("chosen", theme.ACCENT, "diamond", 12),
}
"""Name, colour, shape and size of a mark, by its stack's status."""
_PLACES = ((11, 0, "left"), (-11, 0, "right"), (11, 16, "left"), (-11, -16, "right"), (11, -16, "left"))
"""Possible offsets of a letter from its mark: right, upwards, and the side on which it begins; pixels."""
_LIMITS = {"latency": "sla_ms", "cost": "budget_usd_per_1k"}
_FAR = 5  # A limit this many times the largest number isn't drawn
_PIXELS = (280.0, 280.0)  # Approximate area between the axes of the narrow drawing
_LETTER = (8.0, 14.0)  # Approximate size of a letter; pixels


def picture(data: Data) -> Chart | None:
    """Draw the stacks of a record's table; None if fewer than two have both numbers.

    Args:
        data: The record.
    """
    paid = (LATENCY, cost_axis(said_in(data), per_correct=False))
    across = next((axis for axis in paid if len(placed(data, axis)) > 1), None)
    if across is None:
        return None
    shown, stacks = placed(data, across), data["stacks"]
    bars = _bars(data, shown)
    figure = _figure(data, shown, across, bars)
    higher = data["asked"]["better"] == "higher"
    alt = f"{data['asked']['measure']} and {across.word} of {text.count(len(shown), 'stack')}."
    images = Markup().join(
        Markup('<div class="{}">{}</div>').format(name, Markup(svg(figure, alt, canvas)))  # noqa: S704 - escaped there
        for name, canvas in (("broad", WIDE), ("slim", NARROW))
    )
    means = data["meaning"]
    caption = f"{data['asked']['measure']}: {means}. " if means else ""
    caption += f"{theme.best_corner(higher=higher)} The line joins the best for their {across.word}."
    caption += " Bars are 95 % intervals." if np.isfinite(bars).any() else ""
    caption += " Dashed: the limits." if figure.layout.shapes else ""
    if len(shown) < len(stacks):
        left = f"{len(shown):,} of {len(stacks):,} stacks are drawn"
        caption += f" {left}: those of the table with both numbers."
    return Chart(figure, alt, caption, images)


def placed(data: Data, across: Axis) -> list[Data]:
    """Return the stacks of the record's table that fit on the chart, in the order of the table."""
    return [
        row
        for row in data["stacks"][:STACKS]
        if row["quality"] is not None and row[across.column] is not None
    ]


def _figure(data: Data, shown: Sequence[Data], across: Axis, bars: Floats) -> go.Figure:
    asked, named = data["asked"], letters(data)
    factor = across.factor
    x = np.array([factor * row[across.column] for row in shown])
    y = np.array([row["quality"] for row in shown])
    limit = asked[_LIMITS[across.key]]
    most = None if limit is None or factor * limit > _FAR * x.max() else factor * limit
    both = roles(data)
    kinds = np.array([_kind(row, named, both) for row in shown])
    layout = theme.layout(
        x=f"{across.word} ({across.unit_words})",
        y=f"{asked['measure']}, {asked['better']} is better",
        height=_HEIGHT,
    )
    layout["xaxis"] |= _axis([*x, *([] if most is None else [most])])
    layout["yaxis"]["range"] = theme.span([*bars.flat[~np.isnan(bars.flat)], *y], 0.06)
    log = layout["xaxis"]["type"] == "log"
    joined = np.array([row["status"] in ("chosen", "runner-up", "frontier") for row in shown])
    traces = [_line(np.where(joined, x, np.nan), y, higher=asked["better"] == "higher")]
    for kind, (name, colour, symbol, size) in _LOOKS.items():
        picked = np.flatnonzero(kinds == kind).tolist()
        name = " or ".join(places(data)) if kind == "chosen" and both else name  # noqa: PLW2901
        if picked:
            said = [_said(shown[place], across) for place in picked]
            marker = {"color": colour, "symbol": symbol, "size": size}
            spread = theme.whiskers(bars[0, picked], y[picked], bars[1, picked], color=colour)
            traces.append(
                theme.scatter(name, x[picked], y[picked], hover=said, marker=marker, error_y=spread)
            )
    layout["annotations"] = list(_names(shown, named, np.log10(x) if log else x, y))
    layout["shapes"] = list(_limits(most, asked["min_quality"]))
    return theme.finished(traces, layout)


def _axis(numbers: Sequence[float]) -> theme.Spec:
    """Return an x axis that covers all these numbers."""
    log = logarithmic(numbers)
    ends = np.log10(numbers) if log else np.array(numbers)
    return {"type": "log" if log else "linear", "range": theme.span(ends, 0.06)}


def _bars(data: Data, shown: Sequence[Data]) -> Floats:
    """Return the quality interval of every stack that has a letter [2, n]; NaN = none."""
    named, known = letters(data), {row["run_id"]: row for row in finalists(data)}
    ends = [
        (row["quality_low"], row["quality_high"])
        if (row := known.get(one["run_id"])) and one["run_id"] in named
        else (None, None)
        for one in shown
    ]
    return np.array(ends, dtype=np.float64).T


def _kind(row: Data, named: Mapping[str, str], both: Mapping[str, str]) -> str:
    if row["run_id"] in both:
        return "chosen"
    if row["status"] in ("chosen", "excluded"):
        return str(row["status"])
    return "alternative" if row["run_id"] in named else "feasible"


def _said(row: Data, across: Axis) -> str:
    name = text.escape(text.shorten(row["stack"], 80))
    return f"{name}: {text.score(row['quality'])}, {across.written(row[across.column])}"


def _line(paid: Floats, y: Floats, *, higher: bool) -> theme.Spec:
    """Draw a line through the feasible stacks that are undominated on the two axes."""
    on = frontier_2d(paid, y if higher else -y)
    look = {"color": theme.FRONTIER, "width": 1.5, "shape": "hv"}
    return theme.quiet("frontier", paid[on], y[on], mode="lines", line=look)


def _names(shown: Sequence[Data], named: Mapping[str, str], x: Floats, y: Floats) -> Iterator[theme.Spec]:
    """Write the letters of the table of alternatives beside their marks, without overlaps."""
    ends = [(low, high) for low, high in ((x.min(), x.max()), (y.min(), y.max()))]
    taken: list[tuple[float, float, float]] = []  # left, right and middle
    for place, row in enumerate(shown):
        if (name := named.get(row["run_id"])) is None:
            continue
        across, up = (
            (at - low) / ((high - low) or 1) * size
            for at, (low, high), size in zip((x[place], y[place]), ends, _PIXELS, strict=True)
        )
        for right, above, anchor in _PLACES:
            left = across + right - (len(name) * _LETTER[0] if anchor == "right" else 0)
            box = (left, left + len(name) * _LETTER[0], up + above)
            if not any(box[0] < b and box[1] > a and abs(box[2] - c) < _LETTER[1] for a, b, c in taken):
                break
        taken.append(box)
        yield {
            "x": x[place],
            "y": y[place],
            "text": name,
            "xanchor": anchor,
            "xshift": right,
            "yshift": above,
        }


def _limits(most: float | None, floor: float | None) -> Iterator[theme.Spec]:
    dashed = {"type": "line", "line": {"dash": "dash", "color": theme.ACCENT}}
    if most is not None:
        yield {**dashed, "x0": most, "x1": most, "y0": 0, "y1": 1, "yref": "y domain"}
    if floor is not None:
        yield {**dashed, "y0": floor, "y1": floor, "x0": 0, "x1": 1, "xref": "x domain"}
