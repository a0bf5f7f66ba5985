"""Drift by windows: false alarms, planted drifts, and too few queries."""

import numpy as np
import polars as pl
import pytest

from core.stats.drift import LEAST, drift, windows

N, WINDOWS, DRAWS = 400, 4, 24


def alarms(shift: float) -> tuple[float, float]:
    """Return how often any window drifted, and how often the last interval holds the planted shift."""
    any_of, held = 0, 0
    for seed in range(DRAWS):
        random = np.random.default_rng(seed)
        values = random.standard_normal(N)
        values[N // 2 :] += shift
        rows = drift(values, np.arange(N, dtype=float), WINDOWS)
        any_of += bool(rows["drifted"].any())
        last = rows.row(-1, named=True)
        held += last["shift_low"] <= shift <= last["shift_high"]
    return any_of / DRAWS, held / DRAWS


@pytest.mark.parametrize(("shift", "least", "most"), [(0.0, 0.0, 0.13), (1.0, 1.0, 1.0)])
def test_a_drift_is_found_and_none_is_not(shift: float, least: float, most: float):
    rate, held = alarms(shift)
    assert least <= rate <= most
    assert held >= 0.87


def test_windows_follow_time_and_are_as_large_as_can_be():
    at = np.array([5.0, 1.0, 4.0, 2.0, 3.0])
    assert windows(at, 2).tolist() == [1, 0, 1, 0, 0]


@pytest.mark.parametrize(
    ("n", "count", "compared"),
    [(0, 3, 0), (1, 3, 0), (2 * LEAST - 2, 2, 0), (2 * LEAST, 2, 1), (5 * LEAST, 5, 4)],
)
def test_too_few_are_not_compared(n: int, count: int, compared: int):
    rows = drift(np.random.default_rng(n).random(n), np.arange(n, dtype=float), count)
    assert rows["shift"].drop_nulls().len() == compared
    assert rows["n"].sum() == n


def test_a_window_is_compared_at_the_hours_of_the_first_alone():
    hour, many = 3600.0, 2 * LEAST
    at = np.concatenate([start * hour + np.arange(many) for start in (9, 20, 33)])  # 33 = 9 of the next day
    rows = drift(np.random.default_rng(1).random(3 * many), at, 3)
    assert rows["compared"].to_list() == [None, 0, many]
    assert rows["p"].is_null().to_list() == [True, True, False]


def test_sessions_are_not_parted_and_few_are_not_compared():
    at = np.arange(120.0)
    session = np.repeat(np.arange(12), 10)
    assert windows(at, 5, session).tolist() == np.repeat([0, 1, 2, 3, 4], [30, 20, 30, 20, 20]).tolist()
    rows = drift(np.random.default_rng(2).random(120), at, 2, session=session)
    assert rows.select("n", "sessions", "compared", "shift").rows() == [
        (60, 6, None, None),
        (60, 6, 60, None),
    ]
    assert rows["low"].null_count() == 2


def test_what_is_unknown_is_left_out():
    values = np.array([1.0, np.nan, 3.0, 4.0])
    rows = drift(values, np.array([1.0, 2.0, np.nan, 4.0]), 2)
    assert rows.select("n", "mean").rows() == [(1, 1.0), (1, 4.0)]
    assert rows.filter(pl.col("drifted")).is_empty()
