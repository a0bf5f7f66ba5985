import streamlit as st

from core.stats.correlation import KINDS
from core.ui import measures, outcome, show
from core.ui.pages import PAGES, pick_section
from core.ui.view import current_view, end, find_view
from core.views.measures import outcome as page
from core.views.measures.reference import headline, measure_table
from core.views.measures.worked import worked


def all_measures() -> None:
    """What a measure means, and how to work it out by hand."""
    place = st.container()
    measure = measures.pick(find_view())
    with place:
        show.head(*headline(measure))
    measures.definition(measure)
    measures.by_hand(worked(measure))

    st.subheader("All measures", anchor=False)
    rows = measure_table()
    show.table(rows, "measures", {name: show.text_column(name.replace("_", " ")) for name in rows.columns})
    st.caption(
        "PROC[X] is X of the best order of the candidate pool, %PROC[X] the share of it that is reached."
    )


def foretelling_answers() -> None:
    """Which retrieval measure foretells how good the generated answer is."""
    view = current_view()
    found = outcome.samples(view)
    if found is None:
        show.head(
            "No run here has answers with grades.",
            "Import rankings with graded answers: retrieval-response files, or an export with the table "
            "answers.",
        )
        st.page_link("pages/add.py", label="Import results", icon=":material/upload:")
        end()

    place = st.container()
    offered = page.segments(found.rows)
    which, how = st.columns(2)
    segment = which.selectbox("Answers", list(offered), key="seg", bind="query-params")
    kind = how.selectbox(
        "Correlation",
        KINDS,
        key="corr",
        bind="query-params",
        help="spearman: of ranks. pearson: of values. kendall-b, kendall-c: of pairs, two ways to treat "
        "ties.",
    )
    table, curves = outcome.correlations(view, kind, segment)
    sentence, details = page.answer(found, table, kind, segment)
    with place:
        show.head(sentence, details)
    outcome.coefficients(table, kind, sentence)
    outcome.over_alpha(curves, kind)
    outcome.against_reference(found, kind, offered[segment])


PAGE = PAGES["measures"]
SECTIONS = dict(zip(PAGE.sections, (all_measures, foretelling_answers), strict=True))
SECTIONS[pick_section(PAGE)]()
