import streamlit as st

from core.decide.planner import WORLDS
from core.ui import next_evaluation as widgets
from core.ui import show, sure
from core.ui.view import current_view
from core.views import text
from core.views.confidence import next_evaluation, next_queries, next_stacks

view = current_view(next_evaluation.TELLS)
head = st.container()
sample, leading = sure.sample(view), widgets.contenders(view)
if sample is None or not leading:
    with head:
        words = next_evaluation.unknown_answer(view.table, view.decision, view.quality)
        show.head(next_evaluation.TELLS, words)
else:
    money = widgets.ask_money(view, leading)
    found = widgets.look_ahead(view, leading, sample, money)
    rows = next_evaluation.plan_rows(found, money.price)
    said = next_evaluation.plan_answer(rows, money.affordable, view.quality)
    with head:
        show.head(next_evaluation.TELLS, *said)
    show.chart(next_evaluation.plan_chart(rows, money.affordable), "plan", alt=said[0])
    st.caption(
        f"{WORLDS:,} worlds, seed {found.judged.seed}: in each the queries seen so far have other shares "
        "(Bayesian bootstrap), further queries are drawn by them, and the sidebar's limits and the rule are "
        "applied again, with intervals that shrink. It takes further queries to be like those of today. "
        f"{text.plain(next_evaluation.price_words(money.price, len(leading)))}"
    )
    show.table(rows, "plan", widgets.PLAN_COLUMNS)

    st.subheader("Which stacks it is about", anchor=False)
    rivals = next_evaluation.rival_rows(view.table, found, view.decision)
    st.markdown(text.plain(next_evaluation.rival_words(rivals, len(leading))))
    show.table(rivals, "rivals", widgets.RIVAL_COLUMNS)

    pair = widgets.two_in_play(view, rivals)
    if pair is not None:
        st.subheader("Which queries tell most", anchor=False)
        tags = next_queries.tag_rows(pair[2])
        st.markdown(text.plain(next_queries.tag_words(tags, pair[2], *pair[:2])))
        if not tags.is_empty():
            st.caption("Queries taken by these shares must be weighted back to the shares of today.")
            show.table(tags, "tags", widgets.TAG_COLUMNS)

    st.subheader("Timing again", anchor=False)
    st.markdown(text.plain(next_evaluation.timing_words(found, money.price)))

st.subheader("Stacks to add near the frontier", anchor=False)
near = widgets.near(view)
st.markdown(text.plain(next_stacks.neighbour_words(near)))
if not near.is_empty():
    st.caption("≈ modelled, not measured: additive effects of the axes, fitted to the evaluated stacks.")
    show.table(near, "neighbours", widgets.NEIGHBOUR_COLUMNS)
