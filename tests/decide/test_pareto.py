import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decide.pareto import frontier_2d, undominated


def oracle(points, *, weak):
    """Compare every pair; columns are to be minimised."""
    mask = []
    for p in points:
        if np.isnan(p).any():
            mask.append(False)
            continue
        others = points[~np.isnan(points).any(axis=1)]
        better = (others < p).all(axis=1) if weak else (others <= p).all(axis=1) & (others < p).any(axis=1)
        mask.append(not better.any())
    return np.array(mask, dtype=bool)


# few distinct values make ties and duplicates common
values = st.one_of(st.integers(0, 4).map(float), st.floats(-1e6, 1e6), st.just(float("nan")))
rows = st.lists(st.tuples(values, values, values), max_size=40)


@pytest.mark.slow
@given(rows=rows, weak=st.booleans())
def test_equals_the_oracle_in_three_axes(rows, weak):
    cost, latency, quality = np.array(rows, dtype=float).reshape(-1, 3).T
    expected = oracle(np.column_stack([cost, latency, -quality]), weak=weak)
    assert (undominated([cost, latency, -quality], weak=weak) == expected).all()


@pytest.mark.slow
@given(rows=rows, weak=st.booleans(), use_cost=st.booleans())
def test_equals_the_oracle_in_two_axes(rows, weak, use_cost):
    cost, latency, quality = np.array(rows, dtype=float).reshape(-1, 3).T
    paid = cost if use_cost else latency
    expected = oracle(np.column_stack([paid, -quality]), weak=weak)
    assert (undominated([paid, -quality], weak=weak) == expected).all()


@pytest.mark.slow
@given(rows=rows)
def test_weak_form_keeps_at_least_as_much(rows):
    cost, latency, quality = np.array(rows, dtype=float).reshape(-1, 3).T
    strict = undominated([cost, latency, -quality])
    assert not (strict & ~undominated([cost, latency, -quality], weak=True)).any()


@pytest.mark.parametrize(
    ("cost", "quality", "weak", "expected"),
    [
        ([], [], False, []),
        ([1.0], [0.5], False, [True]),
        ([1.0, 1.0], [0.5, 0.5], False, [True, True]),  # equal points stand together
        ([1.0, 1.0], [0.5, 0.6], False, [False, True]),  # a tie on one axis is enough to be dominated…
        ([1.0, 1.0], [0.5, 0.6], True, [True, True]),  # …but not in the paper's form
        ([1.0, 2.0], [0.6, 0.5], True, [True, False]),
        ([1.0, np.nan], [0.5, 0.9], False, [True, False]),
        ([np.nan], [0.9], True, [False]),
    ],
)
def test_cases(cost, quality, weak, expected):
    assert undominated([np.array(cost), -np.array(quality)], weak=weak).tolist() == expected


def test_frontier_in_drawing_order():
    cost = np.array([3.0, 1.0, 2.0, 2.0, 5.0])
    quality = np.array([0.9, 0.2, 0.5, 0.5, 0.1])
    assert frontier_2d(cost, quality).tolist() == [1, 2, 3, 0]


@pytest.mark.slow
@pytest.mark.parametrize("weak", [False, True])
def test_many_points_against_a_vectorised_oracle(weak):
    rng = np.random.default_rng(7)
    points = np.round(rng.random((3000, 3)), 2)
    expected = oracle(points * [1, 1, -1], weak=weak)
    assert (undominated(list((points * [1, 1, -1]).T), weak=weak) == expected).all()
