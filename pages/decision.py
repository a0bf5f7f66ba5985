import streamlit as st

from core.ui import pareto_views as widgets
from core.ui import show
from core.ui.live import pareto_chart
from core.ui.near import near
from core.ui.pick import pick_stack
from core.ui.promising import promising
from core.ui.view import current_view, end
from core.views.decision import answer as decide
from core.views.decision import overview
from core.views.decision.chart import pareto
from core.views.text import count, plain
from core.views.theme import best_corner

view = current_view()
answer = decide.answer(view.table, view.decision, view.constraints, view.quality, view.latency)
show.head(answer.sentence, answer.reason, answer.warning)
near(view)

places = st.columns([5, 2], vertical_alignment="bottom")
with places[0]:
    way = widgets.ask_view()
with places[1]:
    weak = widgets.ask_form()
controls = st.columns(2)
with controls[1]:
    selected = pick_stack(view.table, view.decision, "Selected stack")
if way != widgets.FLAT:
    widgets.draw(view, way, weak=weak, selected=selected, alt=answer.sentence)
    end()
with controls[0]:
    colour, size = widgets.ask_marks()

found = pareto(
    view.table,
    view.decision,
    view.constraints,
    quality=view.quality,
    latency=view.latency,
    colour=colour,
    size=size,
    selected=selected,
    weak=weak,
)
if not found.drawn.is_empty():
    pareto_chart(view, found, answer.sentence)
    st.caption(
        f"{best_corner(higher=view.quality.higher_is_better)} The line is the frontier of what your limits "
        "allow; dimmed stacks break a limit, named when you point at them. Grey strip: latencies not told "
        "apart from the chosen one. Click a mark to select its stack."
    )
if not found.undrawn.is_empty():
    st.caption(f"Of unknown quality, so only in the table: {count(found.undrawn.height, 'stack')}.")

widgets.selection(view, selected)
show.table(found.rows, "stacks", show.STACK_COLUMNS)
promising(view)

chosen, runner_up = overview.chosen_rows(view.table, view.decision)
if chosen is not None:
    limit, trust = st.columns(2)
    with limit, st.container(border=True, height="stretch"):
        st.subheader("What limits it", anchor=False)
        st.markdown(plain(overview.limiting(chosen, view.quality)))
        st.page_link(
            "pages/headroom.py", label="Headroom of every stack", icon=":material/vertical_align_top:"
        )
    with trust, st.container(border=True, height="stretch"):
        st.subheader("How sound the evidence is", anchor=False)
        for finding in overview.soundness(chosen, runner_up, view.quality):
            mark = ":material/check_circle:" if finding.good else ":material/warning:"
            st.markdown(f"{mark} {plain(finding.sentence)}")
        st.caption(plain(overview.environment(view.snapshot, view.scope)))
    st.caption(f"Latency here is the {plain(overview.describe_latency(view.latency))}")
