import streamlit as st

from core.analysis.workspace.scope import Scope
from core.analysis.workspace.view import Place
from core.ui import access, cache
from core.ui.draw import draw_section
from core.ui.view import find_place
from core.views.library.sections import SECTIONS

place = find_place() or Place(cache.snapshot(None), Scope(""))
with st.container():  # always present, so that the elements below keep their place
    access.outcome()
draw_section(SECTIONS[0], place)
