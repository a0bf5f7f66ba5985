import streamlit as st

from core.analysis.workspace.view import View
from core.diagnostics.names.bundles import LANGUAGES
from core.store import Snapshot
from core.ui import access, work
from core.ui.draw import draw_page
from core.views.diagnostics.names import spoken
from core.views.diagnostics.sections import figures
from core.views.text import plain
from core.work.names import form, words
from core.work.names.kind import NAMES
from core.work.paid import embedders


def measuring(view: View) -> None:
    """Draw running diagnoses, the form with its plan and button, and earlier ones."""
    (rows, _), forbidden = figures(view.snapshot), access.forbidden()
    work.underway(NAMES, may_start=not forbidden)
    with st.expander("Measure embedders", expanded=rows.is_empty()):
        if forbidden:
            st.caption(plain(forbidden))
        else:
            _new(view.snapshot)
        work.earlier(NAMES, may_start=not forbidden)


def _new(snapshot: Snapshot) -> None:
    first, second = st.columns([3, 2, 2]), st.columns([3, 1, 1, 2])
    filled = form.NamesForm(
        embedders=first[0].multiselect(
            "Embedders", embedders(), ["wordllama"], accept_new_options=True, key="names_embedders"
        ),
        dims=first[1].multiselect(
            "Dimensions", (), accept_new_options=True, key="names_dims", placeholder="the embedder's own"
        ),
        languages=first[2].pills(
            "Languages", LANGUAGES, selection_mode="multi", default=["en"], key="names_languages",
            format_func=spoken,
        ),
        source=second[0].selectbox(
            "Names from", form.sources(snapshot), key="names_source",
            help="Of a collection its sources are the names and its titles the topics.",
        ),
        runs=second[1].number_input(
            "Runs", 1, 100, 15, key="names_runs", help="Bundles are drawn anew for each."
        ),
        queries=second[2].number_input("Queries a run", 1, 1000, 100, key="names_queries"),
        budget=work.budget(second[3], "names_budget", "embedded"),
    )  # fmt: skip
    if not (filled.embedders and filled.languages):
        st.caption(words.NO_EMBEDDER)
        return
    work.offer(NAMES, form.specification(filled), key="names")


draw_page({"names": measuring})
