"""Intervals of percentiles where queries follow one another: hold, or are withheld."""

import numpy as np
import pytest

from bench.calibration.latency import seen, series, summarised

TRIALS = 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "alike", "shown", "least"),
    # fewest shown, and least share of what is shown that holds, of p50 and p95; 0: none has to be shown
    [
        (60, 0.0, (0.99, 0.3), (0.95, 0.92)),
        (60, 0.3, (0.97, 0), (0.94, None)),
        (60, 0.6, (0.8, 0), (0.94, None)),
        (60, 0.9, (0, 0), (None, None)),
        (200, 0.3, (0.99, 0.99), (0.94, 0.94)),
        (200, 0.6, (0.99, 0.9), (0.94, 0.94)),
        (200, 0.9, (0.6, 0), (0.91, None)),
    ],
)
def test_an_interval_holds_or_is_withheld(n, alike, shown, least):
    for of, part, held in zip(seen(n, alike, TRIALS).values(), shown, least, strict=True):
        assert of[0] >= part
        assert of[2] <= 0.075  # shown and wrong: 5 % and the error of so many trials
        assert held is None or of[1] >= held


def test_without_an_order_queries_count_each():
    shown, held, _ = seen(60, 0.6, 400, ordered=False)["p50"]
    assert shown == 1
    assert held < 0.88


def test_what_queries_count_as_is_said():
    random = np.random.default_rng(5)
    near, far = (
        summarised(series(random, 1, 60, alike), ordered=True).row(0, named=True) for alike in (0.5, 0.95)
    )
    assert near["p50_reason"].startswith("neighbouring timings resemble one another: 60 count as ")
    assert near["p95_low"] is None
    assert near["p95"] is not None
    assert far["p50_reason"].endswith(" for the p50, too few for a 95 % interval")
    assert (far["p50_low"], far["p50"] is None) == (None, False)
