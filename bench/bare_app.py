"""The floor: a Streamlit page with one slider, one chart and maybe a table, as they come out of the box.

Its garbage collector is tamed as the product's is, lest the product look faster for that alone.
"""

import gc
import os

import numpy as np
import plotly.graph_objects as go
import streamlit as st

count = int(os.environ["BARE_POINTS"])
kind = go.Scattergl if count > 3000 else go.Scatter
limit = st.slider("SLA (ms)", 0.0, 1000.0, 500.0, 5.0)
rng = np.random.default_rng(11)
points = kind(x=rng.uniform(0, 1000, count), y=rng.uniform(0, 1, count), mode="markers")
figure = go.Figure([points])
figure.add_vline(x=limit)
st.plotly_chart(figure, key="chart")
if os.environ.get("BARE_TABLE"):
    st.dataframe({"x": points.x, "y": points.y}, key="table")


@st.cache_resource
def tame_collector() -> None:
    """Keep what the first run has made out of the collector's sight."""
    gc.collect()
    gc.freeze()


tame_collector()
