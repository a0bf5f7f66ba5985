import streamlit as st

from core.ui import show
from core.ui.view import find_view
from core.views.add.formats import described, format_table, headline, matrix_table
from core.views.text import plain

find_view()
answer, details = headline()
show.head(
    "What this tells you: which tools' output can be imported, and what is taken of it.", answer, details
)

rows = format_table()
st.subheader("What is taken", anchor=False)
matrix = matrix_table()
show.table(matrix, "matrix", {name: show.text_column(name) for name in matrix.columns}, height="content")
st.caption(
    "A cell says what of the format fills the table; empty where the format has nothing of the kind. "
    "Click a cell twice to read all of it, or choose the format below."
)

st.subheader("One format", anchor=False)
titles = dict(zip(rows["as"], rows["format"], strict=True))
name = st.selectbox("Format", list(titles), format_func=titles.__getitem__, label_visibility="collapsed")
st.markdown("\n".join(f"- **{plain(what)}:** {plain(how)}" for what, how in described(name)))

st.subheader("How they are recognised, converted, and what is left out", anchor=False)
columns = {each: show.text_column(each.replace("_", " ")) for each in rows.columns}
show.table(rows, "formats", columns, height="content")
