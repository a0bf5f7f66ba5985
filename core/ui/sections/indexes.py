"""Section Indexes of the page Latency: recall against latency and throughput, measured here or imported."""

from __future__ import annotations

import polars as pl
import streamlit as st

from core.store import Snapshot
from core.ui import show
from core.ui.cache import cached
from core.ui.view import Place
from core.views.latency import indexes

COLUMNS = {
    "index": show.text_column("index", width=230),
    "basis": show.text_column("figures are"),
    "effort": show.number_column("ef or probes", 0, "What a search looks at."),
    "k": show.number_column("K", 0, "Neighbours asked for."),
    "clients": show.number_column("clients", 0, indexes.CLIENTS_HELP),
    "recall": show.score_column("recall", indexes.RECALL_HELP),
    "n": show.number_column("n", 0, "Queries behind the recall."),
    "p50_ms": show.number_column("p50 ms", 2),
    "p95_ms": show.number_column("p95 ms", 2),
    "p99_ms": show.number_column("p99 ms", 2),
    "queries_per_second": show.number_column("queries / s", 0, "Of all clients together."),
    "usd_per_1k": show.dollar_column("$ / 1k", indexes.DOLLARS_HELP),
}
MORE = {
    "recall_low": show.score_column("recall low", "95 % interval over queries."),
    "recall_high": show.score_column("recall high", "95 % interval over queries."),
    "searches": show.number_column("searches", 0, "Behind the latencies."),
    "build_s": show.number_column("build s", 1),
    "bytes": show.number_column("bytes", 0, "Memory or disk."),
    "passages": show.number_column("passages", 0),
    "where": show.text_column("measured on", width=260),
}


@cached("Reading the indexes…")
def known_of(snapshot: Snapshot) -> pl.DataFrame:
    """What is known of indexes in the store."""
    return indexes.figures(snapshot)


def draw_indexes(place: Place) -> None:
    """Draw what every index finds and how fast."""
    known = known_of(place.snapshot)
    if known.is_empty():
        show.head(indexes.NONE)
        st.markdown(indexes.HOW)
        return
    line = st.container(horizontal=True, vertical_alignment="bottom")
    benches = indexes.benches(known)
    if len(benches) > 1:
        bench = line.selectbox("Measured", benches, key="ixat", bind="query-params", width=330)
        known = known.filter((pl.col("basis") == indexes.IMPORTED) | (pl.col("where") == bench))
    depths = known["k"].drop_nulls().unique().sort().to_list()
    asking = known["clients"].drop_nulls().unique().sort().to_list()
    with line:
        k = st.selectbox("K", depths, key="ixk", bind="query-params", width=110)
        clients = st.selectbox(
            "Clients", asking, key="ixc", bind="query-params", width=110, help=indexes.CLIENTS_HELP
        )
        price = st.number_input(
            "Machine, $ per hour", 0.0, None, None, 0.05, format="%.4g", key="ixusd", bind="query-params",
            width=180, help=indexes.DOLLARS_HELP, placeholder="unknown",
        )  # fmt: skip
        busy = st.number_input(
            "Utilisation, %",
            1.0,
            100.0,
            50.0,
            5.0,
            format="%.0f",
            key="ixuse",
            bind="query-params",
            width=150,
        )
    rows = indexes.dollars(known, indexes.Machine(price, busy / 100))
    some = rows.filter((pl.col("k") == k) & (pl.col("clients").is_null() | (pl.col("clients") == clients)))
    show.head(indexes.answer(some, k, clients))
    speed = indexes.drawn(some, indexes.QPS, "queries per second")
    show.chart(speed, "indexes_speed", alt="Recall against queries per second of every index")
    tail = "p50_ms" if some["p50_ms"].null_count() < some.height else "p99_ms"
    latency = indexes.drawn(some, tail, f"latency {tail.removesuffix('_ms')} (ms)")
    latency.update_layout(showlegend=False)
    show.chart(latency, "indexes_latency", alt="Recall against latency of every index")
    st.caption(indexes.SCALES)
    show.table(rows, "indexes", COLUMNS, more=MORE)
