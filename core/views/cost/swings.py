"""The sensitivity of the monthly bill: a tornado, its table, and the answer in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
import polars as pl

from core.prices import PriceBook
from core.prices.calculator import CostInputs
from core.prices.tornado import RANGE, Swing, tornado
from core.views import text, theme

SHOWN = 12
"""Inputs that are drawn, the widest first; the table has all."""
WORDS: Mapping[str, str] = {
    "queries_per_month": "queries per month",
    "candidates": "K candidates",
    "tokens_per_candidate": "tokens per candidate",
    "query_tokens": "query tokens",
    "chunks_sent": "chunks sent",
    "tokens_per_chunk": "tokens per chunk",
    "prompt_tokens": "prompt tokens",
    "output_tokens": "output tokens",
    "cpu_ms": "local machine ms",
    "gpu_ms": "local graphics ms",
    "passages": "passages",
    "tokens_per_passage": "tokens per passage",
    "spread_queries": "queries that the corpus is spread over",
    "dim": "dimensions",
    "copies": "copies of the index",
}
_NAMED = 3
_SCHEMA = {
    "input": pl.String(),
    "value": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "usd_low": pl.Float64(),
    "usd": pl.Float64(),
    "usd_high": pl.Float64(),
    "width": pl.Float64(),
}
_ENDS = (("lower", theme.OKABE_ITO[0], ""), ("higher", theme.OKABE_ITO[1], "/"))


@dataclass(frozen=True)
class SwingView:
    """The section's content.

    Attributes:
        answer: What moves the monthly bill most, and by how much; why there is nothing where it is unknown.
        figure: A bar for each input from the bill at its lower end to the bill at its higher end.
        rows: input, value, low, high, usd_low, usd, usd_high ($ a month) and width, the widest first.
    """

    answer: str
    figure: go.Figure
    rows: pl.DataFrame


def swings(inputs: CostInputs, book: PriceBook, *, share: float = RANGE) -> SwingView:
    """What each input does to the monthly bill; see `core.prices.tornado.tornado`.

    Args:
        inputs: What is sent where, and how often.
        book: Prices.
        share: By which each input is changed, above 0 and below 1.

    Returns:
        The view.

    Raises:
        InputError: If the share or an amount is out of range.
    """
    found = tornado(inputs, book, share=share)
    return SwingView(_answer(found, share), _figure(found[:SHOWN], share), _rows(found))


def named(swing: Swing) -> str:
    """An input in words; a price with what it prices."""
    if swing.field == "price":
        return f"price of {text.shorten(swing.item)} ({swing.unit.replace('_', ' ')})"
    return WORDS[swing.field]


def _answer(found: Sequence[Swing], share: float) -> str:
    if not found:
        return "There is no monthly bill to vary: it is unknown, or nothing is billed."
    first, change = found[0], f"± {100 * share:g} %"
    if not first.width:
        return f"No input moves the monthly bill of {text.usd(first.usd, '')} by itself within {change}."
    equal = [named(each) for each in found if each.width >= 0.999 * first.width]
    more = f" and {len(equal) - _NAMED} more" if len(equal) > _NAMED else ""
    low, high = sorted((first.low_usd, first.high_usd))
    return (
        f"What moves the monthly bill most: {', '.join(equal[:_NAMED])}{more}. {change} takes it "
        f"from {text.usd(first.usd, '')} to {text.usd(low, '')} or {text.usd(high, '')}."
    )


def _rows(found: Sequence[Swing]) -> pl.DataFrame:
    rows = [
        (
            named(each),
            each.value,
            each.low,
            each.high,
            each.low_usd,
            each.usd,
            each.high_usd,
            each.width,
        )
        for each in found
    ]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _figure(found: Sequence[Swing], share: float) -> go.Figure:
    """Bars about the bill as it is; the widest on top."""
    usd = found[0].usd if found else 0.0
    layout = theme.layout(x="$ a month", height=120 + 30 * len(found))
    layout["barmode"] = "overlay"
    layout["bargap"] = 0.35
    layout["yaxis"] |= {"autorange": "reversed", "tickfont": {"size": 12}}
    layout["xaxis"] |= {"tickprefix": "$"}
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
    names = [text.escape(named(each)) for each in found]
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
