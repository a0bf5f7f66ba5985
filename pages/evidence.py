import streamlit as st

from core.ui import evidence, judging, show
from core.ui.view import current_view, end
from core.views.decision import answer as decide
from core.views.golden import page

tells = (
    "What this tells you: how many judgements carry the scores, and whether judging more could change them."
)
view = current_view(tells, runs=False)
place = st.container()
part = evidence.pick_part(view)
found = evidence.judged(view, part)
decided = decide.answer(view.table, view.decision, view.constraints, view.quality, view.latency)
sentence, details = page.answer(found, view.table, view.quality)
with place:
    show.head(tells, sentence, details, decided.warning)
if found is None:
    st.page_link("pages/import.py", label="Import judgements", icon=":material/upload:")
    end()

mix, holes, pool, doubts, judges = st.tabs(["Grades", "Holes", "Pool bias", "Copies and conflicts", "Judges"])
with mix:
    evidence.grades(found, sentence)
with holes:
    evidence.holes(view)
with pool:
    evidence.bias_of_pool(view)
with doubts:
    evidence.doubts(found)
with judges:
    judging.panel(view)
