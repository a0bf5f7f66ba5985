"""Thresholds that are tuned on a sample: what new questions lose by them, and what is stated of that."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.calibration import SEED, Row
from core.stats.separation import lost, threshold

TRIALS = 2000
MOST = 0.05
SIZES = (20, 60, 200)


def refused(questions: int, trials: int) -> tuple[float, float]:
    """Return what share of new answerable questions is refused, as stated and as seen; percent."""
    random, told = np.random.default_rng(SEED + questions), []
    for _ in range(trials):
        scores = random.normal(size=questions)
        new = random.normal(size=1000)
        told.append((lost(scores, MOST).mean(), (new < threshold(scores, MOST)).mean()))
    stated, seen = 100 * np.mean(told, axis=0)
    return float(stated), float(seen)


def rows(trials: int | None = None) -> Iterator[Row]:
    """Yield the share of new questions refused where at most 5 % may be, and what is stated of it."""
    often = trials or TRIALS
    for questions in SIZES:
        stated, seen = refused(questions, often)
        yield Row(
            f"refuse at most 5 %: of new questions, {questions} known", 5, seen, often, SEED + questions
        )
        yield Row(
            f"refused wrongly, as stated beside it, {questions} known", stated, seen, often, SEED + questions
        )
