import streamlit as st

from core.ui import routing as widgets
from core.ui import show
from core.ui.view import current_view, end
from core.views.theme import best_corner
from core.views.what_if.routing import policies as routing
from core.views.what_if.routing.chart import chart

tells = (
    "What this tells you: whether choosing K query by query beats one K for all queries, and at what price."
)
view = current_view(tells)
place = st.container()
if view.table.filter("has_rankings").height < 1:
    show.head(tells, f"No stack here has rankings to route {view.quality.name} by.", routing.NEEDS)
    end()
family, options = widgets.pick_options(view)
widgets.refused(family)
if len(options) < 2:
    with place:
        show.head(
            tells,
            f"Choose two or three depths to route {view.quality.name} between.",
            routing.NEEDS,
        )
    end()
left, middle, right = st.columns([3, 2, 2])
with left:
    signal = widgets.pick_signal(view, options)
with middle:
    most = widgets.limits()
found = None if signal is None else widgets.gathered(view, family, options, signal)
obstacle = routing.nothing(found)
if signal is None or found is None or obstacle:
    with place:
        show.head(tells, obstacle or f"No signal to route {view.quality.name} by.", routing.NO_SIGNAL)
    end()
made = widgets.simulated(found, signal, view, most)
with place:
    show.head(tells, made.sentence, made.details)
with right:
    axis = widgets.pick_axis(made.rows, view)
if axis is not None:
    drawn = chart(made.rows, made.path, view.table, view.quality, axis)
    show.chart(drawn, "routing", alt=made.sentence)
    st.caption(
        f"{best_corner(higher=view.quality.higher_is_better)} Circles: one depth for all. "
        "Star: routed by rules learnt from other queries "
        "(5 folds dealt 10 ways, fixed seed), with its 95 % bootstrap interval over queries; open star: the "
        "same rule judged on the queries it was learnt from. Grey marks: the workspace's stacks; zoom out to "
        "see all."
    )
show.table(made.rows, "routing", widgets.COLUMNS)
