"""Widgets of the page on K curves: what they are drawn against, and cut-offs of one stack."""

from __future__ import annotations

import streamlit as st

from core.ui import cache, show
from core.ui.pick import pick_stack, still_offered
from core.ui.view import View
from core.views.cost.stack import models
from core.views.curves import cuts, sent, words
from core.views.curves.words import X_AXES
from core.views.text import plain
from core.views.workspace.scope import Scope

_NO_GENERATOR = "no generator"


def axis(view: View) -> tuple[str, str | None]:
    """Draw the choice of the x axis and of the generator that reads what is sent.

    Returns:
        One of `X_AXES`, and the generator, if one was chosen.
    """
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    offered = [_NO_GENERATOR, *models([view.book]).generators]
    still_offered("kgen", offered)
    with right:
        generator = st.selectbox(
            "Generator", offered, key="kgen", bind="query-params",
            help="Counts the tokens where its vocabulary is at hand, and prices them.",
        )  # fmt: skip
    known = None if generator == _NO_GENERATOR else generator
    axes = {words: name for name, words in X_AXES.items() if known or name != "usd_per_1k"}
    still_offered("kx", list(axes))
    with left:
        words: str = st.segmented_control(
            "Against", list(axes), default=X_AXES["k"], required=True, key="kx", bind="query-params"
        )
    return axes[words], known


def cut_offs(view: View, generator: str | None) -> None:
    """Draw the cut-offs of one stack: how good what they keep is, beside fixed depths."""
    st.subheader("Cut-offs", anchor=False)
    st.caption(words.CUTS)
    run_id = pick_stack(view.table, view.decision, "Stack", key="cutof")
    if run_id is None:
        st.caption("No stack is chosen.")
        return
    fixed, counts = view.quality.k, sent.vocabulary(generator, view.book)
    found = _cuts(
        str(cache.store().path), view.snapshot.revision, view.scope, run_id, counts=counts, fixed=fixed
    )
    st.markdown(plain(words.cut_answer(found, fixed)))
    if found.rows.is_empty():
        return
    if found.left_out:
        st.caption(plain(found.left_out))
    show.chart(cuts.figure(found.rows), "cut_offs", alt=words.cut_answer(found, fixed))
    show.table(
        found.rows.select(list(_COLUMNS)),
        "cut_offs",
        _COLUMNS,
    )


_COLUMNS = {
    "way": show.text_column("keeps"),
    "precision": show.score_column("precision", "Share of what is kept that is relevant (grade 4 or 5)."),
    "recall": show.score_column("recall", "Share of what is relevant that is kept."),
    "f1": show.score_column("F1", "Mean over the queries of the harmonic mean of the two."),
    "f1_low": show.score_column("low", "Lower end of the 95 % bootstrap interval of F1 over queries."),
    "f1_high": show.score_column("high", "Upper end of the 95 % bootstrap interval of F1 over queries."),
    "kept": show.number_column("passages", 1, "Kept, mean over the queries."),
    "tokens": show.number_column("tokens sent", 0, "Of what is kept, mean over the queries."),
    "n": show.number_column("n", 0, "Queries."),
}


@st.cache_resource(show_spinner="Cutting every ranking…", max_entries=32)
def _cuts(path: str, revision: int, scope: Scope, run_id: str, *, counts: str, fixed: int) -> cuts.Cuts:
    del path  # part of the key
    return cuts.cuts(cache.snapshot(revision), scope, run_id, counts=counts, fixed=fixed)
