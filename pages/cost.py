from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from core.prices import PriceBook
from core.prices.calculator import INDEX_KINDS, NO_INDEX, CostInputs, calculator
from core.ui import cache, prices, show
from core.ui.pick import BY_RULE, listed, still_offered
from core.ui.sections import bill
from core.ui.view import View, find_view
from core.views.cost import words
from core.views.cost.bill import cost as bill_of
from core.views.cost.stack import NONE, Start, basis_by_stage, models, start_from
from core.views.cost.stack import recorded as recorded_by
from core.views.text import plain

TYPED = "no stack: type the amounts"
# Inputs that a stack fills, by field of `CostInputs`, with their setting of the address.
KEYS: Mapping[str, str] = {
    "embedder": "emb",
    "query_tokens": "tokq",
    "cpu_ms": "cpu",
    "reranker": "rer",
    "candidates": "cand",
    "tokens_per_candidate": "tokc",
}
# What an input is where neither a person nor a stack says.
USUAL: Mapping[str, Any] = {
    "emb": "voyage-3.5",
    "tokq": 20.0,
    "cpu": 0.0,
    "rer": "rerank-2.5",
    "cand": 50,
    "tokc": 500.0,
    "chunks": 10,
    "toks": 500.0,
    "prompt": 0.0,
    "out": 300.0,
    "gpu": 0.0,
    "npas": 0,
    "tokp": 500.0,
    "spread": 0,
    "dims": 1024,
    "copies": 1,
}
LARGEST = 1_000_000_000


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
    still_offered("base", options)
    name = st.selectbox(
        "Stack",
        options,
        key="base",
        bind="query-params",
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
    known = models(cache.books().values())
    asked: dict[str, Any] = {}
    search, ranking, answering, more = st.columns(4)
    with search:
        asked["embedder"] = _model("Embedder", "emb", known.embedders, start)
        off = asked["embedder"] is None
        asked["query_tokens"] = _number("Query tokens", "tokq", start, off=off)
        asked["cpu_ms"] = _number("Local machine ms", "cpu", start, about="Processor time, all stages.")
    with ranking:
        asked["reranker"] = _model("Reranker", "rer", known.rerankers, start)
        off = asked["reranker"] is None
        asked["candidates"] = _number("K candidates", "cand", start, off=off)
        asked["tokens_per_candidate"] = _number(
            "Tokens per candidate",
            "tokc",
            start,
            off=off,
            about="Query + chunk + metadata, as the reranker bills it. A reranker billed by search unit "
            "counts up to 100 candidates as one, and a longer candidate once per started 500 tokens.",
        )
    with answering:
        asked["generator"] = _model("Generator", "gen", known.generators, None)
        off = asked["generator"] is None
        asked["chunks_sent"] = _number("Chunks sent", "chunks", off=off)
        asked["tokens_per_chunk"] = _number("Tokens per chunk", "toks", off=off)
    with more:
        asked["prompt_tokens"] = _number("Prompt tokens", "prompt", off=off, about="Beside the chunks.")
        asked["output_tokens"] = _number("Output tokens", "out", off=off, about="Of the answer.")
        asked["gpu_ms"] = _number("Local graphics ms", "gpu", about="Processor time of a GPU per query.")
    with st.expander("Corpus and index", expanded="npas" in st.query_params):
        return asked | ask_corpus()


def ask_corpus() -> dict[str, Any]:
    """Ask about the corpus, which is embedded once and kept in an index."""
    size, once, index, copied = st.columns(4)
    with size:
        passages = _number("Passages", "npas", about="0: the corpus is left out.")
        off = not passages
        tokens = _number("Tokens per passage", "tokp", off=off)
    with once:
        spread = _number(
            "Spread over queries", "spread", off=off, about="That its embedding is paid by; 0: left out."
        )
        dim = _number("Dimensions", "dims", off=off)
    with index:
        kind = st.selectbox(
            "Index",
            [*INDEX_KINDS, NO_INDEX],
            index=list(INDEX_KINDS).index("hnsw-f32"),
            key="idx",
            bind="query-params",
            disabled=off,
            help="Bytes of vectors (4 per number in float32, 1 as int8) and links of the graph (M = 32).",
        )
    with copied:
        copies = _number("Copies in memory", "copies", off=off)
    names = ("passages", "tokens_per_passage", "spread_queries", "dim", "index", "copies")
    return dict(zip(names, (passages, tokens, spread, dim, kind, copies), strict=True))


def _number(label: str, key: str, start: Start | None = None, *, off: bool = False, about: str = "") -> float:
    kind = type(USUAL[key])
    usual: float = _usual(key, start)
    value: float | None = st.number_input(
        label,
        min_value=kind(0),
        max_value=kind(LARGEST),
        value=None,
        format="%d" if kind is int else "%.6g",
        key=key,
        bind="query-params",
        placeholder=f"{usual:,.10g}",
        disabled=off,
        help=about or None,
    )
    return usual if value is None else value


def _usual(key: str, start: Start | None) -> Any:
    field = next((field for field, name in KEYS.items() if name == key), "")
    amount = start.amounts.get(field) if start else None
    return type(USUAL[key])(amount.value) if amount else USUAL[key]


def _model(label: str, key: str, known: tuple[str, ...], start: Start | None) -> str | None:
    """A list of priced models and of what the stack uses, priced or not; "none" bills nothing."""
    usual = NONE if key == "gen" else _usual(key, start)
    options = [NONE, *known, *({usual} - {NONE, *known})]
    still_offered(key, [None, *options])
    name = st.selectbox(
        label,
        options,
        index=None,
        key=key,
        bind="query-params",
        placeholder=usual,
        help="none: not part of the stack, or run on your own machine (local machine ms).",
    )
    picked = usual if name is None else name
    return None if picked == NONE else picked


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
values = {field: getattr(inputs, field) or NONE for field in KEYS}
st.caption(plain(words.provenance(start, values)))

now = prices.in_force(cache.books()[chosen_book]) if view is None else view.book
own = cache.books()[now.name]
with priced.expander("Prices of what it uses", expanded=True):
    tried = prices.ask(own, now, [line.price for line in calculator(inputs, own).lines if line.price])
    if view:
        prices.say_choice(view, tried)
made = bill_of(inputs, tried, basis_by_stage(start, values))
recorded = recorded_cost(view, run_id, own) if view and run_id else pl.DataFrame()
with head:
    show.head(words.lead(made.found, start))
    bill.cards(made, recorded)
    show.caveats(words.caveats(inputs, tried, made))
with result:
    bill.stages(made, start, recorded)
with moving:
    st.subheader("What moves the monthly bill", anchor=False)
    bill.moving_it(inputs, tried)
bill.tables(tried)
