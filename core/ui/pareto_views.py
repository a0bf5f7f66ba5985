"""The ways of drawing the frontier, and the form of it, as settings of the link."""

from __future__ import annotations

import streamlit as st

from core.ui import show
from core.ui.view import View
from core.views.decision import space as pareto_space
from core.views.decision.chart import marked, ordered
from core.views.decision.marks import COLOURS, SIZES
from core.views.decision.space import VIEWS
from core.views.text import count

FLAT, SPACE, _ = VIEWS
FORMS = ("usual", "weak (the paper's)")


def ask_view() -> str:
    """Which of `VIEWS` to draw."""
    chosen: str = st.segmented_control(
        "View", VIEWS, default=FLAT, required=True, key="view", bind="query-params"
    )
    return chosen


def ask_form() -> bool:
    """Whether the frontier is the paper's."""
    form: str = st.selectbox(
        "Frontier",
        FORMS,
        key="form",
        bind="query-params",
        help="usual: a stack is off the frontier if another is at least as good in cost, latency and "
        "quality, and better in one. weak: only if another is better in all three (CLQ paper §3.3).",
    )
    return form == FORMS[1]


def ask_marks() -> tuple[str, str]:
    """What colour and size of a mark tell; only the flat chart has them."""
    left, right = st.columns(2)
    colour: str = left.selectbox("Colour", COLOURS, key="colour", bind="query-params")
    size: str = right.selectbox("Size", SIZES, key="size", bind="query-params")
    return colour, size


def draw(view: View, way: str, *, weak: bool, selected: str | None, alt: str) -> None:
    """Draw the stacks in space or over parallel axes, and the table behind them.

    Args:
        view: The workspace.
        way: One of `VIEWS`, not the first.
        weak: Whether the frontier is the paper's.
        selected: run_id of the stack to mark besides the chosen one; these charts take no clicks.
        alt: What the chart shows, in words.
    """
    rows = ordered(marked(view.table, view.decision, weak=weak), view.decision)
    if way == SPACE:
        found = pareto_space.space(rows, view.decision, view.quality, view.latency, selected)
        missing, lacks = pareto_space.undrawn(rows), "cost, latency or quality"
        words = (
            "Drag to turn it. Large blue marks are the frontier in all three axes; pale ones are dominated. "
            "The list above selects a stack."
        )
    else:
        found = pareto_space.parallel(rows, view.decision, view.quality, selected)
        missing, lacks = rows["quality"].null_count(), "quality"
        words = (
            "One line per stack. Drag along an axis to keep only the stacks that pass there. The list above "
            "selects a stack."
        )
    if found is None:
        st.info(f"No stack has a known {lacks}, so there is nothing to draw.", icon=":material/inbox:")
    else:
        show.chart(found, f"pareto_{VIEWS.index(way)}", alt=alt)
        st.caption(
            words
            + (f" Of unknown {lacks}, so only in the table: {count(missing, 'stack')}." if missing else "")
        )
    selection(view, selected)
    show.table(rows, "stacks", show.STACK_COLUMNS)


def selection(view: View, selected: str | None) -> None:
    """The numbers of the selected stack, and the way to its queries."""
    show.card(view.table, selected, view.quality)
    st.page_link(
        "pages/queries.py", label="See the queries of the selected stack", icon=":material/manage_search:"
    )
