import streamlit as st

from core.ui import show
from core.ui.near import near
from core.ui.promising import promising
from core.ui.view import current_view
from core.views.decision import answer as decide
from core.views.decision import overview
from core.views.text import plain

tells = "What this tells you: which stack your limits select, what holds it back, how far to trust it."
view = current_view(tells)
answer = decide.answer(view.table, view.decision, view.constraints, view.quality, view.latency)
show.head(
    tells,
    answer.sentence,
    answer.reason,
    answer.warning,
)
near(view)
chosen, runner_up = overview.chosen_rows(view.table, view.decision)
if chosen is not None:
    show.card(view.table, str(chosen["run_id"]), view.quality)
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

st.page_link("pages/pareto.py", label="See it on the Pareto chart", icon=":material/scatter_plot:")
st.subheader("In the store", anchor=False)
st.caption(plain(overview.latest_change(view.snapshot)))
show.table(
    overview.contents(view.snapshot),
    "contents",
    {
        "collection_id": show.text_column("workspace"),
        "name": show.text_column("collection", width="large"),
        "runs": show.number_column("runs", 0),
        "measured": show.number_column("measured here", 0),
        "imported": show.number_column("imported", 0),
        "published": show.number_column("published", 0),
        "queries": show.number_column("queries", 0),
        "passages": show.number_column("passages", 0),
        "golden_sets": show.number_column("golden sets", 0),
        "judgements": show.number_column("judgements", 0),
    },
)
promising(view)
