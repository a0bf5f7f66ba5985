"""Intervals of a ratio of two gains: a reader's per point of recall."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.calibration import SEED, Row
from core.stats.fieller import fieller
from core.stats.intervals import Sample, interval, resampled, weights

RATIO = 0.25
TRIALS = 4000


def covered(n: int, trials: int, *, bootstrap: bool = False) -> float:
    """Simulate gains of n questions; return how often the ratio is in, in percent of the stated intervals."""
    rng = np.random.default_rng(SEED + n)
    recall = np.clip(rng.normal(0.15, 0.35, (trials, n)).round(1), -1, 1)
    score = RATIO * recall + rng.choice([-0.5, 0.0, 0.5], p=[0.1, 0.8, 0.1], size=(trials, n))
    sample = Sample.ratios(score, recall)
    if bootstrap:
        low, high = interval(sample.estimate(), resampled(sample, weights(n, 500)))
    else:
        low, high = fieller(sample)
    stated = ~np.isnan(low)
    return float(100 * np.mean((low <= RATIO) & (high >= RATIO), where=stated))


def rows(trials: int | None = None) -> Iterator[Row]:
    """Yield the ratio's coverage by number of questions."""
    for n in (20, 30, 100):
        seen = covered(n, trials or TRIALS)
        yield Row(f"reader gain ÷ recall gain, n = {n}, where stated", 95, seen, trials or TRIALS, SEED + n)
