"""The sensitivity of the monthly bill: a tornado, its table, and the answer in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
import polars as pl

from core.prices import PriceBook
from core.prices.cost import CostInputs
from core.prices.tornado import RANGE, Swing, tornado
from core.views import text, theme
from core.views.cost.words import moved, swung

SHOWN = 12
"""Inputs that are drawn, the widest first; the table has all."""
_ENDS = (("lower", theme.OKABE_ITO[0], ""), ("higher", theme.OKABE_ITO[1], "/"))


@dataclass(frozen=True)
class SwingView:
    """The section's content."""

    answer: str  # what moves the monthly bill most, and by how much; why there is nothing where it is unknown
    figure: go.Figure  # A bar for each input from the bill at its lower end to the bill at its higher end
    # input, value, low, high, usd_low, usd, usd_high ($ a month) and width, the widest first
    rows: pl.DataFrame


def swings(inputs: CostInputs, book: PriceBook, *, share: float = RANGE) -> SwingView:
    """What each input does to the monthly bill; see `core.prices.tornado.tornado`.

    Args:
        inputs: What is sent where, and how often.
        share: By which each input is changed, above 0 and below 1.

    Returns:
        The view.

    Raises:
        InputError: If the share or an amount is out of range.
    """
    found = tornado(inputs, book, share=share)
    return SwingView(moved(found, share), _figure(found[:SHOWN], share), _rows(found))


def _rows(found: Sequence[Swing]) -> pl.DataFrame:
    rows = [
        (swung(one), one.value, one.low, one.high, one.low_usd, one.usd, one.high_usd, one.width)
        for one in found
    ]
    columns = ("input", "value", "low", "high", "usd_low", "usd", "usd_high", "width")
    schema = {name: pl.String() if name == "input" else pl.Float64() for name in columns}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _figure(found: Sequence[Swing], share: float) -> go.Figure:
    """Bars about the bill as it is; the widest on top."""
    usd = found[0].usd if found else 0.0
    layout = theme.layout(x="$ a month", height=120 + 30 * len(found))
    layout["barmode"] = "overlay"
    layout["bargap"] = 0.35
    layout["yaxis"] |= {"autorange": "reversed", "tickfont": {"size": 12}}
    layout["xaxis"] |= {"tickprefix": "$", "exponentformat": "none"}
    layout["shapes"] = [
        {
            "type": "line",
            "x0": usd,
            "x1": usd,
            "y0": 0,
            "y1": 1,
            "yref": "paper",
            "line": {"width": 1, "color": theme.NEUTRAL},
        }
    ]
    names = [text.escape(swung(each)) for each in found]
    traces = []
    for place, (end, colour, pattern) in enumerate(_ENDS):
        bills = [(each.low_usd, each.high_usd)[place] for each in found]
        at = [(each.low, each.high)[place] for each in found]
        hovers = [
            f"{name}: {value:,.6g}<br>{text.usd(bill, '')} a month"
            for name, value, bill in zip(names, at, bills, strict=True)
        ]
        traces.append(
            {
                "type": "bar",
                "name": f"{100 * share:g} % {end}",
                "orientation": "h",
                "y": names,
                "x": [bill - usd for bill in bills],
                "base": [usd] * len(found),
                "marker": {"color": colour, "pattern": {"shape": pattern, "fillmode": "replace"}},
                "hovertext": hovers,
                "hovertemplate": "%{hovertext}<extra></extra>",
            }
        )
    return theme.finished(traces, layout)
