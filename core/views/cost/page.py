"""The cost calculator: a bill in words, as a bar and as a table, beside the price tables of the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
import polars as pl

from core.prices import Price, PriceBook
from core.prices.cost import CostBreakdown, CostInputs, CostLine, calculator
from core.records import Basis
from core.views import text, theme

PAPER_BOOK = "clq-paper"
PAPER_TOKENS = 500
"""Tokens per candidate and per chunk in the paper's tables."""
PRICES_SHOWN = (
    "item",
    "provider",
    "unit",
    "price",
    "per",
    "currency",
    "confirmed",
    "looked_up",
    "source",
    "note",
)
"""Columns of the price table on the page, in order."""
Changes = Mapping[tuple[str, str], float]
"""What-if prices, by item and unit."""

_STAGES: Mapping[str, tuple[str, str, str]] = {
    "embed": ("the embedding call", theme.OKABE_ITO[2], "\\"),
    "rerank": ("the reranker call", theme.OKABE_ITO[0], ""),
    "generate-input": ("the generator's input", theme.OKABE_ITO[1], "/"),
    "generate-output": ("the generator's output", theme.OKABE_ITO[3], "x"),
    "machine": ("local machine time", theme.NEUTRAL, "."),
    "gpu": ("local graphics time", theme.OKABE_ITO[7], "-"),
    "embed-corpus": ("the embedding of the corpus", theme.OKABE_ITO[4], "|"),
    "index": ("the index in memory", theme.OKABE_ITO[5], "+"),
    "storage": ("the index on disk", theme.OKABE_ITO[6], "\\"),
}
"""Stages of the bill in order, with their words, colour and pattern."""
_BILL = {
    "unit_price": pl.String(),
    "source": pl.String(),
    "looked_up": pl.Date(),
    "confirmed": pl.String(),
    "note": pl.String(),
}


@dataclass(frozen=True)
class CostView:
    """The page's content.

    Attributes:
        answer: Cost per 1,000 queries and per month, and what makes most of it; or why it is unknown.
        details: Which prices it rests on, and which of them nobody confirmed.
        what_if: Which prices were changed on the page; empty when none was.
        figure: One stacked bar, $ per 1,000 queries by stage.
        bill: stage, item, unit, units_per_query, unit_price, usd_per_query, usd_per_1k, usd_per_month (null =
            unknown), reason, source, looked_up, confirmed (yes, no or what-if), note and basis.
    """

    answer: str
    details: str
    what_if: str
    figure: go.Figure
    bill: pl.DataFrame


def cost(
    inputs: CostInputs, book: PriceBook, changes: Changes, basis: Mapping[str, str] | None = None
) -> CostView:
    """Work out what a stack costs.

    Args:
        inputs: What is sent where, and how often.
        book: Prices.
        changes: Prices to use instead, as for `PriceBook.with_changes`.
        basis: How the amounts of a stage are known, by stage; the others are modelled.

    Returns:
        The view.

    Raises:
        InputError: If an amount is negative or not a number.
        PriceError: If a changed price is.
    """
    changed = book.with_changes(changes)
    found = calculator(inputs, changed)
    return CostView(
        answer=_answer(found),
        details=" ".join(filter(None, (_details(found, changed, changes), _spread(inputs, found)))),
        what_if=_what_if(book, changes),
        figure=_figure(found),
        bill=_bill(found, changes).with_columns(
            pl.col("stage").replace_strict(basis or {}, default=str(Basis.MODELLED)).alias("basis")
        ),
    )


def price_changes(book: PriceBook, edited: pl.DataFrame) -> dict[tuple[str, str], float]:
    """The prices that differ from the book in an edited copy of its table.

    Args:
        book: The book.
        edited: `PriceBook.frame` with other amounts in the column price; an emptied one counts as unchanged.

    Returns:
        New amounts by (item, unit).
    """
    both = edited.select("item", "unit", "price").join(
        book.frame().select("item", "unit", "price"), on=["item", "unit"], suffix="_before"
    )
    rows = both.filter(pl.col("price") != pl.col("price_before"))
    return {(item, unit): price for item, unit, price, _ in rows.iter_rows()}


def paper_rerank(book: PriceBook) -> pl.DataFrame:
    """The paper's table of rerank costs (§3.2.1), by this product's calculator.

    Args:
        book: The paper's prices.

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

    Args:
        book: The paper's prices.

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


def _answer(found: CostBreakdown) -> str:
    if not found.lines:
        return "$0: no billed model and no machine time is chosen."
    month = f"at {text.count(round(found.queries_per_month), 'query', 'queries')}"
    if found.per_1k is None:
        known = sum(line.usd_per_query or 0.0 for line in found.lines)
        rest = f" The other stages cost {text.usd(1000 * known, '')} per 1,000 queries." if known else ""
        return f"Unknown: {'; '.join(dict.fromkeys(found.unknown))}.{rest}"
    named = " + ".join(dict.fromkeys(line.item for line in found.lines))
    monthly = f"{text.usd(found.per_month, '')} a month {month}"
    answer = f"{named}: {text.usd(found.per_1k, '')} per 1,000 queries, {monthly}"
    largest = max(found.lines, key=lambda line: line.usd_per_query or 0.0)
    if not largest.usd_per_query or not found.per_query:
        return f"{answer}."
    what = _STAGES[largest.stage][0]
    if len(found.lines) == 1:
        return f"{answer}, all of it {what}."
    return f"{answer}; {_share(largest.usd_per_query, found.per_query)} of it is {what}."


def _share(part: float, whole: float) -> str:
    """A share in percent that does not round a remainder away: 0 and 100 % mean nothing and all."""
    share = part / whole
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return "> 99.9 %" if 0.9995 <= share < 1 else text.percent(share)


def _details(found: CostBreakdown, book: PriceBook, changes: Changes) -> str:
    used = _prices(found)
    if not used:
        return ""
    dates = sorted({price.looked_up.isoformat() for price in used})
    sentences = [f"Prices: book {book.name}, looked up {' to '.join(dict.fromkeys((dates[0], dates[-1])))}."]
    sentences += [
        f"Not confirmed: {price.item}. {price.note}"
        for price in used
        if not price.confirmed and (price.item, price.unit) not in changes
    ]
    return " ".join(sentences)


def _spread(inputs: CostInputs, found: CostBreakdown) -> str:
    """What the corpus costs once, and over how many queries that is spread."""
    line = next((line for line in found.lines if line.stage == "embed-corpus"), None)
    if line is None or line.usd_per_query is None:
        return ""
    once = text.usd(line.usd_per_query * inputs.spread_queries, "")
    return (
        f"Embedding the corpus costs {once} once, spread over "
        f"{text.count(round(inputs.spread_queries), 'query', 'queries')}."
    )


def _prices(found: CostBreakdown) -> list[Price]:
    return list(dict.fromkeys(line.price for line in found.lines if line.price is not None))


def _what_if(book: PriceBook, changes: Changes) -> str:
    prices = [(book.find(item, unit), amount) for (item, unit), amount in changes.items()]
    return "; ".join(
        f"{price.item} ({price.unit}) ${price.price:.10g} → ${amount:.10g} per {price.per:,.10g}"
        for price, amount in prices
        if price is not None
    )


def _figure(found: CostBreakdown) -> go.Figure:
    fig = theme.figure(
        [_bar(line, found) for line in found.lines], x="$ per 1,000 queries", height=_height(found)
    )
    fig.update_layout(barmode="stack", bargap=0.5, legend={"traceorder": "normal"})
    fig.update_xaxes(rangemode="tozero", tickprefix="$")
    fig.update_yaxes(showticklabels=False)
    return fig


def _height(found: CostBreakdown) -> int:
    """Room for a line of the legend per stage; Plotly gives a legend half of a chart before it scrolls."""
    return max(260, 60 * len(found.lines))


def _bar(line: CostLine, found: CostBreakdown) -> go.Bar:
    """A stage's part of the bar; one of unknown cost has no length and says so in the legend."""
    amount = None if line.usd_per_query is None else 1000 * line.usd_per_query
    _, colour, pattern = _STAGES[line.stage]
    share = f", {_share(amount, found.per_1k)}" if amount is not None and found.per_1k else ""
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


def _bill(found: CostBreakdown, changes: Changes) -> pl.DataFrame:
    columns = [_price_columns(line.price, changes) for line in found.lines]
    return pl.concat([found.frame(), pl.DataFrame(columns, schema=_BILL)], how="horizontal")


def _price_columns(price: Price | None, changes: Changes) -> dict[str, object]:
    if price is None:
        return dict.fromkeys(_BILL)
    state = "yes" if price.confirmed else "no"
    return {
        "unit_price": f"{price.price:.10g} {price.currency} / {price.per:,.10g}",
        "source": price.source,
        "looked_up": price.looked_up,
        "confirmed": "what-if" if (price.item, price.unit) in changes else state,
        "note": price.note,
    }
