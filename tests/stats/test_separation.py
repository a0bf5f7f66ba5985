"""Scores that tell two classes apart: areas as by hand, intervals that hold, thresholds that lose no more."""

import numpy as np
import pytest

from core.stats.separation import area, lost, needed, threshold


def test_the_area_is_the_share_of_pairs_in_order():
    members, others = np.array([3.0, 4, 5, 6, 2]), np.array([1.0, 2, 3, 0, 2])
    pairs = [(a > b) + (a == b) / 2 for a in members for b in others]
    found = area(members, others)
    assert found.value == pytest.approx(np.mean(pairs))
    assert found.low < found.value < found.high <= 1
    assert area(members, members).value == pytest.approx(0.5)


@pytest.mark.parametrize(("shift", "expect"), [(10.0, 1.0), (-10.0, 0.0)])
def test_what_is_wholly_apart_may_be_less_so(shift: float, expect: float):
    found = area(np.arange(6) + shift, np.arange(6.0))
    assert found.value == expect
    assert expect in found[1:]
    assert 0.2 < found.high - found.low < 0.4, "six of each tell little"


def test_few_say_nothing():
    assert np.isnan(area(np.arange(4.0), np.arange(9.0)).value)


def test_intervals_hold():
    random, held = np.random.default_rng(1), 0
    for _ in range(300):
        found = area(random.normal(1, 1, 40), random.normal(0, 1, 30))
        held += found.low <= 0.7602 <= found.high  # Φ(1/√2)
    assert 0.91 <= held / 300 <= 0.99


@pytest.mark.parametrize("most", [0.0, 0.05, 0.1, 0.5, 1.0])
def test_a_threshold_loses_no_more_than_is_allowed(most: float):
    members = np.random.default_rng(2).normal(size=37)
    if not most:
        assert np.isnan(threshold(members, most))
        return
    least = threshold(members, most)
    new = (members < least).sum() + 1  # a new one lies in each of the 38 gaps alike
    assert new / 38 <= most + 1e-9
    if most == 1:
        return
    assert (new + 1) / 38 > most
    assert lost(members, most).mean() == pytest.approx(np.floor(most * 37) / 37)
    assert np.isnan(threshold(members[: needed(most) - 1], most))
    assert not np.isnan(threshold(members[: needed(most)], most))
