"""Figures as SVG, for pages without scripts: marks, lines, bars, intervals, axes, legend.

Hover text is left out unless requested; every chart has a table behind it. Words in
a figure are untrusted: they become the text of an element and nothing else. Axes and words use the colours
of the page (`--quiet`, `--line`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from core.views import theme

if TYPE_CHECKING:
    import plotly.graph_objects as go

_Any = Any  # Plotly objects, which are untyped
_HEIGHT = 380  # Height of a figure without one; pixels
_TICKS = 5
_FEW = 3  # Maximum decades of a logarithmic axis with numbers between them
_SWATCH = 22  # Pixels of a legend mark, including the gap to the next
_ANCHORS = {"center": "middle", "right": "end"}
_BAR = 0.72  # Share of its slot that a group of bars fills
_SHAPES = {
    "square": "M-1,-1H1V1H-1Z",
    "diamond": "M0,-1.3L1.3,0L0,1.3L-1.3,0Z",
    "cross": "M-.4,-1.2H.4V-.4H1.2V.4H.4V1.2H-.4V.4H-1.2V-.4H-.4Z",
    "x": "M-1,-1L1,1M1,-1L-1,1",
    "triangle-up": "M0,-1.2L1.2,1H-1.2Z",
    "triangle-down": "M0,1.2L1.2,-1H-1.2Z",
    "star": "M0,-1.4L.4,-.4L1.4,-.4L.6,.3L.9,1.3L0,.7L-.9,1.3L-.6,.3L-1.4,-.4L-.4,-.4Z",
}
_KINDS = frozenset({"scatter", "scattergl", "bar"})
_HALO = ' stroke="var(--paper)" stroke-width="3" paint-order="stroke"'  # for words among marks
_MARKUP = re.compile(r"<[^>]*>")


@dataclass(frozen=True, slots=True)
class Canvas:
    """The surface that a figure is drawn on."""

    width: int = 760  # pixels, also its maximum width
    letter: int = 11  # size of its letters; pixels
    named: bool = False  # whether a mark includes its hover text, if a trace has any

    @property
    def character(self) -> float:
        """Approximate width of a character; pixels."""
        return 0.56 * self.letter

    @property
    def line(self) -> float:
        """Height of a line of text; pixels."""
        return 1.36 * self.letter


@dataclass(frozen=True, slots=True)
class _Room:
    """The area between the axes; pixels."""

    canvas: Canvas
    left: float
    right: float
    top: float
    bottom: float


@dataclass(frozen=True, slots=True)
class _Axis:
    """An axis of a panel."""

    low: float
    high: float
    start: float  # pixels
    end: float
    log: bool
    ticks: tuple[tuple[float, str], ...]
    places: Mapping[str, int]  # positions of the categories
    title: str

    def at(self, value: _Any) -> float:
        """Return the position of a value, or NaN if it has none."""
        number = float(self.places[str(value)]) if str(value) in self.places else _number(value)
        if self.log:
            number = math.log10(number) if number > 0 else math.nan
        return self.stands(number)

    def stands(self, number: float) -> float:
        """Return the position of a number on the axis itself, an exponent if it has a log scale."""
        return float(self.start + (number - self.low) / (self.high - self.low or 1) * (self.end - self.start))


def svg(figure: go.Figure, alt: str, canvas: Canvas = Canvas()) -> str | None:
    """Draw a figure, or return None if it has a kind of trace that is not supported.

    Args:
        alt: Its content in words.
    """
    traces = [trace for trace in figure.data if trace.visible in (None, True)]
    if not traces or any(trace.type not in _KINDS for trace in traces):
        return None
    layout = figure.layout
    height = int(layout.height or _HEIGHT)
    listed = _listed(traces, canvas)
    lines = 1 + max((entry.line for entry in listed), default=0)
    room = _Room(
        canvas,
        left=_margin(layout, traces, canvas),
        right=canvas.width - 16,
        top=(lines + 1) * canvas.line + 8,
        bottom=height - 3 * canvas.line - 2,
    )
    named = [(trace.xaxis or "x", trace.yaxis or "y") for trace in traces]
    parts: list[str] = []
    for pair in dict.fromkeys(named):
        own = [trace for trace, one in zip(traces, named, strict=True) if one == pair]
        parts += _panel(layout, pair, own, room)
    parts += _legend(listed, canvas)
    return (
        f'<svg viewBox="0 0 {canvas.width} {height}" width="{canvas.width}" role="img" '
        f'aria-label="{escape(alt)}" font-size="{canvas.letter}">{"".join(parts)}</svg>'
    )


def _margin(layout: _Any, traces: Sequence[Any], canvas: Canvas) -> float:
    """Return the pixels left of the axes, needed for names of rows."""
    names = [*(one for trace in traces for one in _values(trace.y)), *_values(layout.yaxis.ticktext)]
    sizes = [len(_short(one)) for one in names if isinstance(one, str)]
    return max(6 * canvas.letter, max(sizes, default=0) * canvas.character + 12)


def _notes(layout: _Any, pair: tuple[str, str], axes: tuple[_Axis, _Axis], room: _Room) -> Iterator[str]:
    """Yield the texts beside marks, and those placed relative to the whole figure, such as panel titles."""
    (x, y), first = axes, pair == ("x", "y")
    for one in layout.annotations:
        across, down = one.xref or "x", one.yref or "y"
        whole_figure = (across, down) == ("paper", "paper")
        if across not in (pair[0], "paper") or down not in (pair[1], "paper") or (whole_figure and not first):
            continue
        wide, high = room.right - room.left, room.bottom - room.top
        left = room.left + one.x * wide if across == "paper" else x.stands(_number(one.x))
        below = one.yanchor in (None, "auto") and down == "paper" and one.y > 2 / 3  # as Plotly places it
        above = -room.canvas.letter if below else 4
        top = room.bottom - one.y * high - above if down == "paper" else y.stands(_number(one.y)) + 4
        left, top = left + (one.xshift or 0), max(top - (one.yshift or 0), 12)
        yield _text(left, top, _short(one.text or "", 44), _ANCHORS.get(one.xanchor, "start"), _HALO)


def _panel(layout: _Any, pair: tuple[str, str], traces: Sequence[Any], room: _Room) -> Iterator[str]:
    canvas = room.canvas
    x, y = (_axis(layout, name, traces, room) for name in pair)
    yield f'<path d="M{x.start:.1f},{y.end:.1f}V{y.start:.1f}H{x.end:.1f}" fill="none" stroke="var(--line)"/>'
    for value, words in y.ticks:
        at = y.at(value)
        yield f'<path d="M{x.start:.1f},{at:.1f}H{x.end:.1f}" stroke="var(--line)" stroke-width=".5"/>'
        yield _text(x.start - 6, at + 4, words, "end")
    for value, words in x.ticks:
        yield _text(x.at(value), y.start + canvas.line, words, "middle")
    yield _text((x.start + x.end) / 2, y.start + 2.3 * canvas.line, x.title, "middle")
    yield _text(4 if pair == ("x", "y") else x.start, y.end - 8, y.title, "start")
    bars = [trace for trace in traces if trace.type == "bar"]
    yield from _bars(bars, x, y, stacked=layout.barmode in ("stack", "relative"))
    for number, trace in enumerate(traces):
        if trace.type != "bar":
            yield from _scatter(trace, x, y, _colour(trace, number), named=canvas.named)
    for shape in layout.shapes:
        if shape.type == "line" and (shape.xref or "x").split()[0] == pair[0]:
            yield _rule(shape, x, y)
    yield from _notes(layout, pair, (x, y), room)


def _axis(layout: _Any, name: str, traces: Sequence[Any], room: _Room) -> _Axis:
    letter, about = name[0], layout[name[0] + "axis" + name[1:]]
    values = [value for trace in traces for value in _values(getattr(trace, letter))]
    log = about.type == "log"
    numeric = [_number(value) for value in values if not isinstance(value, str)]
    places: dict[str, int] = {}
    if any(isinstance(value, str) for value in values):
        places = {str(value): place for place, value in enumerate(dict.fromkeys(values))}
        low, high = -0.5, len(places) - 0.5
    else:
        low, high = _span(numeric, log=log, bars=any(_lengths(trace) == letter for trace in traces))
    if about.range and not places:
        low, high = (float(end) for end in about.range)
    elif about.autorange == "reversed":
        low, high = high, low
    domain = about.domain or (0, 1)
    ends = (room.left, room.right) if letter == "x" else (room.bottom, room.top)
    start, end = (ends[0] + share * (ends[1] - ends[0]) for share in domain)
    title = _plain((about.title.text if about.title else "") or "")
    ticks = () if about.visible is False else tuple(_ticks(about, low, high, places, log=log))
    return _Axis(low, high, start, end, log, ticks, places, title)


def _lengths(trace: _Any) -> str:
    """Return the axis along which a trace has lengths, which start at 0, or "" for marks."""
    if trace.type != "bar":
        return ""
    return "x" if trace.orientation == "h" else "y"


def _span(numbers: Sequence[float], *, log: bool, bars: bool) -> tuple[float, float]:
    held = [value for value in numbers if math.isfinite(value) and (value > 0 or not log)]
    if not held:
        return 0.0, 1.0
    ends = [math.log10(value) for value in (min(held), max(held))] if log else [min(held), max(held)]
    if bars and not log:
        ends = [min(0.0, ends[0]), max(0.0, ends[1])]
    room = (ends[1] - ends[0] or 1) * 0.06
    return ends[0] - (0 if bars and ends[0] == 0 else room), ends[1] + room


def _ticks(
    about: _Any,
    low: float,
    high: float,
    places: Mapping[str, int],
    *,
    log: bool,
) -> Iterator[tuple[float, str]]:
    least, most = min(low, high), max(low, high)
    if places:
        yield from ((float(place), _short(words)) for words, place in places.items())
    elif about.tickvals is not None:
        words = about.ticktext if about.ticktext is not None else [f"{value:g}" for value in about.tickvals]
        for value, one in zip(about.tickvals, words, strict=False):
            stands = math.log10(value) if log and value > 0 else value
            if least <= stands <= most:
                yield float(value), _short(str(one))
    elif log:
        between = (1, 2, 5) if most - least <= _FEW else (1,)
        marks = (of * 10.0**power for power in range(math.floor(least), math.ceil(most)) for of in between)
        yield from ((mark, f"{mark:,g}") for mark in marks if least <= math.log10(mark) <= most)
    else:
        step = _step((most - least) / _TICKS)
        first = math.ceil(least / step)
        yield from (
            (place * step, _said(place * step, step, about))
            for place in range(first, math.floor(most / step) + 1)
        )


def _step(rough: float) -> float:
    size = 10 ** math.floor(math.log10(rough or 1))
    return float(next(size * of for of in (1, 2, 5, 10) if rough <= size * of))


def _said(value: float, step: float, about: _Any) -> str:
    if "%" in (about.tickformat or ""):
        return f"{value:.0%}"
    return f"{value:,.{max(0, -math.floor(math.log10(step)))}f}"


def _bars(traces: Sequence[Any], x: _Axis, y: _Axis, *, stacked: bool) -> Iterator[str]:
    reached: dict[tuple[str, bool], float] = {}
    for number, trace in enumerate(traces):
        across = trace.orientation == "h"
        along, beside = (x, y) if across else (y, x)
        lengths, stands = (trace.x, trace.y) if across else (trace.y, trace.x)
        whole = abs(beside.at(1) - beside.at(0)) if beside.places else 14 / _BAR
        size = whole * _BAR / (1 if stacked else len(traces))
        if isinstance(trace.width, int | float):
            size = abs(beside.stands(trace.width) - beside.stands(0))
        shift = 0 if stacked else (number - (len(traces) - 1) / 2) * size
        bases = _values(trace.base) if trace.base is not None else []
        for place, (length, stand) in enumerate(zip(_values(lengths), _values(stands), strict=False)):
            key, value = (str(stand), _number(length) >= 0), _number(length)
            base = _number(bases[min(place, len(bases) - 1)]) if bases else reached.get(key, 0.0)
            if stacked:
                reached[key] = base + value
            ends, middle = sorted((along.at(base), along.at(base + value))), beside.at(stand) + shift
            if not all(map(math.isfinite, (*ends, middle))):
                continue
            box = (ends[0], middle - size / 2, ends[1] - ends[0], size)
            left, top, wide, high = box if across else (box[1], box[0], box[3], box[2])
            yield (f'<rect x="{left:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{high:.1f}" '
                   f'fill="{_colour(trace, number, place)}" opacity="{_opacity(trace)}"/>')  # fmt: skip


def _scatter(trace: _Any, x: _Axis, y: _Axis, colour: str, *, named: bool) -> Iterator[str]:
    mode = trace.mode or "lines+markers"
    points = [
        (x.at(one), y.at(other)) for one, other in zip(_values(trace.x), _values(trace.y), strict=False)
    ]
    if "lines" in mode:
        line = _line(points, steps=trace.line.shape == "hv")
        dash = ' stroke-dasharray="5 4"' if trace.line.dash not in (None, "solid") else ""
        yield f'<path d="{line}" fill="none" stroke="{colour}" stroke-width="{trace.line.width or 2}"{dash}/>'
    yield from _whiskers(trace, points, x, y, colour)
    if "markers" in mode:
        said = _values(trace.hovertext) if named else []
        for place, (left, top) in enumerate(points):
            if math.isfinite(left) and math.isfinite(top):
                yield _mark(trace, place, (left, top), str(said[place]) if said else "")


def _line(points: Sequence[tuple[float, float]], *, steps: bool) -> str:
    drawn, pen = [], "M"
    for left, top in points:
        if not (math.isfinite(left) and math.isfinite(top)):
            pen = "M"
            continue
        drawn.append(f"H{left:.1f}V{top:.1f}" if steps and pen == "L" else f"{pen}{left:.1f},{top:.1f}")
        pen = "L"
    return "".join(drawn)


def _whiskers(
    trace: _Any,
    points: Sequence[tuple[float, float]],
    x: _Axis,
    y: _Axis,
    colour: str,
) -> Iterator[str]:
    for bars, axis, values in ((trace.error_x, x, trace.x), (trace.error_y, y, trace.y)):
        above = _values(bars.array)
        below = _values(bars.arrayminus) if bars.arrayminus is not None else above
        for value, up, down, (left, top) in zip(_values(values), above, below, points, strict=False):
            ends = axis.at(_number(value) - _number(down)), axis.at(_number(value) + _number(up))
            if all(map(math.isfinite, (*ends, left, top))):
                path = (
                    f"M{ends[0]:.1f},{top:.1f}H{ends[1]:.1f}"
                    if axis is x
                    else f"M{left:.1f},{ends[0]:.1f}V{ends[1]:.1f}"
                )
                yield f'<path d="{path}" stroke="{bars.color or colour}"/>'


def _mark(trace: _Any, place: int, at: tuple[float, float], said: str = "") -> str:
    marker, (left, top) = trace.marker, at
    symbol = str(_one(marker.symbol, place) or "circle")
    size = (_number(_one(marker.size, place)) if marker.size is not None else 6) / 2
    colour, opacity = _colour(trace, 0, place), _opacity(trace)
    hollow = symbol.endswith("-open") or symbol == "x"
    shape = _SHAPES.get(symbol.removesuffix("-open"))
    width = 1.5 if shape is None else 1.5 / max(size, 1)
    edge = (
        'stroke="var(--paper)"' if not hollow else f'fill="none" stroke="{colour}"'
    )  # overlaps stay visible
    paint = f'{edge} stroke-width="{width if hollow else 2 * width / 3:.2g}"'
    paint += "" if hollow else f' fill="{colour}"'
    paint += f' opacity="{opacity:g}"' if opacity < 1 else ""
    inside = f"<title>{escape(_plain(said))}</title>" if said else ""
    if shape is None:
        return f'<circle cx="{left:.1f}" cy="{top:.1f}" r="{size:g}" {paint}>{inside}</circle>'
    moved = f'transform="translate({left:.1f},{top:.1f}) scale({size:g})"'
    return f'<path d="{shape}" {moved} {paint}>{inside}</path>'


def _rule(shape: _Any, x: _Axis, y: _Axis) -> str:
    upright = str(shape.yref or "y").endswith(("domain", "paper"))
    level = str(shape.xref or "x").endswith(("domain", "paper"))
    left, right = (x.start, x.end) if level else (x.at(shape.x0), x.at(shape.x1))
    top, bottom = (y.start, y.end) if upright else (y.at(shape.y0), y.at(shape.y1))
    if not all(map(math.isfinite, (left, right, top, bottom))):
        return ""
    dash = ' stroke-dasharray="5 4"' if shape.line.dash not in (None, "solid") else ""
    colour = escape(str(shape.line.color or "currentColor"))
    return f'<path d="M{left:.1f},{top:.1f}L{right:.1f},{bottom:.1f}" stroke="{colour}"{dash}/>'


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of the legend."""

    number: int  # number of its trace
    trace: _Any
    name: str
    left: float  # pixels
    line: int


def _listed(traces: Sequence[Any], canvas: Canvas) -> list[_Entry]:
    """Return the legend, in as many lines as it needs; empty for a single trace."""
    left, line, entries = 4.0, 0, {}
    for number, trace in enumerate(traces if len(traces) > 1 else ()):
        name = _short(_plain(str(trace.name or "")), 34)
        width = len(name) * canvas.character + _SWATCH
        if not name or name in entries or trace.showlegend is False:
            continue
        if left > _SWATCH and left + width > canvas.width:
            left, line = 4.0, line + 1
        entries[name] = _Entry(number, trace, name, left, line)
        left += width
    return list(entries.values())


def _legend(entries: Sequence[_Entry], canvas: Canvas) -> Iterator[str]:
    for entry in entries:
        middle, trace = (0.6 + entry.line) * canvas.line, entry.trace
        colour = _colour(trace, entry.number, 0)
        if trace.type != "bar" and "markers" in (trace.mode or ""):
            yield _mark(trace, 0, (entry.left + 5, middle))
        elif trace.type == "bar":
            yield f'<rect x="{entry.left:.1f}" y="{middle - 5:.1f}" width="9" height="9" fill="{colour}"/>'
        else:
            yield f'<path d="M{entry.left:.1f},{middle:.1f}h10" stroke="{colour}" stroke-width="2"/>'
        yield _text(entry.left + 13, middle + 0.35 * canvas.letter, entry.name, "start")


def _colour(trace: _Any, number: int, place: int = 0) -> str:
    own = (
        trace.line.color
        if trace.type != "bar" and "markers" not in (trace.mode or "")
        else trace.marker.color
    )
    one = _one(own, place)
    if isinstance(one, int | float) and not isinstance(one, bool):
        one = _scaled(trace.marker, float(one))
    usual = theme.OKABE_ITO[number % len(theme.OKABE_ITO)]
    return escape(str(one or usual), quote=True)


def _scaled(marker: _Any, value: float) -> str:
    """Return a number as a colour of Viridis."""
    from plotly.colors import sample_colorscale  # noqa: PLC0415 - with the charts' library

    low, high = marker.cmin, marker.cmax
    share = 0.5 if low is None or high is None or high == low else (value - low) / (high - low)
    return str(sample_colorscale("Viridis", [min(1.0, max(0.0, share))])[0])


def _opacity(trace: _Any) -> float:
    own, whole = _number(_one(trace.marker.opacity, 0)), _number(trace.opacity)
    return (1.0 if math.isnan(own) else own) * (1.0 if math.isnan(whole) else whole)


def _values(given: object) -> list[Any]:
    if given is None:
        return []
    return np.asarray(given).tolist() if not isinstance(given, str | int | float) else [given]


def _one(given: object, place: int) -> object:
    if given is None or isinstance(given, str | int | float):
        return given
    values = _values(given)
    return values[min(place, len(values) - 1)] if values else None


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _plain(words: str) -> str:
    return _MARKUP.sub(" ", words).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()


def _short(words: str, most: int = 24) -> str:
    words = _plain(words)
    return words if len(words) <= most else f"{words[: most - 1]}…"


def _text(left: float, top: float, words: str, anchor: str, look: str = "") -> str:
    if not words or not math.isfinite(left + top):
        return ""
    at = f'x="{left:.1f}" y="{top:.1f}" text-anchor="{anchor}"'
    return f'<text {at} fill="var(--quiet)"{look}>{escape(words)}</text>'
