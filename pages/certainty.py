import streamlit as st

from core.stats.intervals import SEED
from core.stats.significance.bootstrap import RESAMPLES
from core.ui import show
from core.ui import sure as widgets
from core.ui.view import current_view
from core.views import text
from core.views.confidence import sure, sure_charts, sure_details
from core.views.decision.facts import Asked

view = current_view(sure.TELLS)
head = st.container()
rule, decision = widgets.ask_rule(view)
asked = Asked(view.constraints, rule, view.quality, view.latency)
chances = widgets.chances(view, rule)
rows = sure.share_rows(view.table, decision, chances)
near = sure.alike(view.table, decision, widgets.sample(view), seed=SEED)
said = sure.said(view.table, decision, asked, chances, near)
with head:
    show.head(sure.TELLS, said.sentence, said.details, said.warning)

drawn = sure_charts.chances(rows)
if drawn is not None:
    show.chart(drawn, "chances", alt=said.sentence)
    queries = text.count(widgets.queries(view), "query", "queries")
    st.caption(
        f"{RESAMPLES:,} resamples of {queries}, seed {SEED}: one draw serves quality and latency of every "
        "stack. Equal bests share one. What other queries and other days would bring is not in it."
    )
show.table(rows, "chances", widgets.CHANCE_COLUMNS)

st.subheader("What cannot be told apart", anchor=False)
found = sure_charts.band(view.table, near, decision, asked)
if found is None:
    st.markdown("Unknown: the chosen stack has no quality interval, or no latency.")
else:
    st.markdown(text.plain(sure.alike_words(near, decision.jitter_ms)))
    show.chart(found, "band", alt="Latency and quality, with the band around the chosen stack.")
    st.caption(
        "The band is the jitter band of the chosen stack by its quality interval. Stacks whose own interval "
        "reaches into it are not put in an order; compared query by query, some of them still differ."
    )
    show.table(near, "alike", widgets.ALIKE_COLUMNS)

st.subheader("What would have to be true", anchor=False)
turned = sure_details.turn_rows(view.table, widgets.turned(view, rule, decision))
st.markdown(text.plain(sure_details.turning_words(turned)))
if not turned.is_empty():
    show.table(turned, "turning", widgets.TURN_COLUMNS)

front = sure_details.front(view.table, decision)
if front is not None:
    st.subheader("The frontier in numbers", anchor=False)
    widgets.three(sure_details.front_cards(front))

excluded = sure_details.excluded_rows(view.table, decision)
st.subheader("What the limits exclude, and by how much", anchor=False)
st.markdown(text.plain(sure_details.excluded_words(excluded)))
if not excluded.is_empty():
    show.table(excluded, "excluded", widgets.EXCLUDED_COLUMNS)
