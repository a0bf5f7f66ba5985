import streamlit as st

from core.ui import sensitivity as widgets
from core.ui import show
from core.ui.pick import pick_stack
from core.ui.view import current_view, end
from core.views.confidence import sensitivity, sensitivity_charts
from core.views.confidence.sensitivity_flips import answer
from core.views.text import plain

tells = (
    "What this tells you: whether the choice and the order of the stacks hold under other weights of RA-nWG."
)
view = current_view(tells)
obstacle = sensitivity.nothing(view.table, view.scope)
if obstacle is not None:
    show.head(tells, *obstacle)
    st.page_link("pages/import.py", label="Import rankings", icon=":material/upload:")
    end()
measure, own = sensitivity.weighed(view.quality)
grid, flips = widgets.grid(view, measure)
chosen = sensitivity.choices(grid, view.table, view.constraints)
found = answer(grid, chosen, flips)
show.head(tells, found.sentence, found.details)
if not own:
    st.caption(
        plain(f"{view.quality.name} has no such weights: the grid, and the floor in it, are of {measure}.")
    )

left, right = st.columns(2, vertical_alignment="bottom")
with left:
    st.markdown("**Order and choice, cell by cell**")
    show.chart(sensitivity_charts.agreement(grid, chosen), "agreement", alt=found.sentence)
with right:
    ranked = view.table.filter("has_rankings")
    run_id = pick_stack(ranked, view.decision, "One stack, cell by cell", default=sensitivity.BEST_STACK)
    show.chart(sensitivity_charts.one_stack(grid, run_id or grid.leader), "one_stack")
st.caption(plain(sensitivity_charts.legend(grid, chosen)))

st.subheader("How far the stacks move", anchor=False)
names = dict(view.table.select("run_id", "name").iter_rows())
ranges = sensitivity.stack_ranges(grid, names)
show.chart(sensitivity_charts.ranges(ranges, str(measure)), "ranges")
show.table(ranges, "ranges", widgets.RANGES)
st.subheader("Which orders turn round", anchor=False)
show.table(flips, "flips", widgets.FLIPS)
with st.expander("Every stack in every cell"):
    show.table(sensitivity.long_table(grid, names, chosen), "grid", widgets.CELLS)
