"""The monthly bill: its cards, its stages, what moves it, and the tables of prices behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from core.prices import PriceBook
from core.prices.calculator import CostInputs
from core.ui import cache, show
from core.views import text
from core.views.cost import words
from core.views.cost.bill import (
    PAPER_BOOK,
    PAPER_TOKENS,
    CostView,
    paper_generator,
    paper_rerank,
    readable,
    swings,
)
from core.views.cost.stack import Start
from core.views.text import plain


def cards(made: CostView, recorded: pl.DataFrame) -> None:
    """Show what a thousand queries and a month cost, by the calculator and by what the stack recorded."""
    whole = float(recorded["usd_per_1k"].sum()) if recorded.height else None
    known = whole is not None and not recorded["usd_per_1k"].null_count()
    how = ", ".join(sorted(set(recorded["basis"].drop_nulls()))) if recorded.height else "no usage recorded"
    show.cards(
        ("Per 1,000 queries", text.usd(made.found.per_1k, ""), "all stages"),
        ("Per month", text.usd(made.found.per_month, ""), f"{made.found.queries_per_month:,.0f} queries"),
        (
            "As recorded",
            text.usd(whole if known else None, ""),
            f"per 1,000 queries, at the book's prices · {how}",
        ),
    )


def stages(made: CostView, start: Start | None, recorded: pl.DataFrame) -> None:
    """Show the stages as a bar and as a table, and what the stack recorded."""
    if made.bill.is_empty():
        return
    show.chart(made.figure, "cost", alt=words.answer(made.found))
    rows = readable(made.bill).with_columns(pl.col("reason").replace("", None))
    show.table(rows, "bill", BILL, more=BILL_MORE, placeholder="unknown")
    if recorded.height and start:
        with st.expander("What the stack recorded, item by item"):
            st.caption(plain(words.recorded_answer(recorded, start.name)))
            show.table(readable(recorded), "recorded", RECORDED, placeholder="unknown")


def moving_it(inputs: CostInputs, book: PriceBook) -> None:
    """Show what each input and price does to the monthly bill."""
    percent = st.slider("Range of every input (± %)", 5, 90, 25, 5, key="swing", bind="query-params")
    moved = swings(inputs, book, share=percent / 100)
    st.markdown(plain(moved.answer))
    if not moved.rows.is_empty():
        show.chart(moved.figure, "tornado", alt=moved.answer)
        show.table(moved.rows, "sensitivity_of_the_bill", SWINGS, more=SWINGS_MORE)


def tables(book: PriceBook) -> None:
    """Show the paper's tables and the price book, folded."""
    with st.expander("The paper's prices, by the same calculator"):
        st.caption(
            f"published · CLQ paper, arXiv:2511.09545, §3.2.1; price book {PAPER_BOOK}; {PAPER_TOKENS} "
            "tokens per candidate and chunk; $ per 1,000 queries. Changed prices do not touch it."
        )
        published = cache.books()[PAPER_BOOK]
        tables = (
            ("Reranker, by K candidates", "K", "paper_rerank", paper_rerank(published)),
            ("Generator input, by chunks sent", "chunks", "paper_generator", paper_generator(published)),
        )
        for place, (title, first, name, rows) in zip(st.columns([5, 6]), tables, strict=True):
            with place:
                st.caption(title)
                priced = {model: show.number_column(model, 2, prefix="$") for model in rows.columns[1:]}
                show.table(rows, name, {rows.columns[0]: show.number_column(first, 0), **priced})
    with st.expander(plain(f"Price book {book.title}")):
        st.caption(
            "Books of your own are TOML files in the folder that CLQ_PRICES names, else in price-books "
            "beside the store."
        )
        rows = book.frame().with_columns(
            pl.when(pl.col("confirmed")).then(pl.lit("yes")).otherwise(pl.lit("no")).alias("confirmed"),
            pl.col("unit").replace(words.BUYS),
        )
        show.table(rows, "prices", BOOK, more=BOOK_MORE)


def _exact(label: str, help_text: str = "") -> Any:
    """Return a column of numbers of six significant digits: none becomes 0, from millionths to millions."""
    return st.column_config.NumberColumn(label, format="%.6g", help=help_text or None)


BILL: Mapping[str, Any] = {
    "stage": show.text_column("stage", width=120),
    "item": show.text_column("item"),
    "usd_per_1k": show.dollar_column("$ / 1k", "Per 1,000 queries."),
    "usd_per_month": show.dollar_column("$ / month"),
    "units_per_query": _exact("units / query", "Tokens, search units, requests or time."),
    "unit": show.text_column("unit"),
    "basis": show.text_column(
        "known how", "measured, imported or published: recorded by the stack; else modelled."
    ),
    "reason": show.text_column("unknown because"),
}
BILL_MORE: Mapping[str, Any] = {
    "unit_price": show.text_column("unit price", "Amount and currency / number of units it buys.", 145),
    "usd_per_query": show.dollar_column("$ / query"),
    "confirmed": show.text_column("confirmed", "yes: two independent public pages state it."),
    "looked_up": st.column_config.DateColumn("looked up"),
    "source": show.text_column("source", width="large"),
    "note": show.text_column("note"),
}
_OF_RECORDED = ("stage", "item", "units_per_query", "unit", "usd_per_1k", "basis", "reason")
RECORDED: Mapping[str, Any] = {name: BILL[name] for name in _OF_RECORDED}
SWINGS: Mapping[str, Any] = {
    "input": show.text_column("input", width=230),
    "width": show.dollar_column("moves by $", "The monthly bill, from one end of the range to the other."),
    "usd_low": show.dollar_column("$ at lower", "Monthly bill where the input is lower."),
    "usd_high": show.dollar_column("$ at higher", "Monthly bill where the input is higher."),
}
SWINGS_MORE: Mapping[str, Any] = {
    "low": _exact("lower"),
    "value": _exact("as it is"),
    "high": _exact("higher"),
}
BOOK: Mapping[str, Any] = {
    "item": show.text_column("item"),
    "provider": show.text_column("provider"),
    "unit": show.text_column("unit"),
    "price": _exact("price"),
    "per": st.column_config.NumberColumn("per", format="localized"),
    "currency": show.text_column("currency"),
    "confirmed": show.text_column("confirmed"),
    "looked_up": st.column_config.DateColumn("looked up"),
}
BOOK_MORE: Mapping[str, Any] = {
    "source": show.text_column("source", width="large"),
    "note": show.text_column("note"),
}
