import streamlit as st

from core.ui import latency as widgets
from core.ui import show
from core.ui.view import current_view
from core.views.latency import page as latency

view = current_view()
place = st.container()
rows = widgets.percentiles(view)
names = widgets.pick(view, rows)
samples, stages = widgets.stages(view, names)
depths = widgets.depths(view)
with place:
    show.head(
        latency.answer(rows, view.table, view.decision, view.quality),
        latency.details(rows, stages, depths, view.decision.jitter_ms),
    )
widgets.draw_stages(view, names, samples, stages)
widgets.draw_depths(depths)
widgets.draw_generator(view, names)
st.subheader("Every stack", anchor=False)
st.caption(f"{view.latency.name.replace(view.latency.percentile, 'p50, p95 and p99')}, the fastest first.")
show.table(rows, "latency", widgets.COLUMNS)
