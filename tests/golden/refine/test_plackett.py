import json
import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, brentq

from core.golden.refine.base import RefineSettings
from core.golden.refine.methods import certainty, curvature, loss, refinement, restore


def naive_loss(scores: np.ndarray, orders: list[list[int]], centre: np.ndarray, precision: float) -> float:
    """The negative log posterior by its definition: a choice of the first from every suffix."""
    value = precision / 2 * ((scores - centre) ** 2).sum()
    for order in orders:
        for start in range(len(order)):
            chance = math.exp(scores[order[start]]) / sum(math.exp(scores[item]) for item in order[start:])
            value -= math.log(chance)
    return float(value)


@pytest.mark.slow
@given(
    orders=st.lists(st.permutations(range(6)).map(lambda order: order[:4]), max_size=5),
    scores=st.lists(st.floats(-4, 4), min_size=6, max_size=6),
    precision=st.floats(0.1, 3),
)
def test_loss_gradient_and_curvature(orders: list[list[int]], scores: list[float], precision: float):
    at, centre = np.array(scores), np.arange(6.0)
    told = np.array(orders, dtype=np.int64).reshape(len(orders), 4)
    value, slope = loss(at, told, centre, precision)
    assert value == pytest.approx(naive_loss(at, orders, centre, precision))
    assert slope == pytest.approx(
        approx_fprime(at, naive_loss, 1e-7, orders, centre, precision), abs=1e-4, rel=1e-4
    )
    for item, column in enumerate(curvature(at, told, precision)):
        step = np.eye(6)[item] * 1e-5
        up, down = loss(at + step, told, centre, precision)[1], loss(at - step, told, centre, precision)[1]
        assert column == pytest.approx((up - down) / 2e-5, abs=1e-5)


def test_two_items_by_hand():
    """One order of two with equal grades: the difference x solves x / 2 = 1 / (1 + e^x), so x = 0.675."""
    state = refinement([3, 3], [1, 2], ["a", "b"], RefineSettings(method="map", batch=2), seed="q")
    state.batch()
    state.told([1, 0])
    rows = state.rows()
    apart = brentq(lambda x: x / 2 - 1 / (1 + math.exp(x)), 0, 2)
    assert [row.item for row in rows] == [1, 0]
    assert rows[0].score - rows[1].score == pytest.approx(apart, abs=1e-4)
    assert rows[0].score + rows[1].score == pytest.approx(9), "the centre of 1.5 × 3 stays"
    # Hessian: 1 + h on the diagonal and -h beside it, h = p(1 - p); its inverse by hand.
    chance = 1 / (1 + math.exp(-apart))
    h = chance * (1 - chance)
    assert rows[0].information == pytest.approx((1 + 2 * h) / (1 + h), abs=1e-4)


@pytest.mark.slow
def test_the_mode_of_three_items_by_brute_force():
    state = refinement([2, 3, 3], [1, 2, 3], ["a", "b", "c"], RefineSettings(method="map", batch=3), seed="q")
    orders = [[0, 2, 1], [0, 1, 2], [2, 0, 1]]
    for order in orders:
        state.batch()
        state.told(order)
    found = {row.item: row.score for row in state.rows()}
    grid = np.linspace(2, 6, 41)
    centre = np.array([3, 4.5, 4.5])
    best = min(product(grid, repeat=3), key=lambda at: naive_loss(np.array(at), orders, centre, 1.0))
    assert [found[item] for item in range(3)] == pytest.approx(best, abs=0.06)


def test_certainty_is_of_order_and_of_membership():
    covariance = np.eye(30) * 0.5  # every difference has a standard deviation of 1
    apart = np.arange(30.0)[::-1] * 10
    assert certainty(apart, covariance, range(30)) == pytest.approx(1)
    tied = np.where(np.arange(30) < 20, 10.0, 0.0)
    assert certainty(tied, covariance, range(30)) == pytest.approx(0.5), "nothing is known of the order"
    assert certainty(np.zeros(3), np.eye(3), range(3)) == pytest.approx(0.5), "fewer than twenty"


def test_it_stops_when_sure_and_goes_on_identically():
    rng = np.random.default_rng(1)
    state = refinement(
        [1] * 8, range(8), [str(i) for i in range(8)], RefineSettings(method="map", sure=0.9), seed="q"
    )
    while (batch := state.batch()) is not None:
        state.told(sorted(batch, key=lambda item: item + rng.normal(0, 0.5)))
        if state.turns == 7:
            state.order()  # asking in between changes nothing
            state = restore(json.loads(json.dumps(state.state())))
    assert (state.stopped, state.order()) == ("stable", list(range(8)))
    assert state.curve[-1].settled >= 0.9 > state.curve[-2].settled
    assert [point.turn for point in state.curve] == list(range(5, state.turns + 1, 5))
    last = restore(state.state())
    assert (last.rows(), last.curve) == (state.rows(), state.curve)
