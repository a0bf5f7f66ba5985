"""Files exported from the dashboard for use elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st


def files(*, texts: Mapping[str, str], about: Mapping[str, str]) -> None:
    """Offer files by name, each with a description."""
    with st.container(horizontal=True):
        for name, content in texts.items():
            st.download_button(
                f"Download {name}",
                content,
                file_name=name,
                mime="application/json" if name.endswith(".json") else "text/x-python",
                on_click="ignore",
                icon=":material/download:",
                key=f"download_{name}",
                help=about[name],
            )
