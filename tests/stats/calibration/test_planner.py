"""What a pilot asks for: the larger end has the power that is stated."""

import pytest

from bench.calibration.planner import EFFECTS, seen, spread_held


@pytest.mark.parametrize("effect", EFFECTS)
def test_the_larger_end_has_the_power(effect):
    likely, most, enough, none = seen(effect, 4000)
    assert likely < 0.78  # the number itself has less than stated
    assert enough >= 0.88
    assert most >= 0.75 or none > 0.3


@pytest.mark.parametrize("n", [5, 20, 64])
def test_limits_of_a_spread(n):
    assert spread_held(n, 4000) == pytest.approx(0.8, abs=0.03)
