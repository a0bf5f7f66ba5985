import polars as pl
import streamlit as st

from core.ui import cache, show
from core.ui import curves as ui
from core.ui.pick import pick_stacks
from core.ui.view import current_view
from core.views import theme
from core.views.curves import page as curves
from core.views.curves import words
from core.views.text import plain
from core.views.workspace.comparable import about_pools

view = current_view()
place = st.container()
names = pick_stacks(view.table, view.decision, "curves")
rows = cache.curves(view, tuple(names))
colours = theme.colours_for(names)
x, generator = ui.axis(view)
rows = curves.against(rows, cache.tokens_sent(view, tuple(names), generator))
found = curves.curves(rows, view.quality, colours, x)
with place:
    show.head(
        found.answer,
    )
if found.main.data:
    show.chart(found.main, "curves", alt=found.answer)
else:
    st.info(plain(words.nothing(rows, view.quality, x)), icon=":material/info:")
st.caption(words.HOW)
if pools := about_pools(view.table.filter(pl.col("name").is_in(names), pl.col("proc").is_not_null())["pool"]):
    st.caption(plain(pools))
st.subheader("Every measure", anchor=False)
if found.beside.data:
    show.chart(found.beside, "measures")
else:
    st.caption(words.NO_OTHERS)

ui.cut_offs(view, generator)

st.subheader("Candidate depth", anchor=False)
depths = curves.depth_table(view.table)
if depths.is_empty():
    st.caption("No two stacks here differ only in their candidate depth.")
else:
    families = depths["family"].unique(maintain_order=True).to_list()
    chosen = view.table.filter(pl.col("name").is_in(names))
    shown = curves.families_of(chosen, families)
    show.chart(curves.depth_figure(depths, shown, view.quality), "depths")
    st.caption(
        "What a deeper candidate pool buys and costs: quality with its ceiling (dotted), latency, cost."
    )
with st.expander("Tables"):
    figure = show.score_column("value")
    columns = {
        "name": show.text_column("stack", width="large"),
        "measure": show.text_column("measure"),
        "k": show.number_column("K", 0),
        "value": figure,
        "low": show.score_column("low"),
        "high": show.score_column("high"),
        "n": show.number_column("n", 0),
        "tokens": show.number_column("tokens sent", 0, "Of the passages of Top(K), mean over the queries."),
        "tokens_low": show.number_column("tokens, low", 0, "Lower end of the 95 % bootstrap interval."),
        "tokens_high": show.number_column("tokens, high", 0, "Upper end of the 95 % bootstrap interval."),
        "usd_per_1k": show.dollar_column("$ / 1k", "What the generator charges for reading them."),
        "counted": show.text_column("tokens counted by"),
    }
    show.table(rows, "curves", columns)
    show.table(depths, "depths", dict.fromkeys(depths.columns))
