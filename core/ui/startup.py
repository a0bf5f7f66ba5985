"""What happens once per server process and page."""

from __future__ import annotations

import atexit
import gc

import streamlit as st


@st.cache_resource(show_spinner=False)
def tame_collector(page: str) -> None:
    """Move everything that a page needed for its first run out of the garbage collector's sight.

    Streamlit collects all generations after every script run; with the plotting libraries loaded that costs
    30 to 47 ms a run, more than the script itself. What imports and first uses have made lives as long as the
    process anyway; half of the libraries' objects are made by the first chart, not by the import.

    Args:
        page: The page that has just run; it is done once for each.
    """
    del page  # the key
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)  # else libraries that count their objects at exit report them as leaked
