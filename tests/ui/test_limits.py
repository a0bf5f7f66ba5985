import math

import pytest
import streamlit as st

from core.analysis.workspace.scope import Latency
from core.ui.limits import current, take
from core.views.decision.limits import limits
from tests.views.made import AT_10, stacks


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (100, 100.0),
        (510.5, 510.5),
        (None, None),
        (-5.0, 7.0),
        (math.nan, 7.0),
        ("8", 7.0),
        ([1], 7.0),
        (1e12, 7.0),
    ],
)
def test_what_a_browser_sends_becomes_the_limit_or_is_left_out(sent: object, kept: float | None):
    offered = limits(stacks(latency_ms=[333.0], quality=[0.5]), AT_10, Latency())
    st.session_state.clear()
    st.session_state["sla_ms"] = 7.0
    take(offered, {"sla_ms": sent, "rev": 1})
    assert "rev" not in st.session_state
    assert current(offered) == {"sla_ms": kept, "min_quality": None}
