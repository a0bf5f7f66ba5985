import streamlit as st

from core.decide.slo import conditioned
from core.ui import scenarios as widgets
from core.ui import show
from core.ui.view import current_view
from core.views.text import plain
from core.views.what_if import deeper_chart, leaderboard, scenario_page, targets

view = current_view(scenario_page.TELLS)
head = st.container()
own = widgets.ask_own()
rows = widgets.compare(view, own)
with head:
    show.head(scenario_page.TELLS, *scenario_page.answer(rows, view.quality))
    show.table(rows, "scenarios", widgets.matrix_columns(view.quality, view.latency), placeholder="unknown")
    st.caption(plain(scenario_page.legend(rows)))

st.subheader("At every latency target", anchor=False)
found = conditioned(view.table, widgets.ask_targets(view), widgets.free(view.constraints), paired=view.paired)
left = targets.target_rows(view.table, found)
st.markdown(plain(targets.target_words(left)))
widgets.panels(view, found, left)
show.table(left, "targets", widgets.TARGET_COLUMNS)

st.subheader("What a larger K buys", anchor=False)
steps = widgets.deeper(view)
st.markdown(plain(deeper_chart.step_words(steps)))
if not steps.is_empty():
    per = widgets.ask_per()
    drawn = deeper_chart.step_chart(steps, per)
    if drawn is None:
        st.caption(plain(f"Nothing to draw: no step moves quality, or none is known to cost more of {per}."))
    else:
        show.chart(drawn, "steps")
        st.caption("Hollow: the step does not pay, for the reason in the table.")
    show.table(steps, "steps", widgets.STEP_COLUMNS)

st.subheader("Efficiency", anchor=False)
st.caption(f"{leaderboard.LABEL} Average quality divided by median latency in seconds (CLQ paper, Table 9).")
for place, (title, end_to_end) in zip(st.columns(2), widgets.BOARDS, strict=True):
    with place:
        st.markdown(f"**{title}**")
        show.table(widgets.leaders(view, end_to_end=end_to_end), f"efficiency_{end_to_end}", widgets.LEADERS)
