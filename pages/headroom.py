import streamlit as st

from core.ui import show
from core.ui.view import current_view, end
from core.views.headroom.page import MIXED, conventions, headroom

tells = "What this tells you: whether better retrieval or better ordering would raise the quality."
view = current_view(tells)
offered = conventions(view.table)
if not offered:
    show.head(
        tells,
        f"No stack here has a ceiling for {view.quality.name}.",
        "A ceiling (PROC) needs rankings with their candidate pool, or published ceilings at this cutoff. "
        "Choose another measure or cutoff in the sidebar.",
    )
    end()

place = st.container()
convention = st.selectbox(
    "Candidate pool convention",
    offered,
    key="pool",
    bind="query-params",
    help="What the final order could choose from. dense@50: the first 50 of a dense search. A ceiling means "
    "something only together with its convention (CLQ paper §5.1, A.8).",
)
found = headroom(view.table, view.quality, convention, view.decision.chosen)
if found is None:
    end()
with place:
    show.head(tells, found.answer, found.details)
if found.mixed:
    st.warning(
        f"“{MIXED}” puts several pool conventions on one chart: compare ceilings only within one of them.",
        icon=":material/warning:",
    )
show.chart(found.figure, "headroom", alt=found.answer)
st.caption(
    "1 = actual + ordering headroom (the pool has it, the order does not bring it up) + retrieval headroom "
    "(the pool does not have it). %PROC = mean actual / mean ceiling, both over the same n queries."
)
show.table(
    found.table,
    "headroom",
    {
        "name": show.text_column("stack", width=290),
        "pool": show.text_column("pool"),
        "quality": show.score_column("actual"),
        "ordering": show.score_column("ordering headroom"),
        "retrieval": show.score_column("retrieval headroom"),
        "proc": show.score_column("PROC", "The best ordering of the candidate pool."),
        "pct_proc": show.percent_column("%PROC"),
        "n": show.number_column("n", 0, "Queries."),
        "reading": show.text_column("reading"),
        "quality_basis": show.text_column("figures are"),
    },
)
