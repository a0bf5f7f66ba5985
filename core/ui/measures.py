"""The widgets of the Measures page: which measure is explained, and its worked example."""

from __future__ import annotations

import streamlit as st

from core.metrics import Measure
from core.ui import show
from core.ui.view import View
from core.views.measures.reference import choices, parameter_table, result
from core.views.measures.worked import Worked, cutoff_of, example
from core.views.text import plain


def pick(view: View | None) -> Measure:
    """The measure to explain: chosen from all, or typed with cutoff and parameters; at first the workspace's.

    Raises:
        InputError: If what was typed is not a measure.
        UnknownNameError: If it names none that exists.
    """
    own = view.quality.measure if view else None
    offered = choices()
    written = st.selectbox(
        "Measure",
        offered,
        index=offered.index(own.name) if own else 0,
        key="ref",
        bind="query-params",
        accept_new_options=True,
        help="Choose one, or type one with cutoff and parameters: RA-nWG@3(alpha=0.5), RBP(p=0.5)@4.",
    )
    return Measure.parse(str(written))


def definition(measure: Measure) -> None:
    """Formula, when there is no value, what other tools do, and the parameters."""
    info = measure.info
    st.markdown(f"**At K:** {plain(info.formula)}")
    st.markdown(f"**Not applicable:** {plain(info.na or 'never.')}")
    if info.differs:
        st.markdown(f"**Elsewhere:** {plain(info.differs)}")
    if info.params:
        rows = parameter_table(measure)
        st.dataframe(rows.to_arrow(), hide_index=True, width="stretch", key="parameters")


def by_hand(made: Worked) -> None:
    """The example and the steps that lead to the value."""
    st.subheader(f"Worked example: {plain(str(made.measure))}", anchor=False)
    left, right = st.columns([1, 2])
    columns = {name: show.text_column(name) for name in ("passage", "source")}
    whole = {name: show.number_column(name, 0) for name in ("rank", "grade")}
    left.dataframe(
        example().to_arrow(),
        hide_index=True,
        width="stretch",
        placeholder="–",
        key="example",
        column_config={**columns, **whole},
    )
    usual = cutoff_of(made.measure)
    left.caption(
        f"What a run ranks for one query, and what is judged. K is {usual} unless you write another."
    )
    for step in made.steps:
        right.markdown(plain(step))
    right.code(result(made.measure), language=None, wrap_lines=True)
