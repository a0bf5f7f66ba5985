"""Rows of docs/statistics.md on means and differences, at fewer trials."""

import pytest

from bench.calibration import differences, means

TRIALS = 2000  # a row of 95 % has a standard error of half a point


@pytest.mark.slow
def test_intervals_of_means_hold_as_often_as_they_say():
    seen = {row.what: row.seen for row in means.rows(TRIALS)}
    assert seen.keys() >= {"mean of many ones, n = 9", "mean, 60 questions from 8 documents"}
    for what, percent in seen.items():
        most = 99.0 if "reciprocal" in what else 98.0  # few values, that lie at both ends
        assert 92.0 < percent < most, what


@pytest.mark.slow
def test_differences_of_nothing_are_called_real_as_seldom_as_they_say():
    for row in differences.rows(TRIALS):
        assert row.seen < row.stated + 1 + 1.2, row.what  # and two standard errors and a half
