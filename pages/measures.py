from typing import cast

import polars as pl
import streamlit as st

from core.metrics import Measure
from core.stats.correlation import KINDS, Kind
from core.store import Snapshot
from core.ui import show
from core.ui.cache import cached
from core.ui.pages import pick_section
from core.ui.pick import pick_listed
from core.ui.view import current_view, end, find_view
from core.views.measures import charts, outcome, words
from core.views.measures.outcome import MEASURES, REFERENCE, Samples, samples
from core.views.measures.worked import cutoff_of, example, worked
from core.views.pages import PAGES
from core.views.text import plain
from core.views.workspace.scope import Scope
from core.views.workspace.view import View

MEASURE_COLUMNS = {
    name: show.text_column(name, width=width)
    for name, width in (("measure", 150), ("says", 640), ("better", 80))
}
MORE_OF_MEASURES = {
    name: show.text_column(name.replace("_", " "))
    for name in (
        "formula",
        "parameters",
        "range",
        "ceiling",
        "needs",
        "not_applicable",
        "elsewhere",
        "defined_in",
    )
}
COEFFICIENT_COLUMNS = {
    "measure": show.text_column("measure", "At each answer's own K; see the list of measures."),
    "value": show.score_column("correlation"),
    "low": show.score_column("low", "Lower end of the 95 % bootstrap interval over queries."),
    "high": show.score_column("high", "Upper end of the 95 % bootstrap interval over queries."),
    "n": show.number_column("n", 0, "Answers."),
    "queries": show.number_column("queries", 0),
    "note": show.text_column("note"),
}
CELL = {"name": show.text_column("stack", width=290), "ratio": show.number_column("K / Np", 1)}
SPREAD_COLUMNS = {
    **CELL,
    "grade": show.text_column("grade"),
    "n": show.number_column("n", 0, "Answers."),
    "share": show.percent_column("share", "Of the answers of the stack at this K / Np."),
}

read_samples = cached("Scoring what the answers were written from…", entries=8)(samples)


@cached("Correlating…")
def correlated(
    data: Snapshot, scope: Scope, kind: Kind, segment: str
) -> tuple[pl.DataFrame, list[outcome.Curve]]:
    """Coefficients and alpha curves of a segment."""
    found = cast(Samples, read_samples(data, scope))  # the page ends where there are none
    keep = outcome.segments(found.rows)[segment]
    curves = outcome.curves(found, kind, keep)
    return outcome.correlations(found, kind, keep, curves), curves


def all_measures() -> None:
    """What a measure means, and how to work it out by hand."""
    measure = pick_measure(find_view())
    sentence, origin = words.headline(measure)
    show.head(sentence)
    by_hand(measure)
    definition(measure, origin)
    st.subheader("All measures", anchor=False)
    show.table(words.measure_table(), "measures", MEASURE_COLUMNS, more=MORE_OF_MEASURES)
    st.caption(words.CEILINGS)


def pick_measure(view: View | None) -> Measure:
    """The measure to explain: chosen or typed, with cutoff and parameters; at first the workspace's."""
    own = view.quality.measure if view else None
    offered = words.choices()
    first = offered.index(own.name) if own else 0
    return Measure.parse(
        st.selectbox("Measure", offered, index=first, key="ref", bind="query-params",
                     accept_new_options=True, help=words.PICK)
    )  # fmt: skip


def by_hand(measure: Measure) -> None:
    """The example and the steps that lead to the value."""
    made = worked(measure)
    st.subheader(f"Worked example: {plain(str(made.measure))}", anchor=False)
    left, right = st.columns([1, 2])
    columns = {name: show.text_column(name) for name in ("passage", "source")}
    columns |= {name: show.number_column(name, 0) for name in ("rank", "grade")}
    left.dataframe(
        example().to_arrow(), hide_index=True, placeholder="–", key="example", column_config=columns
    )
    left.caption(words.example(cutoff_of(made.measure)))
    for step in made.steps:
        right.markdown(plain(step))
    right.code(words.result(made.measure), language=None, wrap_lines=True)


def definition(measure: Measure, origin: str) -> None:
    """Formula, when there is no value, what other tools do, and the parameters."""
    info = measure.info
    st.markdown(f"**At K:** {plain(info.formula)}")
    st.markdown(f"**Not applicable:** {plain(info.na or 'never.')}")
    if info.differs:
        st.markdown(f"**Elsewhere:** {plain(info.differs)}")
    st.caption(plain(origin))
    if info.params:
        rows = words.parameter_table(measure)
        st.dataframe(rows.to_arrow(), hide_index=True, width="stretch", key="parameters")


def predicting_answers() -> None:
    """Which retrieval measure predicts how good the generated answer is."""
    view = current_view()
    found = read_samples(view.snapshot, view.scope)
    if found is None:
        show.head(*words.NO_ANSWERS)
        st.page_link("pages/add.py", label="Import results", icon=":material/upload:")
        end()
    offered = outcome.segments(found.rows)
    which, how = st.columns(2)
    segment = pick_listed("Answers", offered, "seg", place=which)
    kind = pick_listed("Correlation", KINDS, "corr", place=how, help=words.KINDS)
    table, curves = correlated(view.snapshot, view.scope, kind, segment)
    sentence, more = words.answer(found, table, kind, segment)
    show.head(sentence, caveats=more)
    show.chart(charts.bars(table, kind), "correlations", alt=sentence)
    show.table(table, "correlations", COEFFICIENT_COLUMNS)
    over_alpha(curves, kind)
    by_ratio(found, kind, offered[segment])


def over_alpha(curves: list[outcome.Curve], kind: Kind) -> None:
    """The coefficient of F and T at every alpha, in words, as lines and as a table."""
    st.subheader("How F and T depend on alpha", anchor=False)
    for curve in curves:
        st.markdown(plain(words.in_words(curve)))
    show.chart(charts.alpha_figure(curves, kind), "alpha", alt="Correlation over alpha")
    with st.expander("Table"):
        names = {curve.name: show.score_column(curve.name) for curve in curves}
        show.table(outcome.curve_table(curves), "alpha", {"alpha": show.number_column("alpha"), **names})


def by_ratio(found: Samples, kind: Kind, keep: pl.Expr) -> None:
    """Where a measure predicts the grade better than another does, and the grades: by run and K / Np."""
    st.subheader("Two measures, by run and K / Np", anchor=False)
    left, middle, right = st.columns(3)
    measure = pick_listed("Measure", MEASURES, "against", usual="T", place=left)
    other = pick_listed("Minus the coefficient of", MEASURES, "less", usual=REFERENCE, place=middle)
    least = right.number_input(
        "Answers per cell, at least", 10, 10_000, outcome.SEGMENT_SIZE, 10, key="least", bind="query-params"
    )
    cells = outcome.differences(found, kind, keep, (measure, other), least)
    if cells.is_empty():
        st.info(words.too_few(least))
        return
    show.chart(charts.heatmap(cells, measure, other), "against", alt=f"{measure} minus {other}")
    columns = {
        **CELL,
        "n": show.number_column("n", 0, "Answers."),
        "value": show.score_column(measure),
        "reference": show.score_column(f"minus: {other}"),
        "difference": show.score_column("difference"),
    }
    show.table(cells, "against", columns)
    st.subheader("Grades by K / Np", anchor=False)
    st.caption(f"Cells as above; the chart shows the first {charts.PANELS} runs, the table all.")
    grades = outcome.distribution(found, keep, least)
    show.chart(charts.distribution_figure(grades), "spread", alt="Share of every grade against K / Np")
    show.table(grades.select(list(SPREAD_COLUMNS)), "spread", SPREAD_COLUMNS)


PAGE = PAGES["measures"]
SECTIONS = dict(zip(PAGE.sections, (all_measures, predicting_answers), strict=True))
SECTIONS[pick_section(PAGE)]()
