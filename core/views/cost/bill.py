"""The bill as a table and as bars, its sensitivity as a tornado, and the price tables of the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
import polars as pl

from core.number_format import CostUnit
from core.prices import MS_PER_HOUR, Price, PriceBook
from core.prices.calculator import RANGE, CostBreakdown, CostInputs, CostLine, Swing, calculator, tornado
from core.records import Basis
from core.tables import schema
from core.views import text, theme
from core.views.cost.words import BUYS, alike, buying, moved, share_of, swung

PAPER_BOOK = "clq-paper"
PAPER_TOKENS = 500  # Tokens per candidate and per chunk in the paper's tables
_LOOKS: Mapping[str, tuple[str, str]] = {
    "embed": (theme.OKABE_ITO[2], "\\"),
    "rerank": (theme.OKABE_ITO[0], ""),
    "generate-input": (theme.OKABE_ITO[1], "/"),
    "generate-output": (theme.OKABE_ITO[3], "x"),
    "machine": (theme.NEUTRAL, "."),
    "gpu": (theme.OKABE_ITO[7], "-"),
    "embed-corpus": (theme.OKABE_ITO[4], "|"),
    "index": (theme.OKABE_ITO[5], "+"),
    "storage": (theme.OKABE_ITO[6], "\\"),
}
"""Stages of the bill in order, with their colour and pattern."""
_BILL = schema("unit_price source looked_up:date confirmed note")
SHOWN = 12  # Inputs drawn, the widest first; the table has all
_ENDS = (("lower", theme.OKABE_ITO[0], ""), ("higher", theme.OKABE_ITO[1], "/"))


@dataclass(frozen=True)
class CostView:
    """Cost of a stack, with the tables and the chart that show it."""

    found: CostBreakdown  # the bill from the calculator
    prices: tuple[Price, ...]  # the prices it is based on
    said: CostUnit  # its cost unit
    figure: go.Figure  # one stacked bar, dollars by stage
    # stage, item, unit, units_per_query, unit_price, usd_per_query, usd_per_1k, usd_per_month (null =
    # unknown), reason, source, looked_up, confirmed (yes, no or what-if), note and basis
    bill: pl.DataFrame


def cost(
    inputs: CostInputs,
    book: PriceBook,
    basis: Mapping[str, str] | None = None,
    said: CostUnit | None = None,
) -> CostView:
    """Compute the cost of a stack.

    Args:
        basis: How the amounts of a stage are known, by stage; others are modelled.
        said: The page's cost unit; None = one that suits this cost.

    Raises:
        InputError: If an amount is negative or not a number.
    """
    breakdown = calculator(inputs, book)
    prices_of = [_price_columns(line.price) for line in breakdown.lines]
    bill = pl.concat([breakdown.frame(), pl.DataFrame(prices_of, schema=_BILL)], how="horizontal")
    known = pl.col("stage").replace_strict(basis or {}, default=str(Basis.MODELLED)).alias("basis")
    prices = tuple(dict.fromkeys(line.price for line in breakdown.lines if line.price is not None))
    said = said or CostUnit.among([breakdown.per_1k])
    return CostView(breakdown, prices, said, _figure(breakdown, said), bill.with_columns(known))


def readable(rows: pl.DataFrame) -> pl.DataFrame:
    """Format unit and units_per_query of a bill for people; hours of a machine as milliseconds."""
    hours, kind = pl.col("unit").str.ends_with("_hour"), pl.col("unit").replace(BUYS)
    amount = pl.col("units_per_query")
    return rows.with_columns(
        pl.when(hours).then(amount * MS_PER_HOUR).otherwise(amount).alias("units_per_query"),
        pl.when(hours).then("mean " + kind.str.replace("hours", "ms")).otherwise(kind).alias("unit"),
    )


def paper_rerank(book: PriceBook) -> pl.DataFrame:
    """Return the paper's rerank costs (§3.2.1), calculated here: K, then $ per 1,000 queries by model."""
    return _grid(
        "k",
        (50, 100, 150, 200),
        ("rerank-2.5", "rerank-2.5-lite"),
        lambda k, model: CostInputs(candidates=k, tokens_per_candidate=PAPER_TOKENS, reranker=model),
        book,
    )


def paper_generator(book: PriceBook) -> pl.DataFrame:
    """Return the paper's generator input costs (§3.2.1): chunks, then $ per 1,000 queries by model."""
    return _grid(
        "chunks",
        (10, 20, 30),
        ("gpt-5", "gpt-5-mini", "gpt-5-nano"),
        lambda sent, model: CostInputs(chunks_sent=sent, tokens_per_chunk=PAPER_TOKENS, generator=model),
        book,
    )


def _grid(
    name: str,
    amounts: Sequence[int],
    items: Sequence[str],
    asked: Callable[[int, str], CostInputs],
    book: PriceBook,
) -> pl.DataFrame:
    costs = {item: [calculator(asked(amount, item), book).per_1k for amount in amounts] for item in items}
    schema = {name: pl.Int64(), **dict.fromkeys(items, pl.Float64())}
    return pl.DataFrame({name: list(amounts), **costs}, schema=schema)


def _figure(breakdown: CostBreakdown, said: CostUnit) -> go.Figure:
    height = max(180, 60 * len(breakdown.lines))  # a Plotly legend scrolls beyond half of a chart
    bars = [_bar(line, breakdown, said) for line in breakdown.lines]
    fig = theme.figure(bars, x=f"$ per {said.many} queries", height=height)
    fig.update_layout(barmode="stack", bargap=0.5, legend={"traceorder": "normal"})
    fig.update_xaxes(rangemode="tozero", tickprefix="$", exponentformat="none")
    fig.update_yaxes(showticklabels=False)
    return fig


def _bar(line: CostLine, breakdown: CostBreakdown, said: CostUnit) -> go.Bar:
    """Return a stage's part of the bar; an unknown cost has no length, which the legend says."""
    amount = None if line.usd_per_query is None else 1000 * line.usd_per_query
    colour, pattern = _LOOKS[line.stage]
    share = f", {share_of(amount, breakdown.per_1k)}" if amount is not None and breakdown.per_1k else ""
    hover = text.escape(f"{line.stage}: {line.item}\n{said.usd(amount)}{share}")
    return go.Bar(
        name=text.escape(f"{line.stage} {said.bare(amount)}{share}"),
        x=[None if amount is None else said.factor * amount],
        y=[""],
        orientation="h",
        showlegend=True,
        marker={"color": colour, "pattern": {"shape": pattern, "fillmode": "replace"}},
        hovertext=[hover.replace("\n", "<br>")],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _price_columns(price: Price | None) -> dict[str, object]:
    if price is None:
        return dict.fromkeys(_BILL)
    return {
        "unit_price": f"{price.price:.10g} {price.currency} / {buying(price)}",
        "source": price.source,
        "looked_up": price.looked_up,
        "confirmed": "what-if" if price.was is not None else "yes" if price.confirmed else "no",
        "note": price.note,
    }


@dataclass(frozen=True)
class SwingView:
    """The section's content."""

    answer: str  # what moves the monthly bill most, and by how much; if unknown, why
    alike: bool  # whether all inputs move it equally
    figure: go.Figure  # A bar per input from the bill at its lower end to the bill at its higher end
    # input, value, low, high, usd_low, usd, usd_high ($ a month) and width, the widest first
    rows: pl.DataFrame


def swings(inputs: CostInputs, book: PriceBook, *, share: float = RANGE) -> SwingView:
    """Vary each input and compute the monthly bill; see `core.prices.calculator.tornado`.

    Args:
        share: Share by which each input is changed, above 0 and below 1.

    Raises:
        InputError: If the share or an amount is out of range.
    """
    by_input = tornado(inputs, book, share=share)
    return SwingView(
        moved(by_input, share), alike(by_input), _tornado(by_input[:SHOWN], share), _rows(by_input)
    )


def _rows(by_input: Sequence[Swing]) -> pl.DataFrame:
    rows = [
        (swung(one), one.value, one.low, one.high, one.low_usd, one.usd, one.high_usd, one.width)
        for one in by_input
    ]
    columns = ("input", "value", "low", "high", "usd_low", "usd", "usd_high", "width")
    schema = {name: pl.String() if name == "input" else pl.Float64() for name in columns}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _tornado(by_input: Sequence[Swing], share: float) -> go.Figure:
    """Draw bars about the current bill; the widest on top."""
    usd = by_input[0].usd if by_input else 0.0
    layout = theme.layout(x="$ a month", height=120 + 30 * len(by_input))
    layout |= {"barmode": "overlay", "bargap": 0.35}
    layout["yaxis"] |= {"autorange": "reversed", "tickfont": {"size": 12}}
    layout["xaxis"] |= {"tickprefix": "$", "exponentformat": "none"}
    names = [text.escape(swung(swing)) for swing in by_input]
    traces = []
    for place, (end, colour, pattern) in enumerate(_ENDS):
        bills = [(swing.low_usd, swing.high_usd)[place] for swing in by_input]
        at = [(swing.low, swing.high)[place] for swing in by_input]
        hovers = [
            f"{name}: {value:,.6g}<br>{text.usd(bill)} a month"
            for name, value, bill in zip(names, at, bills, strict=True)
        ]
        bar = {"type": "bar", "orientation": "h", "name": f"{100 * share:g} % {end}", "y": names}
        ends = {"x": [bill - usd for bill in bills], "base": [usd] * len(by_input)}
        marker = {"color": colour, "pattern": {"shape": pattern, "fillmode": "replace"}}
        hover = {"hovertext": hovers, "hovertemplate": "%{hovertext}<extra></extra>"}
        traces.append({**bar, **ends, **hover, "marker": marker})
    return theme.finished(traces, layout).add_vline(usd, line={"width": 1, "color": theme.NEUTRAL})
