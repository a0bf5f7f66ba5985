import streamlit as st

from core.stats.correlation import KINDS
from core.ui import outcome, show
from core.ui.view import current_view, end
from core.views.measures import outcome as page

tells = "What this tells you: which retrieval measure foretells how good the generated answer is."
view = current_view(tells)
found = outcome.samples(view)
if found is None:
    show.head(
        tells,
        "No run here has answers with grades.",
        "Import rankings with graded answers: retrieval-response files, or an export with the table answers.",
    )
    st.page_link("pages/import.py", label="Import results", icon=":material/upload:")
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
    help="spearman: of ranks. pearson: of values. kendall-b, kendall-c: of pairs, two ways to treat ties.",
)
table, curves = outcome.correlations(view, kind, segment)
sentence, details = page.answer(found, table, kind, segment)
with place:
    show.head(tells, sentence, details)
outcome.coefficients(table, kind, sentence)
outcome.over_alpha(curves, kind)
outcome.against_reference(found, kind, offered[segment])
