"""The page on measures and outcomes: what it reads, kept while data and question are the same; its parts."""

from __future__ import annotations

import polars as pl
import streamlit as st

from core.stats.correlation import Kind
from core.ui import cache, show
from core.ui.view import View
from core.views.measures import outcome as page
from core.views.measures import spread
from core.views.measures.outcome import Curve
from core.views.measures.samples import MEASURES, REFERENCE, Samples
from core.views.measures.samples import samples as read_samples
from core.views.text import plain
from core.views.workspace.scope import Scope


def samples(view: View) -> Samples | None:
    """The graded answers of the workspace; see `core.views.measures.samples.samples`."""
    return _samples(str(cache.store().path), view.snapshot.revision, view.scope)


@st.cache_resource(show_spinner="Scoring what the answers were written from…", max_entries=8)
def _samples(path: str, revision: int, scope: Scope) -> Samples | None:
    del path  # part of the key
    return read_samples(cache.snapshot(revision), scope)


def correlations(view: View, kind: Kind, segment: str) -> tuple[pl.DataFrame, list[Curve]]:
    """Coefficients and alpha curves of a segment; see `core.views.measures.outcome`."""
    return _correlations(str(cache.store().path), view.snapshot.revision, view.scope, kind, segment)


@st.cache_resource(show_spinner="Correlating…", max_entries=32)
def _correlations(
    path: str, revision: int, scope: Scope, kind: Kind, segment: str
) -> tuple[pl.DataFrame, list[Curve]]:
    found = _samples(path, revision, scope)
    if found is None:
        return pl.DataFrame(), []
    keep = page.segments(found.rows)[segment]
    curves = page.curves(found, kind, keep)
    return page.correlations(found, kind, keep, curves), curves


def coefficients(table: pl.DataFrame, kind: Kind, sentence: str) -> None:
    """How strongly each measure goes with the grade, as bars and as a table."""
    show.chart(page.bars(table, kind), "correlations", alt=sentence)
    show.table(
        table,
        "correlations",
        {
            "measure": show.text_column("measure", "At each answer's own K; see the list of measures."),
            "value": show.score_column(kind),
            "low": show.score_column("low", "Lower end of the 95 % bootstrap interval over queries."),
            "high": show.score_column("high", "Upper end of the 95 % bootstrap interval over queries."),
            "n": show.number_column("n", 0, "Answers."),
            "queries": show.number_column("queries", 0),
            "note": show.text_column("note"),
        },
    )


def over_alpha(curves: list[Curve], kind: Kind) -> None:
    """The coefficient of F and T at every alpha, in words, as lines and as a table."""
    st.subheader("How F and T depend on alpha", anchor=False)
    for curve in curves:
        st.markdown(plain(page.in_words(curve)))
    show.chart(page.alpha_figure(curves, kind), "alpha", alt="Correlation over alpha")
    with st.expander("Table"):
        names = {curve.name: show.score_column(curve.name) for curve in curves}
        show.table(page.curve_table(curves), "alpha", {"alpha": show.number_column("alpha"), **names})


def against_reference(found: Samples, kind: Kind, keep: pl.Expr) -> None:
    """Where a measure foretells the grade better than another does: by run and by K / Np."""
    st.subheader("Two measures, by run and K / Np", anchor=False)
    left, middle, right = st.columns(3)
    measure = left.selectbox(
        "Measure", MEASURES, index=MEASURES.index("T"), key="against", bind="query-params"
    )
    reference = middle.selectbox(
        "Less the coefficient of", MEASURES, index=MEASURES.index(REFERENCE), key="less", bind="query-params"
    )
    least = right.number_input(
        "Answers per cell, at least", 10, 10_000, page.SEGMENT_SIZE, 10, key="least", bind="query-params"
    )
    cells = page.differences(found, kind, keep, (measure, reference), least)
    if cells.is_empty():
        st.info(f"No cell has {least} answers; lower the bound to see smaller, less certain ones.")
        return
    show.chart(page.heatmap(cells, measure, reference), "against", alt=f"{measure} minus {reference}")
    show.table(
        cells,
        "against",
        {
            "name": show.text_column("stack", width=290),
            "ratio": show.number_column("K / Np", 1),
            "n": show.number_column("n", 0, "Answers."),
            "value": show.score_column(measure),
            "reference": show.score_column(f"less: {reference}"),
            "difference": show.score_column("difference"),
        },
    )
    _spread(spread.distribution(found, keep, least))


def _spread(table: pl.DataFrame) -> None:
    """How the grades are spread at every K / Np."""
    st.subheader("Grades by K / Np", anchor=False)
    st.caption(f"Cells as above; the chart shows the first {spread.PANELS} runs, the table all.")
    show.chart(spread.distribution_figure(table), "spread", alt="Share of every grade against K / Np")
    columns = {
        "name": show.text_column("stack", width=290),
        "ratio": show.number_column("K / Np", 1),
        "grade": show.text_column("grade"),
        "n": show.number_column("n", 0, "Answers."),
        "share": show.percent_column("share", "Of the answers of the stack at this K / Np."),
    }
    show.table(table.select(list(columns)), "spread", columns)
