import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decide.pareto import hypervolume, knee


def test_hypervolume_of_rectangles():
    # two steps in the box 0..4 x 0..1: (4-1)*0.5 + (4-2)*(0.75-0.5) of 4
    found = hypervolume([[1.0, 2.0, 3.0]], [0.5, 0.75, 0.6], worst=(4.0, 0.0))
    assert found == pytest.approx((3 * 0.5 + 2 * 0.25) / 4)


def test_hypervolume_of_a_cuboid():
    found = hypervolume([[1.0], [50.0]], [0.5], worst=(2.0, 100.0, 0.0))
    assert found == pytest.approx(0.5**3)


def test_hypervolume_of_nothing_and_of_no_extent():
    assert hypervolume([[np.nan]], [0.5], worst=(2.0, 0.0)) == 0.0
    assert hypervolume([[1.0]], [0.5], worst=(1.0, 0.5)) == 0.0  # its own worst corner
    assert hypervolume([[0.0, 0.0]], [0.5, 0.7], worst=(0.0, 0.5)) == 0.0


@given(
    points=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=12),
    more=st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)),
)
def test_a_further_stack_never_covers_less(points, more):
    cost, latency, quality = np.array(points).T
    corner = (1.5, 1.5, -0.5)
    before = hypervolume([cost, latency], quality, worst=corner)
    cost, latency, quality = np.array([*points, more]).T
    assert before - 1e-9 <= hypervolume([cost, latency], quality, worst=corner) <= 1 + 1e-9


@pytest.mark.parametrize(
    ("cost", "quality", "expected"),
    [
        ([1.0, 2.0, 10.0], [0.2, 0.7, 0.8], 1),
        ([1.0, 2.0, 10.0, 3.0], [0.2, 0.7, 0.8, 0.1], 1),  # a dominated stack changes nothing
        ([1.0, 2.0, 3.0], [0.1, 0.2, 0.3], None),  # straight
        ([1.0, 2.0, 3.0], [0.1, 0.15, 0.3], None),  # bends away from the ideal
        ([1.0, 2.0], [0.1, 0.2], None),
        ([], [], None),
    ],
)
def test_knee(cost, quality, expected):
    assert knee([cost], quality) == expected


def test_knee_in_three_axes():
    cost = [1.0, 1.1, 9.0, 5.0]
    latency = [100.0, 110.0, 900.0, 90.0]
    quality = [0.2, 0.7, 0.75, 0.3]
    assert knee([cost, latency], quality) == 1
