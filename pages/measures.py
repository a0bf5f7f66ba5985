import streamlit as st

from core.ui import measures, show
from core.ui.view import find_view
from core.views.measures.reference import headline, measure_table
from core.views.measures.worked import worked

view = find_view()
place = st.container()
measure = measures.pick(view)
with place:
    answer, details = headline(measure)
    show.head("What this tells you: what a measure means, and how to work it out by hand.", answer, details)
measures.definition(measure)
measures.by_hand(worked(measure))

st.subheader("All measures", anchor=False)
rows = measure_table()
show.table(rows, "measures", {name: show.text_column(name.replace("_", " ")) for name in rows.columns})
st.caption("PROC[X] is X of the best order of the candidate pool, %PROC[X] the share of it that is reached.")
