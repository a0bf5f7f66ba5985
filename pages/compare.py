import streamlit as st

from core.axes import as_offered
from core.ui.address.state import HANDED_ON
from core.ui.draw import draw_page
from core.ui.view import current_view
from core.views.text import plain

if asked := st.query_params.get_all("cmp"):  # set on another page, or in a link of an earlier release
    here = current_view().table["name"]
    ticked = [as_offered(name, here) for name in asked]
    del st.query_params["cmp"]
    st.session_state[HANDED_ON] = ("cmp",)
    chosen = {**dict(zip(("stack", "vs"), ticked, strict=False)), "also": ticked[2:]}
    st.session_state.update(chosen)
    st.query_params.update({key: value for key, value in chosen.items() if value})
    if gone := [name for name in ticked if name not in here]:
        st.warning(f"No longer here: {plain('; '.join(gone))}.", icon=":material/link_off:")
draw_page()
