"""The cost calculator: a bill as a table and as a bar, and the price tables of the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
import polars as pl

from core.prices import MS_PER_HOUR, Price, PriceBook
from core.prices.cost import CostBreakdown, CostInputs, CostLine, calculator
from core.records import Basis
from core.views import text, theme
from core.views.cost.words import BUYS, buying, share_of

PAPER_BOOK = "clq-paper"
PAPER_TOKENS = 500
"""Tokens per candidate and per chunk in the paper's tables."""
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
_BILL = {
    "unit_price": pl.String(),
    "source": pl.String(),
    "looked_up": pl.Date(),
    "confirmed": pl.String(),
    "note": pl.String(),
}


@dataclass(frozen=True)
class CostView:
    """What a stack costs."""

    found: CostBreakdown  # the bill as the calculator makes it
    prices: tuple[Price, ...]  # those that it rests on
    figure: go.Figure  # one stacked bar, $ per 1,000 queries by stage
    # stage, item, unit, units_per_query, unit_price, usd_per_query, usd_per_1k, usd_per_month (null =
    # unknown), reason, source, looked_up, confirmed (yes, no or what-if), note and basis
    bill: pl.DataFrame


def cost(inputs: CostInputs, book: PriceBook, basis: Mapping[str, str] | None = None) -> CostView:
    """Work out what a stack costs.

    Args:
        inputs: What is sent where, and how often.
        basis: How the amounts of a stage are known, by stage; the others are modelled.

    Raises:
        InputError: If an amount is negative or not a number.
    """
    found = calculator(inputs, book)
    told = [_price_columns(line.price) for line in found.lines]
    bill = pl.concat([found.frame(), pl.DataFrame(told, schema=_BILL)], how="horizontal")
    known = pl.col("stage").replace_strict(basis or {}, default=str(Basis.MODELLED)).alias("basis")
    prices = tuple(dict.fromkeys(line.price for line in found.lines if line.price is not None))
    return CostView(found, prices, _figure(found), bill.with_columns(known))


def readable(rows: pl.DataFrame) -> pl.DataFrame:
    """Write the units of a bill, or of recorded usage, as people do; hours of a machine as milliseconds.

    Args:
        rows: With unit and units_per_query.
    """
    hours, kind = pl.col("unit").str.ends_with("_hour"), pl.col("unit").replace(BUYS)
    amount = pl.col("units_per_query")
    return rows.with_columns(
        pl.when(hours).then(amount * MS_PER_HOUR).otherwise(amount).alias("units_per_query"),
        pl.when(hours).then(kind.str.replace("hours", "ms")).otherwise(kind).alias("unit"),
    )


def paper_rerank(book: PriceBook) -> pl.DataFrame:
    """The paper's table of rerank costs (§3.2.1), by this product's calculator.

    Returns:
        k (50..200), then $ per 1,000 queries of rerank-2.5 and rerank-2.5-lite at 500 tokens a candidate.
    """
    return _grid(
        "k",
        (50, 100, 150, 200),
        ("rerank-2.5", "rerank-2.5-lite"),
        lambda k, model: CostInputs(candidates=k, tokens_per_candidate=PAPER_TOKENS, reranker=model),
        book,
    )


def paper_generator(book: PriceBook) -> pl.DataFrame:
    """The paper's table of generator input costs (§3.2.1), by this product's calculator.

    Returns:
        chunks (10..30), then $ per 1,000 queries of three generators at 500 tokens a chunk.
    """
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


def _figure(found: CostBreakdown) -> go.Figure:
    fig = theme.figure(
        [_bar(line, found) for line in found.lines], x="$ per 1,000 queries", height=_height(found)
    )
    fig.update_layout(barmode="stack", bargap=0.5, legend={"traceorder": "normal"})
    fig.update_xaxes(rangemode="tozero", tickprefix="$", exponentformat="none")
    fig.update_yaxes(showticklabels=False)
    return fig


def _height(found: CostBreakdown) -> int:
    """Room for a line of the legend per stage; Plotly gives a legend half of a chart before it scrolls."""
    return max(180, 60 * len(found.lines))


def _bar(line: CostLine, found: CostBreakdown) -> go.Bar:
    """A stage's part of the bar; one of unknown cost has no length and says so in the legend."""
    amount = None if line.usd_per_query is None else 1000 * line.usd_per_query
    colour, pattern = _LOOKS[line.stage]
    share = f", {share_of(amount, found.per_1k)}" if amount is not None and found.per_1k else ""
    told = text.escape(f"{line.stage}: {line.item}\n{text.usd(amount)}{share}")
    return go.Bar(
        name=text.escape(f"{line.stage} {text.usd(amount, '')}{share}"),
        x=[amount],
        y=[""],
        orientation="h",
        showlegend=True,
        marker={"color": colour, "pattern": {"shape": pattern, "fillmode": "replace"}},
        hovertext=[told.replace("\n", "<br>")],
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
