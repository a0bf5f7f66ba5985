"""A threshold loses no more of new questions than it says (bench/calibration/thresholds.py)."""

import pytest

from bench.calibration import thresholds


@pytest.mark.slow
@pytest.mark.parametrize("questions", thresholds.SIZES)
def test_no_more_new_questions_are_refused_than_allowed(questions: int):
    stated, seen = thresholds.refused(questions, 400)
    assert seen <= 5.3
    assert abs(stated - seen) <= 1
