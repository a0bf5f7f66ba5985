import streamlit as st

from core.ui import evidence, judging, show
from core.ui.view import current_view, end
from core.views.decision import answer as decide
from core.views.golden import page

view = current_view(runs=False)
place = st.container()
part = evidence.pick_part(view)
found = evidence.judged(view, part)
decided = decide.answer(view.table, view.decision, view.constraints, view.quality, view.latency)
sentence, details = page.answer(found, view.table, view.quality)
with place:
    show.head(sentence, details, decided.warning)
if found is None:
    st.page_link("pages/add.py", label="Import judgements", icon=":material/upload:")
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
