"""Alarms of live quality where nothing changed, and how soon after a fall: bench/calibration/live.py."""

import pytest

from bench.calibration import live


@pytest.mark.slow
@pytest.mark.parametrize("world", live.WORLDS)
def test_at_most_one_in_twenty_alarms_where_nothing_changed(world: str):
    # two standard errors of 300 trials at 5 % are 2.5
    assert 1 <= live.raised(world, 300) <= 7.5


@pytest.mark.slow
def test_a_fall_is_found():
    assert live.found("graded", 100) < 90
    assert live.found("yes or no", 100, fall=0.3) < 150
