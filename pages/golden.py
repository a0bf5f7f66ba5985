import streamlit as st

from core.analysis.workspace.view import View
from core.stats.judges import Policy
from core.ui import access, cache
from core.ui.draw import draw_page
from core.ui.sections.judge import QUEUE, judge
from core.views.golden import judges
from core.views.golden.judges import POLICIES
from core.views.golden.sections import compared, judges_of
from core.views.pages import PAGES, SECTION
from core.views.text import plain


def merge(view: View) -> None:
    """Draw the form that merges the compared golden sets into one."""
    with st.container():  # always present, so that the elements below keep their place
        access.outcome()
    names = judges_of(view, st.session_state.get("sets", ()))[: judges.MOST]
    if len(names) < 2:
        return
    agreement, *_ = compared(view.snapshot, names)
    st.subheader("One golden set of these", anchor=False)
    if reason := access.forbidden():
        st.caption(reason)
        return
    with st.form("merge_judges", border=True):
        left, right = st.columns([1, 2])
        policy: Policy = left.selectbox("Where they differ, take the", list(POLICIES), index=1, key="policy")
        into = right.text_input(
            "Name of the new golden set", value="-".join(["merged", *agreement.names])[:60]
        )
        st.caption(plain(judges.merging(agreement)))
        if st.form_submit_button("Write it", icon=":material/merge:"):

            def write() -> str:
                golden = judges.write_merged(cache.store(), agreement.names, policy, into)
                return judges.merged(golden.golden_set_id)

            access.act(write)
            st.rerun()


def build_one(view: View) -> None:
    """Draw the form, its plan, and running builds."""
    from core.ui.sections.build import build  # noqa: PLC0415 - with the engines, a second

    build(view)


def make_questions() -> None:
    """Draw the form for questions from documents alone, and earlier sets."""
    from core.ui.sections.questions import questions  # noqa: PLC0415 - with the engines, a second

    questions()


if QUEUE in st.query_params and st.session_state.get(SECTION) not in PAGES["golden"].sections:
    st.session_state[SECTION] = "judge"  # a link to a queue
draw_page(
    {"judges": merge, "build": build_one, "judge": judge},
    runs=False,
    free={"questions": make_questions},
)
