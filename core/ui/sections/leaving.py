"""Files that leave the dashboard and work elsewhere."""

from __future__ import annotations

import streamlit as st

from core.records import JsonMap
from core.views.what_if.learned import files

_WHAT = {
    "router.json": "Options, means, coefficients or neighbours, threshold, and what it was learnt from.",
    "router.py": "Decides by router.json beside it; needs Python and no package.",
}


def router(*, told: JsonMap) -> None:
    """Offer the router that was learnt from all queries as its two files."""
    with st.container(horizontal=True):
        for name, content in files(told).items():
            st.download_button(
                f"Download {name}",
                content,
                file_name=name,
                mime="application/json" if name.endswith(".json") else "text/x-python",
                on_click="ignore",
                icon=":material/download:",
                key=f"download_{name}",
                help=_WHAT[name],
            )
