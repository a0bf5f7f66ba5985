"""The interval of a reader's gain per point of recall, as bench/calibration/ratios.py simulates it."""

import pytest

from bench.calibration import ratios


@pytest.mark.slow
@pytest.mark.parametrize("n", [30, 100])
def test_fieller_covers_the_ratio(n: int):
    assert 93 <= ratios.covered(n, 1000) <= 97
