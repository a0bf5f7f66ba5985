import streamlit as st

from core.clq.correlation import KINDS
from core.ui import outcome, show
from core.ui.view import current_view
from core.views.outcome import page
from core.views.outcome.samples import MEASURES, REFERENCE
from core.views.text import plain

view = current_view()
tells = "What this tells you: which retrieval measure foretells how good the generated answer is."
found = outcome.samples(view)
if found is None:
    show.head(
        tells,
        "No run here has answers with grades.",
        "Import rankings with graded answers: retrieval-response files, or an export with the table answers.",
    )
    st.page_link("pages/import.py", label="Import results", icon=":material/upload:")
    st.stop()

place = st.container()
offered = page.segments(found.rows)
which, how = st.columns(2)
segment = which.selectbox("Answers", list(offered), key="seg", bind="query-params")
kind = how.selectbox(
    "Correlation",
    KINDS,
    key="corr",
    bind="query-params",
    help="spearman: of ranks. pearson: of values. kendall-b, kendall-c: of pairs, two ways to treat ties.",
)
table, curves = outcome.correlations(view, kind, segment)
sentence, details = page.answer(found, table, kind, segment)
with place:
    show.head(tells, sentence, details)
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

st.subheader("How F and T depend on alpha", anchor=False)
for curve in curves:
    st.markdown(plain(page.in_words(curve)))
show.chart(page.alpha_figure(curves, kind), "alpha", alt="Correlation over alpha")
with st.expander("Table"):
    names = {curve.name: show.score_column(curve.name) for curve in curves}
    show.table(page.curve_table(curves), "alpha", {"alpha": show.number_column("alpha"), **names})

st.subheader(f"Against {REFERENCE}, by run and K / Np", anchor=False)
left, right = st.columns(2)
rest = [name for name in MEASURES if name != REFERENCE]
measure = left.selectbox("Measure", rest, index=rest.index("T"), key="against", bind="query-params")
least = right.number_input(
    "Answers per cell, at least", 10, 10_000, page.SEGMENT_SIZE, 10, key="least", bind="query-params"
)
cells = page.differences(found, kind, offered[segment], measure, least)
if cells.is_empty():
    st.info(f"No cell has {least} answers; lower the bound to see smaller, less certain ones.")
    st.stop()
show.chart(page.heatmap(cells, measure), "against", alt=f"{measure} minus {REFERENCE}")
show.table(
    cells,
    "against",
    {
        "name": show.text_column("stack", width=290),
        "ratio": show.number_column("K / Np", 1),
        "n": show.number_column("n", 0, "Answers."),
        "value": show.score_column(measure),
        "reference": show.score_column(REFERENCE),
        "difference": show.score_column("difference"),
    },
)
