"""Widgets and cached reads of the latency page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from core.ui import cache, show
from core.ui.generation import timed_answers
from core.ui.pick import pick_stacks
from core.ui.view import View
from core.views import theme
from core.views.latency import charts as latency_charts
from core.views.latency import page as latency
from core.views.latency.charts import Shape
from core.views.latency.generation import fitted, in_words
from core.views.text import plain
from core.views.what_if.deeper import latency_by_depth
from core.views.workspace.latency_sample import modelled_ms
from core.views.workspace.scope import Latency, Scope


def percentiles(view: View) -> pl.DataFrame:
    """Percentiles of every stack; see `core.views.latency.page.percentile_table`."""
    path = str(cache.store().path)
    return _percentiles(path, view.snapshot.revision, view.scope, view.latency, view.table)


@st.cache_resource(show_spinner="Reading the timings…", max_entries=32)
def _percentiles(
    path: str, revision: int, scope: Scope, asked: Latency, _table: pl.DataFrame
) -> pl.DataFrame:
    del path, scope  # part of the key
    return latency.percentile_table(cache.snapshot(revision), _table, asked)


def pick(view: View, rows: pl.DataFrame) -> list[str]:
    """Draw the choice of the stacks in the charts."""
    usual = latency.usual(rows, view.table, view.decision)
    return pick_stacks(view.table, view.decision, "lats", usual=usual, most=6)


def depths(view: View) -> pl.DataFrame:
    """The reranker against K; see `core.views.what_if.deeper.latency_by_depth`."""
    return _depths(str(cache.store().path), view.snapshot.revision, view.scope, view.decision.jitter_ms)


@st.cache_resource(show_spinner=False, max_entries=32)
def _depths(path: str, revision: int, scope: Scope, jitter_ms: float) -> pl.DataFrame:
    del path  # part of the key
    return latency_by_depth(cache.snapshot(revision), scope, jitter_ms=jitter_ms)


def stages(view: View, names: list[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Times per query and stage of some stacks, and their percentiles."""
    runs = view.table.filter(pl.col("name").is_in(names))
    samples = latency.stage_samples(view.snapshot, runs, view.latency)
    return samples, latency.stage_table(view.snapshot, runs, samples)


def draw_stages(view: View, names: list[str], samples: pl.DataFrame, rows: pl.DataFrame) -> None:
    """The stages of the chosen stacks, as ECDF or box, and as a table."""
    st.subheader("Stage by stage", anchor=False)
    shape: Shape = st.segmented_control(
        "Drawn as",
        ["ECDF", "box"],
        default="ECDF",
        required=True,
        key="shape",
        bind="query-params",
        help="ECDF: share of the queries answered within so many ms. box: quartiles, whiskers, outliers.",
    )
    if samples.is_empty():
        st.caption("No times per query for these stacks: only the figures of the table are known.")
    else:
        colours = theme.colours_for(names)
        jitter = view.decision.jitter_ms
        drawn = latency_charts.stages(samples, colours, shape, jitter)
        show.chart(drawn, "stages", alt="Latency of every stage of the chosen stacks")
        st.caption(
            f"Grey band: what cannot be told from the first stack's median, {jitter:.3g} ms to either side. "
            "Repeats of a query count once, by their median."
        )
    show.table(rows, "stages", STAGE_COLUMNS)


def draw_depths(rows: pl.DataFrame) -> None:
    """The reranker against K; nothing where no stack has a timed reranker."""
    if rows.is_empty():
        return
    st.subheader("The reranker against K", anchor=False)
    show.chart(latency_charts.by_depth(rows), "reranker_by_depth", alt="Reranker latency against K")
    st.caption(
        "A line per reranker and embedder, fitted to the depths that agree; dimensions together. Ringed: "
        "further from the line than the jitter and 10 % (CLQ paper §5.4)."
    )
    show.table(latency_charts.depth_lines(rows), "reranker_lines", LINE_COLUMNS)


def draw_generator(view: View, names: list[str]) -> None:
    """The generator against its prompt, where it was timed or is modelled."""
    timed = timed_answers(view.snapshot.revision, view.scope)
    model = view.latency.generation
    if timed.is_empty() and model is None:
        st.caption(
            "First token and generation are unknown here. Choose Latency of: end-to-end in the sidebar to "
            "give the generator's speed, or import timings of the stages first_token and generate."
        )
        return
    st.subheader("The generator against its prompt", anchor=False)
    runs = view.table.filter(pl.col("name").is_in(names))
    added = modelled_ms(view.snapshot, runs, model).join(runs.select("run_id", "name"), on="run_id")
    found = fitted(timed)
    if not timed.is_empty():
        st.markdown(plain(in_words(found)))
    drawn = latency_charts.generator(timed, model, added["prompt"].to_list())
    show.chart(drawn, "generator", alt="Generation time against prompt tokens")
    st.caption("Dashed: modelled, without the spread of single answers. Dotted: prompts of the stacks shown.")
    if model is not None:
        first = [model.speed.first_token_ms(prompt) for prompt in added["prompt"]]
        table = added.with_columns(pl.Series("first", first, dtype=pl.Float64), basis=pl.lit("modelled"))
        show.table(table, "generation", GENERATION_COLUMNS)


def _percentile_columns(note: str) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for each in latency.PERCENTILES:
        columns[each] = show.number_column(f"{each} ms", 2, "Over queries; empty = unknown or withheld.")
        columns[f"{each}_low"] = show.number_column(f"{each} low", 2, "95 % order-statistic interval.")
        columns[f"{each}_high"] = show.number_column(f"{each} high", 2, "95 % order-statistic interval.")
    reasons = {f"{each}_{note}": show.text_column(f"{each} note") for each in latency.PERCENTILES}
    return {**columns, **reasons}


COLUMNS: Mapping[str, Any] = {
    "name": show.text_column("stack", width=290),
    "n": show.number_column("n", 0, "Queries."),
    "basis": show.text_column("figures are"),
    **_percentile_columns("note"),
}
"""The columns of the table of stacks."""

_STAGE = _percentile_columns("reason")
del _STAGE["p50_reason"]
STAGE_COLUMNS: Mapping[str, Any] = {
    "name": show.text_column("stack", width=250),
    "stage": show.text_column("stage"),
    "n": show.number_column("n", 0, "Queries."),
    "basis": show.text_column("figures are"),
    **_STAGE,
}
LINE_COLUMNS: Mapping[str, Any] = {
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
GENERATION_COLUMNS: Mapping[str, Any] = {
    "name": show.text_column("stack", width=290),
    "prompt": show.number_column("prompt tokens", 0),
    "first": show.number_column("first token ms", 0),
    "added": show.number_column("whole answer ms", 0),
    "basis": show.text_column("figures are"),
}
