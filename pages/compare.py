import streamlit as st

from core.ui import compare as widgets
from core.ui import compare_columns as columns
from core.ui import compare_pair as closer
from core.ui import show
from core.ui.compare_holes import with_holes
from core.ui.pick import pick_from_chart
from core.ui.view import current_view, end
from core.views.compare import holes as pairs
from core.views.compare import page as compare
from core.views.compare.charts import forest
from core.views.text import plain

view = current_view()
widgets.follow()
obstacle = compare.nothing(view.table, view.scope, view.quality)
if obstacle is not None:
    show.head(*obstacle)
    st.page_link("pages/add.py", label="Import rankings", icon=":material/upload:")
    end()
place = st.container()
names = widgets.pick(view)
setup, against = widgets.settings(view.quality)
rows = with_holes(view, widgets.differences(view, names, against, setup))
found = compare.answer(rows, view.quality, setup)
with place:
    show.head(found.sentence, found.details, pairs.doubt(rows, view.quality))
labels = widgets.pair_labels(rows)
click = pick_from_chart(rows.with_columns(label=labels), "chart_differences", key="pair", column="label")
drawn = forest(rows, labels, f"difference in {view.quality.name}")
show.chart(drawn, "differences", on_select=click, selection_mode="points", alt=found.sentence)
st.caption(compare.legend(view.quality))
show.table(widgets.with_agreement(view, rows), "differences", columns.DIFFERENCES)

pair = widgets.pick_pair(rows)
st.subheader(plain(f"{pair['second']} against {pair['first']}"), anchor=False)
looked = widgets.look_closer(view, pair, setup)
closer.queries(looked, pair, view.quality, setup)
st.subheader("By tag", anchor=False)
closer.tags(looked, view.quality)
st.subheader("Same passages, same order?", anchor=False)
closer.rankings(looked, pair, view.quality)
st.subheader("Where the difference comes from", anchor=False)
closer.sources(looked)
st.subheader("With and without a change", anchor=False)
closer.change(view, setup)
