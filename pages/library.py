import streamlit as st

from core.ui import cache, door
from core.ui.draw import draw_section
from core.ui.view import find_place
from core.views.library.sections import SECTIONS
from core.views.workspace.scope import Scope
from core.views.workspace.view import Place

place = find_place() or Place(cache.snapshot(None), Scope(""))
with st.container():  # always there, so that what follows keeps its place
    door.outcome()
draw_section(SECTIONS[0], place)
