"""No drift where nothing changed: sessions, a daily cycle, both; a drift where there is one."""

from dataclasses import replace

import pytest

from bench.calibration.drift import QUIET, seen

TRIALS = 80


@pytest.mark.slow
@pytest.mark.parametrize("what", list(QUIET))
def test_nothing_changed(what):
    alarms, held = seen(QUIET[what], TRIALS)
    assert alarms <= 0.125  # 5 % and three standard errors
    assert held >= 0.87


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "least"), [("single queries", 0.9), ("daily cycle and sessions of five", 0.5)]
)
def test_half_a_standard_deviation_is_found(what, least):
    assert seen(replace(QUIET[f"nothing changed, {what}"], shift=0.5), TRIALS)[0] >= least
