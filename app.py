"""What the server runs: the dashboard behind its door, served once everything is imported."""

import streamlit as st
from starlette.middleware import Middleware

from core.ui.door import Door
from core.ui.startup import ready

app = st.App("dashboard.py", lifespan=ready, middleware=[Middleware(Door)])
