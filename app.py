"""CLQ Explorer: which retrieval stack to ship, for this latency target and this budget, and how sure.

The server reads this file for its app, served behind the access check while modules are imported; every
session runs it as its script.
"""

import streamlit as st
from starlette.middleware import Middleware
from streamlit.runtime.scriptrunner import get_script_run_ctx

from core.ui.access import AccessMiddleware
from core.ui.serving import ready, taking_turns


def dashboard() -> None:
    """Draw the page named in the URL."""
    with taking_turns():
        from core.ui.draw import draw_page  # noqa: PLC0415 - seconds, in which a browser loads its part
        from core.ui.pages import open_page  # noqa: PLC0415
        from core.ui.shell import ICON, shell  # noqa: PLC0415

        page, script = open_page(draw_page)
        st.set_page_config(f"{page.title} · CLQ Explorer", ICON, layout="wide", initial_sidebar_state=232)
        shell(page, script)


if get_script_run_ctx(suppress_warning=True) is None:
    app = st.App(__file__, lifespan=ready, middleware=[Middleware(AccessMiddleware)])
else:
    dashboard()
