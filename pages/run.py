import streamlit as st

from core.ui import access, running, show
from core.ui.view import end

forbidden = access.forbidden()
show.head(
    running.headline(),
    forbidden,
)
running.evaluations(may_start=not forbidden)
if forbidden:
    end()
st.subheader("A new evaluation", anchor=False)
text = running.draft()
if st.toggle("Plan", key="_plan_it", help="Counts stacks, calls, tokens and dollars; spends nothing."):
    running.start(text, ready=running.planned(text))
st.markdown(
    "The same from the command line: `python -m core plan SPEC`, `run SPEC` and `resume NAME`. An evaluation "
    "that was stopped goes on where it was."
)
