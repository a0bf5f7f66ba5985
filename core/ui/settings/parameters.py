"""The parameters of a measure as live widgets, each in the address under a key of its own."""

from __future__ import annotations

import streamlit as st

from core.metrics import REGISTRY, Measure
from core.params import Param, Value
from core.ui.state import bound
from core.views.link import parameter_key
from core.views.text import plain


def parameters(name: str) -> str:
    """Draw the parameters of a measure that has any worth moving.

    Args:
        name: A registered measure, or one that is known from aggregates only.

    Returns:
        The measure without cutoff as it is written with the chosen values.
    """
    params = [param for param in REGISTRY[name].params if parameter_key(param)] if name in REGISTRY else []
    if not params:
        return name
    with st.expander(f"Parameters of {plain(name)}"):
        values = tuple((param.name, _widget(param)) for param in params)
    return str(Measure(name, None, values))


def _widget(param: Param) -> Value:
    key = parameter_key(param) or param.name
    if param.choices:
        chosen: str = st.selectbox(
            param.name,
            param.choices,
            index=param.choices.index(str(param.default)),
            help=param.text,
            **bound(key, str(param.default)),
        )
        return chosen
    low, high, step, about = param.low, param.high, param.step, param.text
    if isinstance(param.default, int):
        whole: int = st.slider(
            param.name,
            int(low),
            int(high),
            param.default,
            int(step),
            help=about,
            **bound(key, param.default),
        )
        return whole
    low, high, usual, step = float(low), float(high), float(param.default), float(step)
    number: float = st.slider(param.name, low, high, usual, step, help=about, **bound(key, usual))
    return number
