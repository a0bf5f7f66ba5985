import streamlit as st

from core.ui import show
from core.ui.view import current_view, end
from core.views import headroom as page
from core.views.headroom import conventions, headroom

view = current_view()
offered = conventions(view.table, view.decision.chosen)
place = st.container()
pool = ""
if offered:
    pool = st.selectbox("Candidate pool", offered, key="pool", bind="query-params", help=page.POOL, width=240)
found = headroom(view.table, view.quality, pool, view.decision.chosen)
if found is None:
    show.head(*page.no_ceiling(view.quality))
    end()
mixed = found.table["pool"].n_unique() > 1
show.head(page.answer(found.explained), caveats=page.caveats(found.explained, mixed=mixed))
with place:
    show.cards(*page.cards(found.explained, view.quality))
show.chart(found.figure, "headroom", alt=page.numbers(found.explained, view.quality))
show.table(
    found.table,
    "headroom",
    {
        "name": show.text_column("stack", width=290),
        "pool": show.text_column("pool"),
        "quality": show.score_column("actual"),
        "ordering": show.score_column("ordering headroom"),
        "retrieval": show.score_column("retrieval headroom"),
        "pct_proc": show.percent_column("%PROC"),
        "reading": show.text_column("reading"),
    },
    more={
        "quality_low": show.score_column("actual, low"),
        "quality_high": show.score_column("actual, high"),
        "proc": show.score_column("PROC", "The best ordering of the candidate pool."),
        "n": show.number_column("n", 0, "Queries."),
        "quality_basis": show.text_column("figures are"),
    },
)
