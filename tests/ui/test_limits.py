import math

import pytest
import streamlit as st

from core.ui.limits import limits, take
from tests.views.made import AT_10, stacks


def offered(**columns):
    return {limit.key: limit for limit in limits(stacks(**columns), AT_10)}


def test_a_limit_needs_something_known_to_compare():
    assert list(offered(quality=[0.5])) == ["floor"]
    assert list(offered(quality=[0.5], latency_ms=[3.0])) == ["sla", "floor"]
    assert list(offered(quality=[0.5], cost=[0.0])) == ["floor"]


@pytest.mark.parametrize(
    ("slowest", "top", "step"), [(333.0, 400.0, 2.0), (1000.0, 1000.0, 5.0), (0.17, 0.2, 0.001)]
)
def test_a_range_ends_at_a_round_number(slowest: float, top: float, step: float):
    limit = offered(latency_ms=[slowest, None])["sla"]
    assert (limit.top, limit.step, limit.none) == (top, step, top)


@pytest.mark.parametrize(
    ("sent", "taken"),
    [(100, 100.0), (-5.0, 0.0), (1e9, 400.0), (math.nan, None), (math.inf, None), ("7", None), (True, None),
     (None, None), ([1], None)],
)  # fmt: skip
def test_what_a_browser_sends_is_kept_in_range_or_left_out(sent: object, taken: float | None):
    found = limits(stacks(latency_ms=[333.0]), AT_10)
    st.session_state.clear()
    take(found, {"sla": sent, "rev": 1})
    assert dict(st.session_state) == ({} if taken is None else {"sla": taken})
