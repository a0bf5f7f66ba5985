"""The floor: a Streamlit page with one slider and one chart, as Streamlit and Plotly come out of the box."""

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
