"""What stands just outside the limits, each with a button that lets it in."""

from __future__ import annotations

import streamlit as st

from core.clq.near import near_misses
from core.ui.limits import limits, take
from core.ui.view import View
from core.views.near import HEADING, near_rows, sentence, way_in
from core.views.text import plain


def near(view: View) -> None:
    """List the near misses of a workspace; a button sets the limit that lets one in."""
    rows = near_rows(view.table, near_misses(view.table, view.decision, view.constraints))
    if not rows:
        return
    offered = limits(view.table, view.quality)
    with st.container(border=True, key="near"):
        st.markdown(f"**{HEADING}**")
        for place, row in enumerate(rows):
            words, way = st.columns([4, 1], vertical_alignment="center")
            words.markdown(plain(sentence(row, view.quality.name)))
            way.button(
                f"Set {plain(way_in(row))}",
                key=f"near_{place}",
                on_click=take,
                args=(offered, {row["limit"]: row["set_to"]}),
                width="stretch",
            )
