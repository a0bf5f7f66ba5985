"""Widgets of the cost calculator: its inputs, all of them in the address, and the price table to edit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
import streamlit as st

from core.prices import PriceBook
from core.prices.calculator import NO_INDEX, CostInputs
from core.prices.units import INDEX_KINDS
from core.ui import cache, show
from core.ui.pick import listed
from core.ui.view import View
from core.views import text
from core.views.cost.amounts import NONE, Start, basis_by_stage, models, provenance
from core.views.cost.page import PRICES_SHOWN, price_changes

_TYPED = "no stack: type the amounts"
_KEYS: Mapping[str, str] = {
    "embedder": "emb",
    "query_tokens": "tokq",
    "cpu_ms": "cpu",
    "reranker": "rer",
    "candidates": "cand",
    "tokens_per_candidate": "tokc",
}
"""Inputs that a stack fills, by field of `CostInputs`, with their setting of the address."""
_DEFAULTS: Mapping[str, Any] = {
    "queries": 1_000_000,
    "emb": "voyage-3.5",
    "tokq": 20.0,
    "cpu": 0.0,
    "rer": "rerank-2.5",
    "cand": 50,
    "tokc": 500.0,
    "gen": NONE,
    "chunks": 10,
    "toks": 500.0,
    "prompt": 0.0,
    "out": 300.0,
    "gpu": 0.0,
    "npas": 0,
    "tokp": 500.0,
    "spread": 0,
    "idx": "hnsw-f32",
    "dims": 1024,
    "copies": 1,
    "swing": 25,
}
_LARGEST = 1_000_000_000
_EDITS = "_price_edits"


@dataclass(frozen=True)
class Asked:
    """What the calculator is asked.

    Attributes:
        inputs: What is sent where, and how often.
        book: The prices to use.
        basis: How the amounts of a stage are known, by stage.
        start: The run_id and the name of the stack that was started from, if any.
    """

    inputs: CostInputs
    book: PriceBook
    basis: Mapping[str, str]
    start: tuple[str, str] | None


def ask(view: View | None) -> Asked:
    """The calculator's inputs in four columns and a row, and below them where each amount comes from.

    Args:
        view: The workspace, whose stacks can be started from; None on an empty store, which has no sidebar
            either: the price book is then chosen here.
    """
    volume, search, ranking, answer = st.columns(4)
    with volume:
        queries = _number("Queries per month", "queries", step=100_000)
        start = _start(view) if view else None
        book = view.book if view else _book()
    known = models(cache.books().values())
    with search:
        asked = _search(known.embedders, start)
    with ranking:
        asked |= _ranking(known.rerankers, start)
    with answer:
        asked |= _generator(known.generators)
    with st.expander("Corpus and index", expanded="npas" in st.query_params):
        asked |= _corpus()
    inputs = CostInputs(queries_per_month=queries, **asked)
    values = {field: getattr(inputs, field) or NONE for field in _KEYS}
    st.caption(text.plain(provenance(start, values)))
    run = _run_of(view, start.name) if view and start else None
    return Asked(inputs, book, basis_by_stage(start, values), run)


def ask_range() -> float:
    """The share by which the sensitivity changes every input."""
    percent: int = st.slider(
        "Range of every input (± %)", 5, 90, _DEFAULTS["swing"], 5, key="swing", bind="query-params"
    )
    return percent / 100


def _corpus() -> dict[str, Any]:
    size, once, index, machine = st.columns(4)
    with size:
        passages = _number("Passages", "npas", step=100_000, help_text="0: the corpus is left out.")
        tokens = _number("Tokens per passage", "tokp", off=not passages)
    with once:
        spread = _number(
            "Spread over queries",
            "spread",
            off=not passages,
            step=1_000_000,
            help_text="Over how many queries the one-time embedding of the corpus is spread; 0: left out.",
        )
        dim = _number("Dimensions", "dims", off=not passages)
    with index:
        kind: str = st.selectbox(
            "Index",
            [*INDEX_KINDS, NO_INDEX],
            index=list(INDEX_KINDS).index(_DEFAULTS["idx"]),
            key="idx",
            bind="query-params",
            disabled=not passages,
            help="Bytes of vectors (4 per number in float32, 1 as int8) and links of the graph (M = 32).",
        )
        copies = _number("Copies in memory", "copies", off=not passages)
    with machine:
        gpu = _number("Local graphics ms", "gpu", step=1.0, help_text="Processor time of a GPU per query.")
    return {
        "passages": passages,
        "tokens_per_passage": tokens,
        "spread_queries": spread,
        "dim": dim,
        "index": kind,
        "copies": copies,
        "gpu_ms": gpu,
    }


def _run_of(view: View, name: str) -> tuple[str, str]:
    row = view.table.row(by_predicate=pl.col("name") == name, named=True)
    return row["run_id"], name


def _search(known: tuple[str, ...], start: Start | None) -> dict[str, Any]:
    embedder = _model("Embedder", "emb", known, start)
    return {
        "embedder": embedder,
        "query_tokens": _number("Query tokens", "tokq", off=embedder is None),
        "cpu_ms": _number(
            "Local machine ms", "cpu", step=1.0, help_text="Processor time per query, all stages."
        ),
    }


def _ranking(known: tuple[str, ...], start: Start | None) -> dict[str, Any]:
    reranker = _model("Reranker", "rer", known, start)
    off = reranker is None
    return {
        "reranker": reranker,
        "candidates": _number("K candidates", "cand", off=off, step=10),
        "tokens_per_candidate": _number(
            "Tokens per candidate",
            "tokc",
            off=off,
            help_text="Query + chunk + metadata, as the reranker bills it. A reranker billed by search unit "
            "counts up to 100 candidates as one, and a longer candidate once per started 500 tokens.",
        ),
    }


def _generator(known: tuple[str, ...]) -> dict[str, Any]:
    generator = _model("Generator", "gen", known, None)
    left, right = st.columns(2)
    off = generator is None
    with left:
        chunks = _number("Chunks", "chunks", off=off, help_text="How many chunks are sent.")
        prompt = _number(
            "Prompt", "prompt", off=off, help_text="Tokens of instructions and question beside the chunks."
        )
    with right:
        tokens = _number("Tokens each", "toks", off=off, help_text="Tokens per chunk.")
        output = _number("Output", "out", off=off, help_text="Tokens of the answer.")
    return {
        "generator": generator,
        "chunks_sent": chunks,
        "tokens_per_chunk": tokens,
        "prompt_tokens": prompt,
        "output_tokens": output,
    }


def _number(label: str, key: str, *, off: bool = False, step: float = 1, help_text: str = "") -> float:
    default = _DEFAULTS[key]
    kind = type(default)
    value: float = st.number_input(
        label,
        min_value=kind(0),
        max_value=kind(_LARGEST),
        value=default,
        step=kind(step),
        format="%d" if kind is int else "%.6g",
        key=key,
        bind="query-params",
        disabled=off,
        help=help_text or None,
    )
    return value


def _model(label: str, key: str, known: tuple[str, ...], start: Start | None) -> str | None:
    """A list of priced models and of what the starting stack uses, priced or not; "none" bills nothing."""
    amounts = start.amounts if start else {}
    own = {str(amounts[field].value) for field, name in _KEYS.items() if name == key and field in amounts}
    options = [NONE, *known, *sorted(own - {NONE, *known})]
    chosen: str = st.selectbox(
        label,
        options,
        index=options.index(_DEFAULTS[key]) if _DEFAULTS[key] in options else 0,
        key=key,
        bind="query-params",
        help="none: not part of the stack, or run on your own machine (local machine ms).",
    )
    return None if chosen == NONE else chosen


def _book() -> PriceBook:
    return cache.books()[st.selectbox("Prices", list(cache.books()), key="book", bind="query-params")]


def _start(view: View) -> Start | None:
    names = listed(view.table, "base", view.decision.quality)
    chosen = st.selectbox(
        "Start from a stack",
        [_TYPED, *names],
        key="base",
        bind="query-params",
        on_change=_fill,
        args=(view,),
        help="Fills in its models, K, and the tokens and machine time it recorded; change them as you like.",
    )
    return None if chosen == _TYPED else _started(view, chosen)


def _started(view: View, name: str) -> Start:
    stack = view.table.row(by_predicate=pl.col("name") == name, named=True)
    wanted = ("run_id", "name", "embedder", "reranker", "candidates")
    return cache.start(view, tuple((column, stack[column]) for column in wanted))


def _fill(view: View) -> None:
    """Write a stack's amounts into the inputs; what it did not record goes back to its default."""
    chosen = st.session_state["base"]
    if chosen == _TYPED:
        return
    amounts = _started(view, chosen).amounts
    for field, key in _KEYS.items():
        default = _DEFAULTS[key]
        st.session_state[key] = type(default)(amounts[field].value) if field in amounts else default


def edit_prices(book: PriceBook) -> dict[tuple[str, str], float]:
    """The book's prices as a table whose amounts can be edited for a what-if on this page.

    Returns:
        The changed prices by item and unit.
    """
    rows = book.frame().select(PRICES_SHOWN)
    edited = st.data_editor(
        rows,
        key=f"{_EDITS}_{book.name}_{st.session_state.get(_EDITS, 0)}",
        hide_index=True,
        width="stretch",
        disabled=[name for name in rows.columns if name != "price"],
        column_config={
            "price": st.column_config.NumberColumn("price ✎", min_value=0.0, required=True, format="%.6g"),
            "per": st.column_config.NumberColumn("per", format="localized"),
            "looked_up": st.column_config.DateColumn("looked up"),
            "source": show.text_column("source", width="large"),
        },
    )
    return price_changes(book, edited)


def reset_prices() -> None:
    """Forget the what-if prices: the table starts anew under another key."""
    st.session_state[_EDITS] = st.session_state.get(_EDITS, 0) + 1
