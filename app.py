"""CLQ Explorer: which retrieval stack to ship, for this latency target and this budget, and how sure.

The server reads this file for its app, which is served behind a door once everything is imported; every
session runs it as its script.
"""

import streamlit as st
from starlette.middleware import Middleware
from streamlit.runtime.scriptrunner import get_script_run_ctx

from core.ui.door import Door
from core.ui.shell import ICON, shell
from core.ui.startup import ready


def dashboard() -> None:
    """Draw the page that the address names."""
    st.set_page_config(page_title="CLQ Explorer", page_icon=ICON, layout="wide")

    page = st.navigation(
        {
            "Decide": [
                st.Page("pages/overview.py", title="Overview", icon=":material/flag:", default=True),
                st.Page("pages/pareto.py", title="Pareto", icon=":material/scatter_plot:"),
                st.Page("pages/certainty.py", title="How sure", icon=":material/percent:"),
                st.Page("pages/routing.py", title="Routing", icon=":material/alt_route:"),
                st.Page("pages/scenarios.py", title="Scenarios", icon=":material/table_rows:"),
                st.Page("pages/next.py", title="Next evaluation", icon=":material/event_upcoming:"),
                st.Page("pages/cost.py", title="Cost calculator", icon=":material/payments:"),
            ],
            "Inspect": [
                st.Page("pages/headroom.py", title="Headroom", icon=":material/vertical_align_top:"),
                st.Page("pages/latency.py", title="Latency", icon=":material/timer:"),
                st.Page("pages/curves.py", title="K curves", icon=":material/show_chart:"),
                st.Page("pages/compare.py", title="Compare", icon=":material/compare_arrows:"),
                st.Page("pages/sensitivity.py", title="Sensitivity", icon=":material/tune:"),
                st.Page("pages/queries.py", title="Queries", icon=":material/manage_search:"),
                st.Page("pages/evidence.py", title="Evidence", icon=":material/fact_check:"),
                st.Page("pages/outcome.py", title="Measure and outcome", icon=":material/grading:"),
                st.Page("pages/measures.py", title="Measures", icon=":material/straighten:"),
            ],
            "Data": [
                st.Page("pages/import.py", title="Import", icon=":material/upload:"),
                st.Page("pages/formats.py", title="Formats", icon=":material/description:"),
                st.Page("pages/data.py", title="Data", icon=":material/database:"),
                st.Page("pages/run.py", title="Run", icon=":material/play_circle:"),
            ],
        },
        position="top",
    )
    with shell(page.title):
        page.run()


if get_script_run_ctx(suppress_warning=True) is None:
    app = st.App(__file__, lifespan=ready, middleware=[Middleware(Door)])
else:
    dashboard()
