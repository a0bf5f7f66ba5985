"""Whether as many questions as a pilot asks for have the power that is stated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import ndtr, ndtri

from bench.calibration import SEED, Row
from core.stats.significance import ALPHA, needed_limits, queries_needed, spread_limits

TRIALS = 20_000
PILOT = 20
EFFECTS = (0.3, 0.5, 0.8)


def rows(trials: int | None = None) -> Iterator[Row]:
    """Average the power of what pilots ask for, and count those whose larger end has it."""
    many = trials or TRIALS
    for effect in EFFECTS:
        likely, most, enough, none = seen(effect, many)
        what = f"pilot of {PILOT}, true difference {effect:g} sd"
        yield Row(f"{what}: power of `needed`, on average", 80, 100 * likely, many)
        yield Row(
            f"{what}: of the larger end, where there is one ({100 * (1 - none):.0f} of 100)",
            80,
            100 * most,
            many,
        )
        yield Row(f"{what}: the larger end has 80 % power, or none is stated", 90, 100 * enough, many)
    for n in (20, 64):
        yield Row(f"spread of {n} questions within its 80 % limits", 80, 100 * spread_held(n, many), many)


def seen(effect: float, trials: int) -> tuple[float, float, float, float]:
    """Return the mean power of `needed` and its larger end, how often that suffices, and is none."""
    pilots = np.random.default_rng([SEED, round(10 * effect)]).normal(effect, 1.0, (trials, PILOT))
    gap, sd = pilots.mean(axis=1), pilots.std(axis=1, ddof=1)
    most = needed_limits(gap, sd, np.full(trials, PILOT))[1]
    none = np.isnan(most)
    powers = power(effect, most[~none])
    enough = none.mean() + (powers >= 0.8).sum() / trials
    return (
        float(power(effect, queries_needed(sd, gap)).mean()),
        float(powers.mean()),
        float(enough),
        float(none.mean()),
    )


def spread_held(n: int, trials: int) -> float:
    """Return how often the limits hold the true standard deviation."""
    sd = np.random.default_rng([SEED, n]).normal(0.0, 1.0, (trials, n)).std(axis=1, ddof=1)
    low, high = spread_limits(sd, np.full(trials, n))
    return float(((low <= 1.0) & (high >= 1.0)).mean())


def power(effect: float, n: np.ndarray) -> np.ndarray:
    """Return the power of a two-sided test of n questions, one standard deviation each."""
    return np.asarray(ndtr(effect * np.sqrt(n) - ndtri(1 - ALPHA / 2)))
