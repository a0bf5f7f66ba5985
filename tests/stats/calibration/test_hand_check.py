"""The check of grades by hand seldom condemns good grades, at fewer trials than docs/decide.md has."""

import numpy as np
import pytest

from bench.hand_check import fails, level, shifted

TRIALS = {"trials": 1000, "seed": 1}


@pytest.fixture(scope="module")
def gaps() -> np.ndarray:
    """Leads of eight rivals on 150 questions, all behind."""
    random = np.random.default_rng(3)
    return random.normal(0, 0.2, (8, 150)) - np.linspace(0.01, 0.1, 8)[:, None]


def test_grades_that_are_right_are_seldom_condemned(gaps: np.ndarray):
    assert fails(gaps[:1], 30, together=False, **TRIALS) <= 0.025
    assert fails(level(gaps)[:1], 30, together=False, **TRIALS) == pytest.approx(0.025, abs=0.015)


def test_over_several_rivals_only_all_pairs_together_hold_their_level(gaps: np.ndarray):
    alone, together = (fails(level(gaps), 30, together=held, **TRIALS) for held in (False, True))
    assert together <= 0.025
    assert alone > 0.1


def test_bad_grades_are_found_the_oftener_the_worse_they_are(gaps: np.ndarray):
    found = [fails(shifted(gaps, better)[:1], 30, together=False, **TRIALS) for better in (0.02, 0.05, 0.1)]
    assert found == sorted(found)
    assert found[-1] > 0.6
    assert fails(shifted(gaps, 0.1)[:1], 100, together=False, **TRIALS) > found[-1]
    assert shifted(gaps, 0.05)[0].mean() == pytest.approx(0.05)
    assert np.array_equal(shifted(gaps, 0.05)[1:], gaps[1:])
