import streamlit as st

from core.decide.slo import conditioned
from core.ui import routing as depths
from core.ui import scenarios as widgets
from core.ui import show
from core.ui.pages import PAGES, pick_section
from core.ui.view import View, current_view, end
from core.views.text import plain
from core.views.theme import best_corner
from core.views.what_if import deeper_chart, leaderboard, scenario_page, targets
from core.views.what_if.routing import policies as routing
from core.views.what_if.routing.chart import chart


def scenarios(view: View) -> None:
    """Which stack each way of deciding would choose, side by side."""
    head = st.container()
    own = widgets.ask_own()
    rows = widgets.compare(view, own)
    with head:
        show.head(*scenario_page.answer(rows, view.quality))
        show.table(
            rows, "scenarios", widgets.matrix_columns(view.quality, view.latency), placeholder="unknown"
        )
        st.caption(plain(scenario_page.legend(rows)))

    st.subheader("At every latency target", anchor=False)
    found = conditioned(
        view.table, widgets.ask_targets(view), widgets.free(view.constraints), paired=view.paired
    )
    left = targets.target_rows(view.table, found)
    st.markdown(plain(targets.target_words(left)))
    widgets.panels(view, found, left)
    show.table(left, "targets", widgets.TARGET_COLUMNS)

    st.subheader("What a larger K buys", anchor=False)
    _deeper(view)

    st.subheader("Efficiency", anchor=False)
    st.caption(
        f"{leaderboard.LABEL} Average quality divided by median latency in seconds (CLQ paper, Table 9)."
    )
    for place, (title, end_to_end) in zip(st.columns(2), widgets.BOARDS, strict=True):
        with place:
            st.markdown(f"**{title}**")
            show.table(
                widgets.leaders(view, end_to_end=end_to_end), f"efficiency_{end_to_end}", widgets.LEADERS
            )


def _deeper(view: View) -> None:
    steps = widgets.deeper(view)
    st.markdown(plain(deeper_chart.step_words(steps)))
    if steps.is_empty():
        return
    per = widgets.ask_per()
    drawn = deeper_chart.step_chart(steps, per)
    if drawn is None:
        st.caption(plain(f"Nothing to draw: no step moves quality, or none is known to cost more of {per}."))
    else:
        show.chart(drawn, "steps")
        st.caption("Hollow: the step does not pay, for the reason in the table.")
    show.table(steps, "steps", widgets.STEP_COLUMNS)


def routed(view: View) -> None:
    """Whether choosing K query by query beats one K for all queries, and at what price."""
    place = st.container()
    if view.table.filter("has_rankings").height < 1:
        show.head(f"No stack here has rankings to route {view.quality.name} by.", routing.NEEDS)
        end()
    family, options = depths.pick_options(view)
    depths.refused(family)
    if len(options) < 2:
        with place:
            show.head(f"Choose two or three depths to route {view.quality.name} between.", routing.NEEDS)
        end()
    left, middle, right = st.columns([3, 2, 2])
    with left:
        signal = depths.pick_signal(view, options)
    with middle:
        most = depths.limits()
    found = None if signal is None else depths.gathered(view, family, options, signal)
    obstacle = routing.nothing(found)
    if signal is None or found is None or obstacle:
        with place:
            show.head(obstacle or f"No signal to route {view.quality.name} by.", routing.NO_SIGNAL)
        end()
    made = depths.simulated(found, signal, view, most)
    with place:
        show.head(made.sentence, made.details)
    with right:
        axis = depths.pick_axis(made.rows, view)
    if axis is not None:
        drawn = chart(made.rows, made.path, view.table, view.quality, axis)
        show.chart(drawn, "routing", alt=made.sentence)
        st.caption(
            f"{best_corner(higher=view.quality.higher_is_better)} Circles: one depth for all. "
            "Star: routed by rules learnt from other queries "
            "(5 folds dealt 10 ways, fixed seed), with its 95 % bootstrap interval over queries; open star: "
            "the same rule judged on the queries it was learnt from. Grey marks: the workspace's stacks; "
            "zoom out to see all."
        )
    show.table(made.rows, "routing", depths.COLUMNS)


PAGE = PAGES["what_if"]
SECTIONS = dict(zip(PAGE.sections, (scenarios, routed), strict=True))
opened = current_view()
SECTIONS[pick_section(PAGE)](opened)
