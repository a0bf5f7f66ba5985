import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decide.headroom import LEVERS, split
from core.errors import InputError


@given(proc=st.floats(0, 1), share=st.floats(0, 1))
def test_the_parts_add_up(proc, share):
    parts = split(proc * share, proc)
    assert parts.actual + parts.ordering + parts.retrieval == pytest.approx(1.0)
    assert parts.actual == pytest.approx(proc * share)
    assert min(parts.ordering, parts.retrieval) >= 0


@pytest.mark.parametrize(
    ("actual", "proc", "reading"),
    [
        (0.4, 0.5, "improve retrieval"),
        (0.5, 0.95, "improve ordering"),
        (0.8, 0.9, "balanced"),
        (0.79, 0.9, "balanced"),
        (1.0, 1.0, "balanced"),
        (0.852, 1.0, "improve ordering"),  # CLQ paper, Table 4
    ],
)
def test_the_larger_headroom_decides(actual, proc, reading):
    parts = split(actual, proc)
    assert parts.reading == reading
    assert parts.levers == LEVERS[reading]
    assert all(lever in parts.text for lever in parts.levers)


def test_margin_is_a_parameter():
    assert split(0.79, 0.9, margin=0.001).reading == "improve ordering"


def test_no_ceiling_has_no_percentage():
    assert math.isnan(split(0.0, 0.0).pct_proc)


@pytest.mark.parametrize(("actual", "proc"), [(0.9, 0.8), (math.nan, 0.8), (0.5, 1.2), (-0.1, 0.5)])
def test_impossible_values_are_refused(actual, proc):
    with pytest.raises(InputError):
        split(actual, proc)


def test_rounding_does_not_refuse():
    assert split(0.8 + 1e-9, 0.8).ordering == 0.0
