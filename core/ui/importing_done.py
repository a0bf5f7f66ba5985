"""After an import: what happened, and where to look at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from core.ui import cache
from core.ui.sidebar import go_to_workspace
from core.ui.view import end
from core.views.add import imports
from core.views.text import plain

_DONE = "_imported"
_PAGES: Mapping[str, tuple[str, str]] = {
    "decision": ("See it on the Pareto chart", ":material/scatter_plot:"),
    "headroom": ("See its headroom", ":material/vertical_align_top:"),
    "queries": ("See its queries", ":material/manage_search:"),
    "golden": ("See the judgements", ":material/fact_check:"),
    "library": ("See what is in the store", ":material/database:"),
}


def finished(*, fresh: bool, said: str, more: Sequence[str], collection: str | None, came: int) -> None:
    """Keep what happened for the next script run, which shows the workspace of the import."""
    st.session_state[_DONE] = (fresh, said, tuple(more), collection, came)
    if collection:
        go_to_workspace(collection)
    st.rerun()


def done() -> None:
    """After an import: what happened, where to look at it, or on to the next; the page ends here then."""
    if _DONE not in st.session_state:
        return
    fresh, said, more, collection, came = st.session_state[_DONE]
    (st.success if fresh else st.info)(plain(said), icon=":material/check:")
    then = imports.next_steps(cache.snapshot(None), collection, came)
    if collection:
        st.markdown(f"The workspace is now **{plain(collection)}**. {plain(then.hint)}")
    with st.container(horizontal=True, vertical_alignment="center"):
        for page in then.pages:
            label, icon = _PAGES[page]
            st.page_link(f"pages/{page}.py", label=label, icon=icon)
        st.button("Import more files", on_click=_leave, key="import_more")
    if more:
        with st.expander("What was read, left out and decided"):
            st.markdown("\n".join(f"- {plain(line)}" for line in more))
    end()


def _leave() -> None:
    """Forget the finished import."""
    st.session_state.pop(_DONE, None)
