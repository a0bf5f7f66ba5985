import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from core.decide.routing import (
    Depths,
    always,
    at_random,
    estimates,
    one_hot,
    oracle,
    outcome,
    percentile,
)
from core.errors import InputError

QUALITIES = arrays(np.float64, st.tuples(st.integers(2, 3), st.integers(1, 12)), elements=st.floats(0, 1))


def three_queries() -> Depths:
    return Depths.of(
        [[0.2, 0.8, 0.5], [0.9, 0.7, 0.5]],
        latency_ms=[[100, 110, 120], [200, 210, 220]],
        cost=[[1.0], [3.0]],
        probe_ms=[10, 20, 30],
        probe_cost=0.5,
    )


def test_one_depth_for_all_is_that_depth():
    depths = three_queries()
    made = outcome(depths, always(depths, 1), probed=False)
    assert made.quality == pytest.approx(0.7)
    assert (made.p50, made.mean_ms, made.cost, made.deeper) == (210, pytest.approx(210), pytest.approx(3), 1)
    assert made.p95 is None
    assert "at least 60" in str(made.p95_reason)


def test_the_oracle_takes_the_best_depth_and_the_shallower_of_equals():
    depths = three_queries()
    assert oracle(depths).tolist() == [[0, 1, 1], [1, 0, 0]]
    assert outcome(depths, oracle(depths), probed=False).quality == pytest.approx((0.9 + 0.8 + 0.5) / 3)


def test_queries_sent_deeper_pay_for_the_signal():
    depths = three_queries()
    made = outcome(depths, one_hot([1, 0, 0], 2))
    assert made.mean_ms == pytest.approx((210 + 110 + 120) / 3)
    assert made.cost == pytest.approx((3.5 + 1 + 1) / 3)


def test_chance_is_the_mixture():
    depths = three_queries()
    made = outcome(depths, at_random(depths, [0.75, 0.25]), probed=False)
    assert made.quality == pytest.approx(0.75 * 0.5 + 0.25 * 0.7)
    assert made.cost == pytest.approx(1.5)
    assert made.rates.tolist() == [0.75, 0.25]


def test_what_is_unknown_stays_unknown_unless_it_is_not_used():
    depths = Depths.of([[0.1, 0.2], [0.3, 0.4]], latency_ms=[[1, 2], [np.nan, 4]], cost=[[1.0], [np.nan]])
    deep, shallow = outcome(depths, always(depths, 1)), outcome(depths, always(depths, 0))
    assert (deep.p50, deep.mean_ms, deep.cost) == (None, None, None)
    assert (shallow.p50, shallow.cost) == (1.5, 1)
    assert deep.p95_reason == "no latency of every query"


@given(QUALITIES)
def test_nothing_beats_the_oracle(quality):
    depths = Depths.of(quality)
    best = outcome(depths, oracle(depths)).quality
    naive = [max(column) for column in quality.T.tolist()]
    assert best == pytest.approx(np.mean(naive), abs=1e-8)
    for which in range(depths.count):
        assert outcome(depths, always(depths, which)).quality <= best + 1e-8


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=30), st.floats(0, 1))
def test_a_percentile_of_equal_weights_is_that_of_numpy(values, share):
    made = percentile(np.array(values), np.ones(len(values)), share)
    assert made == pytest.approx(np.quantile(values, share), rel=1e-9, abs=1e-9)


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0.01, 3)), min_size=1, max_size=20))
def test_percentiles_rise_and_stay_inside(pairs):
    values, weights = (np.array(each) for each in zip(*pairs, strict=True))
    made = [percentile(values, weights, share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert made == sorted(made)
    assert values.min() <= made[0] <= made[-1] <= values.max()


def test_estimates_of_a_difference_are_paired():
    scores = np.random.default_rng(1).random(50)
    (whole,) = estimates(scores, of="shares")
    (gain,) = estimates(scores + 0.1 - scores, of="differences")
    assert whole.low is not None
    assert whole.high is not None
    assert whole.low < whole.value < whole.high
    assert (gain.value, gain.low, gain.high) == pytest.approx((0.1, 0.1, 0.1))
    assert estimates(np.array([0.5]), of="shares")[0].low is None


@pytest.mark.parametrize("quality", [[[0.1, 0.2]], [[0.1], [np.nan]], np.zeros((2, 0))])
def test_what_cannot_be_routed_is_refused(quality):
    with pytest.raises(InputError):
        Depths.of(quality)


def test_shares_must_add_up():
    depths = three_queries()
    with pytest.raises(InputError, match="do not route"):
        outcome(depths, np.full((2, 3), 0.4))
