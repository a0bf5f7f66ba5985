"""What is stated of the stack with the highest estimate, as bench/calibration/selection.py simulates it."""

import pytest

from bench.calibration import selection
from bench.selection import WORLDS

pytestmark = pytest.mark.slow
TRIALS = 300


@pytest.mark.parametrize("stacks", [20, 85])
def test_the_interval_of_the_highest_of_equal_stacks_covers(stacks: int):
    seen = selection.simulated(selection.equal(stacks), TRIALS)
    assert 0.92 <= seen.covered <= 0.99
    assert seen.alone < 0.8, "the interval of one stack does not hold for the highest"


@pytest.mark.parametrize("name", selection.FAMILIES)
def test_what_is_stated_of_the_shipped_stack_is_seen(name: str):
    world = next(each for each in WORLDS if each.name == f"{name}, 20 stacks, n = 50")
    seen = selection.simulated(world, TRIALS)
    assert seen.covered >= 0.91
    assert seen.best - seen.truly <= 0.15
    assert abs(seen.again - seen.repeated) <= 0.15
