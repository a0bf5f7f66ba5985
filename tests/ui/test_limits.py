import math

import polars as pl
import pytest
import streamlit as st

from core.ui.limits import limits, take
from core.views.workspace.scope import Quality
from tests.views.made import AT_10, stacks


def offered(measure=AT_10, harm=None, **columns):
    rows = stacks(**columns)
    rows = rows if harm is None else rows.with_columns(pl.Series("harm", harm, dtype=pl.Float64))
    return {limit.key: limit for limit in limits(rows, measure)}


def test_a_limit_needs_something_known_to_compare():
    assert list(offered(quality=[0.5])) == ["floor"]
    assert list(offered(quality=[0.5], latency_ms=[3.0])) == ["sla", "floor"]
    assert list(offered(quality=[0.5], cost=[0.0])) == ["floor"]
    assert list(offered(quality=[0.5], harm=[None])) == ["floor"]
    assert list(offered(quality=[0.5], harm=[0.0])) == ["floor", "harm"]


def test_the_floor_of_a_measure_that_is_better_the_lower_is_a_cap():
    found = offered(Quality("Harm", 10), quality=[0.5])["cap"]
    assert (found.none, found.top, found.label) == (1.0, 1.0, "Quality cap (Harm@10)")
    floor = offered(quality=[0.5])["floor"]
    assert (floor.none, floor.label) == (0.0, "Quality floor (RA-nWG@10)")


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


@pytest.mark.parametrize(
    ("values", "bottom", "top"), [([-0.31, 2.26, None], -0.4, 2.3), ([0.5], 0.5, 0.6), ([None], 0.0, 1.0)]
)
def test_the_floor_of_a_measure_that_counts_has_the_range_of_its_values(values, bottom: float, top: float):
    floor = offered(Quality("T", 10), quality=values)["floor"]
    assert (floor.bottom, floor.top, floor.none) == (bottom, top, bottom)
