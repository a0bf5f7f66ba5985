"""What happens once per server process."""

from __future__ import annotations

import atexit
import gc

import streamlit as st


@st.cache_resource(show_spinner=False)
def tame_collector() -> None:
    """Move everything that the imports made out of the garbage collector's sight.

    Streamlit collects all generations after every script run; with the plotting libraries loaded that costs
    30 to 47 ms a run, more than the script itself. Objects of the imports live as long as the process anyway.
    """
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)  # else libraries that count their objects at exit report them as leaked
