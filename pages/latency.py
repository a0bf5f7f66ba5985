from typing import Any

import polars as pl
import streamlit as st

from core.store import Snapshot
from core.ui import show
from core.ui.cache import cached
from core.ui.pages import pick_section
from core.ui.pick import pick_one, pick_stacks
from core.ui.settings import timed_answers
from core.ui.view import current_view, end
from core.views import theme
from core.views.latency import charts, indexes, page
from core.views.pages import PAGES
from core.views.text import plain
from core.views.what_if.deeper import latency_by_depth
from core.views.workspace.latencies import modelled_ms
from core.views.workspace.view import Place, View

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
    rows = indexes.dollars(known, price, busy / 100)
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


PERCENTILES: dict[str, Any] = {
    each: show.number_column(f"{each} ms", 2, "Over queries; empty = unknown or withheld.")
    for each in page.PERCENTILES
}
ENDS = {
    f"{each}_{end_of}": show.number_column(f"{each} {end_of}", 2, "95 % order-statistic interval.")
    for each in page.PERCENTILES
    for end_of in ("low", "high")
}


def notes(*names: str) -> dict[str, Any]:
    """The columns that say why a percentile is not known."""
    return {name: show.text_column(name.replace("_", " ")) for name in names}


STACK = {"name": show.text_column("stack", width=290)}
SAMPLE = {"n": show.number_column("n", 0, "Queries."), "basis": show.text_column("figures are")}
LINE_COLUMNS = {
    "reranker": show.text_column("reranker"),
    "embedder": show.text_column("embedder"),
    "slope": show.number_column("ms per candidate", 2),
    "intercept": show.number_column("ms at K = 0", 0),
    "stacks": show.number_column("stacks", 0),
    "depths": show.number_column("depths", 0, "Different K."),
    "breaks_at": show.number_column("leaves the line from K", 0),
    "worst_ms": show.number_column("by up to ms", 0),
    "reason": show.text_column("no line because"),
}
GENERATION_COLUMNS = {
    **STACK,
    "prompt": show.number_column("prompt tokens", 0),
    "first": show.number_column("first token ms", 0),
    "added": show.number_column("whole answer ms", 0),
    "basis": show.text_column("figures are"),
}


@cached("Reading the timings…")
def percentiles(view: View) -> pl.DataFrame:
    """The percentiles of every stack."""
    return page.percentile_table(view.snapshot, view.table, view.latency)


@cached()
def depths(view: View, jitter_ms: float) -> pl.DataFrame:
    """The reranker against K."""
    return latency_by_depth(view.snapshot, view.scope, jitter_ms=jitter_ms)


@cached("Reading the timings…")
def stages_of(view: View, names: tuple[str, ...]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Times per query and stage of some stacks, and their percentiles."""
    runs = view.table.filter(pl.col("name").is_in(names))
    samples = page.stage_samples(view.snapshot, runs, view.latency)
    return samples, page.stage_table(view.snapshot, runs, samples)


def where_the_time_goes(view: View, names: list[str]) -> None:
    """The stages of some stacks: one after another, query by query, and as a table."""
    samples, rows = stages_of(view, tuple(names))
    parts = page.path_stages(rows, view.latency)
    if parts.is_empty():
        st.caption(page.NO_STAGES)
    else:
        show.chart(charts.stage_bars(parts, names), "stage_bars", alt=page.MEDIANS)
    st.subheader("Query by query", anchor=False)
    if samples.is_empty():
        st.caption(page.NO_SAMPLES)
    else:
        shape: charts.Shape = pick_one("Drawn as", ["ECDF", "box"], "shape", help=page.SHAPES)
        drawn = charts.distributions(samples, theme.colours_for(names), shape, view.decision.jitter_ms)
        show.chart(drawn, "stages", alt="Latency of every stage of the stacks shown")
        st.caption(page.REPEATS)
    columns = {**STACK, "stage": show.text_column("stage"), **PERCENTILES, **SAMPLE}
    show.table(rows, "stages", columns, more={**ENDS, **notes("p95_reason", "p99_reason")})


def reranker_by_k(view: View, _: list[str]) -> None:
    """How the reranker grows with the candidate depth."""
    rows = depths(view, view.decision.jitter_ms)
    if rows.is_empty():
        st.caption(page.NO_LINES)
        return
    show.chart(charts.by_depth(rows), "reranker_by_depth", alt="Reranker latency against K")
    st.caption(page.LINES)
    show.table(charts.depth_lines(rows), "reranker_lines", LINE_COLUMNS)


def generator(view: View, names: list[str]) -> None:
    """The generator against its prompt, where it was timed or is modelled."""
    timed, model = timed_answers(view.snapshot, view.scope), view.latency.generation
    if timed.is_empty() and model is None:
        st.caption(page.NO_GENERATOR)
        return
    runs = view.table.filter(pl.col("name").is_in(names))
    added = modelled_ms(view.snapshot, runs, model).join(runs.select("run_id", "name"), on="run_id")
    if not timed.is_empty():
        st.markdown(plain(page.speed(page.fitted(timed))))
    drawn = charts.generator(timed, model, added["prompt"].to_list())
    show.chart(drawn, "generator", alt="Generation time against prompt tokens")
    st.caption(page.MODELLED)
    if model is not None:
        first = [model.speed.first_token_ms(prompt) for prompt in added["prompt"]]
        table = added.with_columns(pl.Series("first", first, dtype=pl.Float64), basis=pl.lit("modelled"))
        show.table(table, "generation", GENERATION_COLUMNS)


def every_stack(view: View, _: list[str]) -> None:
    """The percentiles of all stacks, the fastest first."""
    columns = {**STACK, **PERCENTILES, **SAMPLE}
    show.table(
        percentiles(view), "latency", columns, more={**ENDS, **notes("p50_note", "p95_note", "p99_note")}
    )


PAGE = PAGES["latency"]
SECTIONS = dict(
    zip(PAGE.sections, (where_the_time_goes, reranker_by_k, generator, every_stack), strict=False)
)
view = current_view()
section = pick_section(PAGE)
if section == PAGE.sections[-1]:
    draw_indexes(view)
    end()
known = percentiles(view)
if known["p50"].null_count() == known.height:
    show.head(*page.unknown(known, view.quality))
    end()
place = st.container()
usual = page.usual(known, view.table, view.decision)
names = pick_stacks(view.table, view.decision, "lats", usual=usual, most=6)
row, stack = (frame.row(by_predicate=pl.col("name") == names[0], named=True) for frame in (known, view.table))
parts = page.path_stages(stages_of(view, tuple(names))[1], view.latency)
jitter = view.decision.jitter_ms
caveats = page.caveats(known, depths(view, jitter), jitter)
show.head(page.answer(row, parts, view.quality, stack["quality"]), caveats=caveats)
with place:
    show.cards(*page.cards(row, view.latency))
SECTIONS[section](view, names)
