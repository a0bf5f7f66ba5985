from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl
import streamlit as st

from core.prices import PriceBook
from core.prices.calculator import INDEX_KINDS, NO_INDEX, CostInputs, calculator
from core.ui import cache, prices, show
from core.ui.pick import listed, pick_listed, still_offered
from core.ui.view import find_view
from core.views import text
from core.views.ask import BY_RULE
from core.views.cost import bill, words
from core.views.cost.bill import PAPER_BOOK, PAPER_TOKENS, CostView
from core.views.cost.stack import NONE, Start, basis_by_stage, models, start_from
from core.views.cost.stack import recorded as recorded_by
from core.views.text import plain
from core.views.workspace.view import View

TYPED = "no stack: type the amounts"
LARGEST = 1_000_000_000


class Field(NamedTuple):
    """How an input of the calculator is asked for; it is called as in `words.INPUTS`."""

    key: str  # its setting of the address
    usual: Any  # what it is where neither a person nor a stack says
    needs: str = ""  # the input without which it means nothing
    about: str = ""  # its help


FIELDS: Mapping[str, Field] = {
    "embedder": Field("emb", "voyage-3.5"),
    "query_tokens": Field("tokq", 20.0, "embedder"),
    "cpu_ms": Field("cpu", 0.0, about="CPU time, all stages."),
    "reranker": Field("rer", "rerank-2.5"),
    "candidates": Field("cand", 50, "reranker"),
    "tokens_per_candidate": Field(
        "tokc",
        500.0,
        "reranker",
        "Query + chunk + metadata, as the reranker bills it. A reranker billed by search unit counts up to "
        "100 candidates as one, and a longer candidate once per started 500 tokens.",
    ),
    "generator": Field("gen", NONE),
    "chunks_sent": Field("chunks", 10, "generator"),
    "tokens_per_chunk": Field("toks", 500.0, "generator"),
    "prompt_tokens": Field("prompt", 0.0, "generator", "Beside the chunks."),
    "output_tokens": Field("out", 300.0, "generator", "Of the answer."),
    "gpu_ms": Field("gpu", 0.0, about="GPU time per query."),
    "passages": Field("npas", 0, about="0: the corpus is left out."),
    "tokens_per_passage": Field("tokp", 500.0, "passages"),
    "spread_queries": Field("spread", 0, "passages", "That its embedding is paid by; 0: left out."),
    "dim": Field("dims", 1024, "passages"),
    "copies": Field("copies", 1, "passages"),
}
PER_QUERY = (
    ("embedder", "query_tokens", "cpu_ms"),
    ("reranker", "candidates", "tokens_per_candidate"),
    ("generator", "chunks_sent", "tokens_per_chunk"),
    ("prompt_tokens", "output_tokens", "gpu_ms"),
)
CORPUS = (("passages", "tokens_per_passage"), ("spread_queries", "dim"), ("index",), ("copies",))


@cache.cached(entries=64)
def started(view: View, run_id: str) -> Start:
    """Return what the calculator takes from a stack."""
    return start_from(view.snapshot, view.table.row(by_predicate=pl.col("run_id") == run_id, named=True))


@cache.cached(entries=64)
def recorded_cost(view: View, run_id: str, book: PriceBook) -> pl.DataFrame:
    """Return what a run's recorded usage costs."""
    return recorded_by(view.snapshot, run_id, book)


def ask_start(view: View | None) -> tuple[Start | None, str | None]:
    """Ask which stack to start from; what it fills in, and its run."""
    if view is None:
        return None, None
    options = [BY_RULE, TYPED, *listed(view.table, "base", view.decision.quality)]
    name = pick_listed(
        "Stack",
        options,
        "base",
        help="Its models, K, and the tokens and machine time that it recorded are what is priced; other "
        "amounts can be typed below.",
    )
    row = view.decision.chosen if name == BY_RULE else None
    if name not in (BY_RULE, TYPED):
        row = view.table["name"].index_of(name)
    if row is None:
        return None, None
    run_id = str(view.table["run_id"][row])
    return started(view, run_id), run_id


def ask_amounts(start: Start | None) -> dict[str, Any]:
    """Ask what is sent where; a field that is left empty is as the stack has it."""
    asked: dict[str, Any] = {}
    ask_columns(PER_QUERY, asked, start, models(cache.books().values()))
    with st.expander("Corpus and index", expanded=FIELDS["passages"].key in st.query_params):
        ask_columns(CORPUS, asked, None, {})
    return asked


def ask_columns(
    columns: Sequence[Sequence[str]],
    asked: dict[str, Any],
    start: Start | None,
    offered: Mapping[str, tuple[str, ...]],
) -> None:
    """Draw fields side by side and note what they say; `offered` are the priced models, by field."""
    for place, fields in zip(st.columns(len(columns)), columns, strict=True):
        with place:
            for name in fields:
                if name == "index":
                    asked[name] = ask_index(off=not asked["passages"])
                elif name in offered:
                    asked[name] = ask_model(name, offered[name], start)
                else:
                    needs = FIELDS[name].needs
                    asked[name] = ask_number(name, start, off=bool(needs) and not asked[needs])


def ask_index(*, off: bool) -> str:
    """Draw which index keeps the corpus."""
    kinds = [*INDEX_KINDS, NO_INDEX]
    about = "Bytes of vectors (4 per number in float32, 1 as int8) and links of the graph (M = 32)."
    usually = kinds.index("hnsw-f32")
    return st.selectbox("Index", kinds, usually, key="idx", bind="query-params", help=about, disabled=off)


def usual(name: str, start: Start | None) -> Any:
    """What an input is as long as nobody types it."""
    amount, field = start.amounts.get(name) if start else None, FIELDS[name]
    return type(field.usual)(amount.value) if amount else field.usual


def ask_number(name: str, start: Start | None, *, off: bool) -> float:
    """Draw the field of a number."""
    field, otherwise = FIELDS[name], usual(name, start)
    kind = type(field.usual)
    value: float | None = st.number_input(
        words.label(name),
        kind(0),
        kind(LARGEST),
        None,
        format="%d" if kind is int else "%.6g",
        key=field.key,
        bind="query-params",
        placeholder=f"{otherwise:,.10g}",
        disabled=off,
        help=field.about or None,
    )
    return otherwise if value is None else value


def ask_model(name: str, known: tuple[str, ...], start: Start | None) -> str | None:
    """Draw a list of priced models and of what the stack uses, priced or not; "none" bills nothing."""
    otherwise = usual(name, start)
    options = [NONE, *known, *({otherwise} - {NONE, *known})]
    still_offered(FIELDS[name].key, [None, *options])
    picked = st.selectbox(
        words.label(name),
        options,
        None,
        key=FIELDS[name].key,
        bind="query-params",
        placeholder=otherwise,
        help="none: not part of the stack, or run on your own machine (local machine ms).",
    )
    return None if (picked or otherwise) == NONE else picked or otherwise


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
    rows = bill.readable(made.bill).with_columns(pl.col("reason").replace("", None))
    show.table(rows, "bill", BILL, more=BILL_MORE, placeholder="unknown")
    if recorded.height and start:
        with st.expander("What the stack recorded, item by item"):
            st.caption(plain(words.recorded_answer(recorded, start.name)))
            show.table(bill.readable(recorded), "recorded", RECORDED, placeholder="unknown")


def moving_it(inputs: CostInputs, book: PriceBook) -> None:
    """Show what each input and price does to the monthly bill."""
    percent = st.slider("Range of every input (± %)", 5, 90, 25, 5, key="swing", bind="query-params")
    moved = bill.swings(inputs, book, share=percent / 100)
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
            ("Reranker, by K candidates", "K", "paper_rerank", bill.paper_rerank(published)),
            ("Generator input, by chunks sent", "chunks", "paper_generator", bill.paper_generator(published)),
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
    "looked_up": show.date_column("looked up"),
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
    "looked_up": show.date_column("looked up"),
}
BOOK_MORE: Mapping[str, Any] = {
    "source": show.text_column("source", width="large"),
    "note": show.text_column("note"),
}

view = find_view()
top = st.columns([3, 1])
with top[0]:
    start, run_id = ask_start(view)
with top[1]:
    queries = st.number_input(
        "Queries per month", 0, LARGEST, 1_000_000, 100_000, key="queries", bind="query-params"
    )
    if view is None:  # there is no frame to choose it in
        books = cache.books()
        chosen_book = st.selectbox("Prices", list(books), key="book", bind="query-params")
head, priced, result, moving = (st.container() for _ in range(4))
st.subheader("What is sent", anchor=False)
inputs = CostInputs(queries_per_month=queries, **ask_amounts(start))
values = {name: getattr(inputs, name) or NONE for name in words.FILLED}
st.caption(plain(words.provenance(start, values)))

now = prices.in_force(cache.books()[chosen_book]) if view is None else view.book
own = cache.books()[now.name]
with priced.expander("Prices of what it uses", expanded=True):
    tried = prices.ask(own, now, [line.price for line in calculator(inputs, own).lines if line.price])
    if view:
        prices.say_choice(view, tried)
made = bill.cost(inputs, tried, basis_by_stage(start, values))
recorded = recorded_cost(view, run_id, own) if view and run_id else pl.DataFrame()
with head:
    show.head(words.lead(made.found, start))
    cards(made, recorded)
    show.caveats(words.caveats(inputs, tried, made))
with result:
    stages(made, start, recorded)
with moving:
    st.subheader("What moves the monthly bill", anchor=False)
    moving_it(inputs, tried)
tables(tried)
