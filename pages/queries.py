import polars as pl
import streamlit as st

from core.ui import cache, show
from core.ui import queries as widgets
from core.ui.compare_holes import doubt_of
from core.ui.pick import pick_from_chart, pick_stack
from core.ui.view import current_view, end
from core.views.queries import page as queries
from core.views.queries.bars import BARS, bars

view = current_view()
place = st.container()
left, right = st.columns(2)
with left:
    run_id = pick_stack(view.table, view.decision, "Stack")
names = dict(view.table.select("run_id", "name").iter_rows())
ranked = view.table.filter(pl.col("has_rankings"))
if run_id is None and view.table["quality"].is_null().all():
    run_id = next(iter(ranked["run_id"]), None)  # no rule can choose: any can be browsed
if run_id is None or run_id not in ranked["run_id"]:
    with place:
        show.head(*queries.nothing(names.get(run_id or ""), ranked["name"].to_list()))
        st.page_link("pages/add.py", label="Import rankings", icon=":material/upload:")
    end()
with right:
    others = ranked.filter(pl.col("run_id") != run_id)
    other = pick_stack(others, view.decision, "Against", key="vs", default="no second stack")

table = cache.queries(view, run_id, other)
rows = widgets.narrow(table, view.quality, against=other is not None)
runs = {run: names[run] for run in (run_id, other) if run is not None}
found = cache.query_answer(view, runs, rows, table.height)
with place:
    show.head(found.sentence, found.details, doubt_of(view, table, run_id, other))
if rows.is_empty():
    end()
chart, listed = st.container(), st.container()
query_id = widgets.pick_query(rows)
with listed:
    widgets.query_list(rows, view.quality, other, query_id)
drawn = bars(rows, view.quality, against=other is not None, selected=query_id)
if drawn is not None:
    with chart:
        click = pick_from_chart(drawn.drawn, "chart_queries", key="q", column="query_id")
        show.chart(drawn.figure, "queries", on_select=click, selection_mode="points", alt=found.sentence)
        if drawn.drawn.height < rows.height:
            st.caption(
                f"At most {BARS} bars, the lowest and the highest; queries without a score are left out."
            )

row = rows.row(by_predicate=pl.col("query_id") == query_id, named=True)
widgets.one_query(cache.one_query(view, query_id, runs), row, view.quality)
