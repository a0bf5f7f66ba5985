import polars as pl
import streamlit as st

from core.ui import show
from core.ui.cache import cached
from core.ui.pages import PAGES, pick_section
from core.ui.pick import pick_one, still_offered
from core.ui.sections.readers_depth import by_depth, matrix, with_and_without_gold
from core.ui.sections.readers_joint import generators, joint_k
from core.ui.view import View, current_view
from core.views.readers import rebel as data
from core.views.readers import words


@cached("Reading what judges scored…", entries=16)
def _table(view: View) -> pl.DataFrame:
    return data.rebel_table(view.snapshot, view.scope)


def rerankers(view: View) -> None:
    """Draw the section."""
    head = st.container()
    table = _table(view)
    if table.is_empty():
        show.head(words.NO_REBEL)
        st.markdown(words.TO_REBEL)
        st.page_link(PAGES["run"].file, label=PAGES["run"].title, icon=PAGES["run"].icon)
        return
    ks = [str(k) for k in table["k"].unique().sort()]
    still_offered("rbk", ks)
    k = pick_one("Passages sent", ks, "rbk", usual=ks[-1])
    rows = table.filter(pl.col("k") == int(k))
    with head:
        sentence = data.answer(rows)
        show.head(sentence, caveats={"how to read": words.REBEL})
    show.chart(data.rebel_chart(rows), "rerankers", alt=sentence)
    told = table.with_columns(passes=pl.col("passes").list.len())
    show.table(told.filter(pl.col("k") == int(k)), "rerankers", COLUMNS, more=MORE, whole=told)


COLUMNS = {
    "method": show.text_column("method", width=110),
    "name": show.text_column("stack", width=260),
    "quality": show.number_column("quality", 2, "Similarity × precision, 0 to 5."),
    "similarity": show.number_column("similarity", 2, "Of the answer, by a judge, 0 to 5."),
    "precision": show.score_column("precision", "Share of the passages sent that help, by a judge."),
    "speed": show.number_column(
        "characters / s", 0, "Of the answer, over retrieval, reranking and generation."
    ),
    "queries": show.number_column("n", 0, "Questions."),
}
MORE = {
    "similarity_low": show.number_column("similarity, low", 2, "95 % bootstrap interval over questions."),
    "similarity_high": show.number_column("similarity, high", 2),
    "precision_low": show.score_column("precision, low"),
    "precision_high": show.score_column("precision, high"),
    "passes": show.number_column("passes", 0),
    "reader": show.text_column("reader"),
    "prompt": show.text_column("prompt"),
    "temperature": show.number_column("temperature", 2),
}


page = PAGES["readers"]
sections = (by_depth, with_and_without_gold, matrix, joint_k, generators, rerankers)
view = current_view()
dict(zip(page.sections, sections, strict=True))[pick_section(page)](view)
