"""Colours, shapes and the common look of every chart.

Categories use the Okabe-Ito palette (distinct with all common forms of colour blindness) with purple and
brown for its orange and yellow, which are faint on white; magnitudes use one sequential scale, and rerankers
have a shape too, so that nothing depends on colour alone.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from core.arrays import Floats
from core.views.text import escape

OKABE_ITO = ("#0072B2", "#963CF0", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#964B2D", "#999999")

SEQUENTIAL = "Viridis"

SEQUENTIAL_DARK = [[0, "#7b6fd0"], [0.25, "#4f93c8"], [0.5, "#2db39e"], [0.75, "#7ad151"], [1, "#fde725"]]
"""The same scale on a dark ground: every colour has a contrast of at least 4.5:1."""

SEQUENTIAL_LIGHT = [[0, "#440154"], [0.3, "#3b528b"], [0.6, "#21818c"], [0.8, "#3f9350"], [1, "#6f9a1a"]]
"""The same scale on white: every colour has a contrast of at least 3:1."""

SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "star")

ACCENT = "#D55E00"

FRONTIER = "#0072B2"

SOFT = "rgba(122, 134, 148, 0.18)"  # For strips over indistinguishable values

EDGE = "rgba(255, 255, 255, 0.8)"  # Of marks, so that those on one another can be counted
NEUTRAL = "#7a8694"

DIMMED = 0.4

TODAY = "□"  # Before the name of the stack that runs today, whose mark is a square on every chart

Spec = dict[str, Any]  # A trace or a layout in Plotly's JSON form

Numbers = TypeVar("Numbers", float, pl.Series, Floats)
_CONFIG = {
    "displaylogo": False,
    "modeBarButtonsToRemove": ["lasso2d", "autoScale2d"],
    "scrollZoom": False,
    "showSendToCloud": False,  # otherwise a button uploads the chart to Plotly
}
_TITLE = 34  # Letters per line of an axis title, so that it fits a phone's chart


@dataclass(frozen=True)
class Shade:
    """One colour whose opacity shows a count."""

    rgb: tuple[int, int, int]  # red, green and blue, 0..255
    least: float  # opacity of the smallest count
    most: float  # opacity of the largest count

    def css(self, opacity: float) -> str:
        """Return the colour at an opacity."""
        return f"rgba({', '.join(map(str, self.rgb))}, {opacity:g})"


DENSITY_IN = Shade((0, 114, 178), 0.12, 0.85)  # Feasible stacks: the frontier's blue

DENSITY_OUT = Shade((122, 134, 148), 0.05, 0.4)  # Excluded stacks: the neutral grey


def chart_config(name: str) -> dict[str, object]:
    """Return the Plotly configuration of a chart: no logo, and a download button that names the file."""
    return {**_CONFIG, "toImageButtonOptions": {"format": "svg", "filename": name}}


def colour_of(name: str) -> str:
    """Return a name's fixed colour, the same on every page and in every session."""
    number = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), "big")
    return OKABE_ITO[number % 6]


def colours_for(names: Iterable[str], given: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Return distinct colours for a few names: each keeps its own if free, otherwise takes the next one.

    Args:
        given: The colours that some of the names have already.
    """
    names, taken = list(names), dict(given)
    for name in names:
        wanted = colour_of(name)
        free = [colour for colour in OKABE_ITO if colour not in taken.values()]
        taken.setdefault(name, wanted if wanted in free or not free else free[0])
    return {name: taken[name] for name in names}


def layout(*, x: str = "", y: str = "", height: int = 440, legend: bool = True) -> Spec:
    """Return the house style: named axes, light grid, legend above, stable zoom.

    Args:
        x: Title of the x axis, with its unit.
        y: Title of the y axis, with its unit.

    Returns:
        A layout; colours of text and grid follow the page's light or dark theme.
    """
    return {
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 36, "b": 8},
        "showlegend": legend,
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "title": {"text": ""}},
        "hovermode": "closest",
        "uirevision": "keep",
        "dragmode": "zoom",
        "xaxis": {"title": {"text": lines(x, _TITLE)}, "automargin": True, "zeroline": False},
        "yaxis": {"title": _upward(y), "automargin": True, "zeroline": False},
    }


def _upward(words: str) -> Spec:
    """Return the title of an axis beside its ticks, which a second line would overlap.

    Where two lines do not hold it, what explains the measure is left to the tile.
    """
    title = lines(words, _TITLE)
    if title.count("<br>") > 1:
        title = lines(words.partition(": ")[0], _TITLE)
    return {"text": title, "standoff": 22} if "<br>" in title else {"text": title}


def lines(words: str, wide: int, most: int | None = None) -> str:
    """Wrap untrusted words to this width, for a chart; "K = 20" and "1 : 1.3" stay on one line."""
    kept = re.sub(r" ([=:]) ", "\u00a0\\1\u00a0", words)
    return "<br>".join(map(escape, wrap(kept, wide, max_lines=most, placeholder="…")))


def scatter(name: str, x: object, y: object, *, hover: Sequence[str] = (), **look: object) -> Spec:
    """Return a trace of marks, or of another `mode`, for `finished`; `hover` is the text of each mark."""
    said = {"hovertext": hover, "hovertemplate": "%{hovertext}<extra></extra>"} if hover else {}
    return {"type": "scatter", "mode": "markers", "name": name, "x": x, "y": y, **said, **look}


def quiet(name: str, x: object, y: object, **look: object) -> Spec:
    """Return a trace without hover text or legend entry."""
    return {**scatter(name, x, y, showlegend=False, hoverinfo="skip"), **look}


def whiskers(low: Numbers, at: Numbers, high: Numbers, **look: object) -> Spec:
    """Return error bars from the ends of an interval: numbers or arrays; null = none."""
    return {"type": "data", "symmetric": False, "array": high - at, "arrayminus": at - low, **look}


def span(values: Iterable[float], room: float, least: float = 1e-9) -> list[float]:
    """Return the range of an axis for all values, with a share of it, or `least`, as room at both ends."""
    values = list(values)
    low, high = min(values), max(values)
    beside = max(room * (high - low) or 0.05 * abs(high), least)
    return [low - beside, high + beside]


def figure(
    traces: Sequence[go.BaseTraceType | Spec] = (),
    *,
    x: str = "",
    y: str = "",
    height: int = 440,
    legend: bool = True,
) -> go.Figure:
    """Draw a figure in the house style; see `layout` for the arguments."""
    return go.Figure(list(traces), layout=layout(x=x, y=y, height=height, legend=legend))


def finished(traces: Sequence[Spec], style: Spec) -> go.Figure:
    """Draw a figure from finished specifications, unchecked.

    Plotly otherwise checks and copies every property of every trace, which takes longer than everything else
    that a slider move requires of the server.
    """
    return go.Figure(list(traces), layout=style, _validate=False)


def steps(colours: Sequence[str]) -> list[tuple[float, str]]:
    """Return a colour scale of flat bands of equal width."""
    return [((place + end) / len(colours), colour) for place, colour in enumerate(colours) for end in (0, 1)]


@dataclass(frozen=True)
class BarPart:
    """One part of every bar of `stacked`."""

    title: str  # its name in the legend
    values: Sequence[float | None]  # its length in every row; null or NaN = unknown
    colour: str  # its colour
    pattern: str  # its Plotly pattern, so that colour isn't the only cue
    notes: Sequence[str]  # the hover text of every row


def stacked(
    names: Sequence[str], parts: Sequence[BarPart], *, x: str, chosen: str | None, today: str | None = None
) -> go.Figure:
    """Draw a bar per stack, made of parts; the chosen one is framed, the one of today has its mark."""
    traces = [
        go.Bar(
            name=part.title,
            x=list(part.values),
            y=list(range(len(names))),  # not names: two cut to the same text would share a bar
            orientation="h",
            marker={"color": part.colour, "pattern": {"shape": part.pattern, "fillmode": "replace"}},
            customdata=[escape(note) for note in part.notes],
            hovertemplate="%{customdata}<extra></extra>",
        )
        for part in parts
    ]
    fig = figure(traces, x=x, height=150 + 44 * len(names))
    fig.update_layout(barmode="stack", bargap=0.3, legend_traceorder="normal")
    return name_rows(fig, names, chosen, today=today)


def name_rows(
    fig: go.Figure,
    names: Sequence[str],
    chosen: str | None = None,
    *,
    today: str | None = None,
    wide: int = 30,
) -> go.Figure:
    """Name the rows of a chart from top to bottom, 0, 1, …, in lines of a width; frame the chosen stack."""
    marked = [as_today(f"▸ {name}" if name == chosen else name, runs=name == today) for name in names]
    fig.update_yaxes(
        range=[len(names) - 0.4, -0.6],
        tickvals=list(range(len(names))),
        ticktext=[lines(name, wide, 3) for name in marked],
        showgrid=False,
    )
    if chosen in names:
        row = names.index(chosen)
        fig.add_hrect(y0=row - 0.45, y1=row + 0.45, line={"color": ACCENT, "width": 1.5}, fillcolor=SOFT,
                      layer="below")  # fmt: skip
    return fig


def as_today(name: str, *, runs: bool) -> str:
    """Return a name with the mark of the stack that runs today, if it is that one."""
    return f"{TODAY} {name}, runs today" if runs else name


class Panels:
    """Small multiples under one legend.

    Attributes:
        figure: The chart.
    """

    def __init__(self, titles: Sequence[str], *, across: int = 3, x: str = "", height: int = 190) -> None:
        """Lay out a panel per title, row by row."""
        across = max(1, min(across, len(titles)))
        rows = max(1, -(-len(titles) // across))
        last = len(titles) - across * (rows - 1) if titles else across  # panels of the last row
        grid: list[list[Spec | None]] = [
            [{} if row < rows - 1 or col < last else None for col in range(across)] for row in range(rows)
        ]
        self._across = across
        self._listed: set[str] = set()
        self.figure = make_subplots(
            rows=rows, cols=across, subplot_titles=[lines(title, 72 // across) for title in titles],
            x_title=escape(x),
            specs=grid,
            vertical_spacing=0.3 / rows, horizontal_spacing=0.24 / across,
        )  # fmt: skip
        style = layout(height=100 + height * rows)
        legend = {**style["legend"], "y": 1 + 0.16 / rows}
        self.figure.update_layout({**{k: v for k, v in style.items() if k[1:] != "axis"}, "legend": legend})
        self.figure.update_layout(margin={"l": 8, "r": 8, "t": 64, "b": 48})
        self.figure.update_annotations(font_size=13)

    def at(self, place: int) -> dict[str, int]:
        """Return row and column of a panel, in Plotly's form."""
        return {"row": place // self._across + 1, "col": place % self._across + 1}

    def add(self, place: int, trace: go.BaseTraceType | Spec, group: str = "") -> None:
        """Draw in a panel; traces with one name, or one group, share a legend entry.

        Args:
            place: Which panel, from 0.
            group: Its legend group; its name by default.
        """
        group = group or trace["name"]
        trace.update(legendgroup=group, showlegend=group not in self._listed)
        self._listed.add(group)
        self.figure.add_trace(trace, **self.at(place))


def best_corner(*, higher: bool) -> str:
    """Say where the better stacks lie, for the start of a chart's caption."""
    return f"{'Top' if higher else 'Bottom'} left is best."


def better(*, higher: bool) -> Spec:
    """Return the corner of a chart with the better stacks: low cost, and high (or low) quality."""
    words, y = ("↖ better", 0.99) if higher else ("↙ better", 0.01)
    place = {"x": 0.01, "y": y, "xref": "paper", "yref": "paper"}
    return {**place, "text": words, "showarrow": False, "font": {"size": 12}}


def logarithmic(numbers: Floats | Sequence[float]) -> bool:
    """Return whether an axis of these numbers is logarithmic: all above 0 and over more than a decade."""
    known = np.asarray(numbers, dtype=np.float64)
    known = known[~np.isnan(known)]
    return bool(len(known) and known.min() > 0 and known.max() > 10 * known.min())


def ticks_of(low: float, high: float, *, log: bool) -> list[float]:
    """Return tick values: 1, 2, 5 of every power of ten, or about five round ones.

    The ends are exponents if log.
    """
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
    step = next(size * unit for unit in (1, 2, 2.5, 5, 10) if size * unit >= raw)
    first = math.ceil(low / step - 1e-9)
    return [round(place * step, 12) for place in range(first, math.floor(high / step + 1e-9) + 1)]
