"""Intervals of a mean: scores with many ones, few, none, and of questions that share documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import ndtr

from bench.calibration import SEED, Row
from core.arrays import Floats
from core.stats.intervals import Labels
from core.stats.means import Of, mean_interval

TRIALS = 10_000
RANKS = np.array([1, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 10, 0])
SHARES = np.array([0.5, 0.15, 0.1, 0.05, 0.05, 0.05, 0.1])
TOGETHER = 0.3  # correlation of two questions of one document
BATCH = 50  # trials with the same documents

Draw = Callable[[np.random.Generator, tuple[int, int]], tuple[Floats, Floats]]


def many_ones(random: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Draw four in five of 1, the others anywhere in 0..1; mean .9."""
    return np.where(random.random(shape) < 0.8, 1.0, random.random(shape))


def _yes(random: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    """Draw yes or no, of any share as likely as another."""
    share = random.random((shape[0], 1))
    return (random.random(shape) < share).astype(np.float64), share[:, 0]


def _known(draw: Callable[..., Floats], mean: float) -> Draw:
    return lambda random, shape: (draw(random, shape), np.full(shape[0], mean))


WORLDS: tuple[tuple[str, Of, Draw, tuple[int, ...]], ...] = (
    ("mean of many ones", "shares", _known(many_ones, 0.9), (6, 9, 10, 20, 30)),
    (
        "mean of reciprocal ranks",
        "shares",
        _known(lambda random, shape: random.choice(RANKS, shape, p=SHARES), float(RANKS @ SHARES)),
        (9, 10, 30),
    ),
    ("mean of low shares", "shares", _known(lambda random, n: random.beta(1, 9, n), 0.1), (9, 10, 30)),
    ("mean of middling shares", "shares", _known(lambda random, n: random.beta(5, 5, n), 0.5), (9, 10, 30)),
    ("share of yes, any", "shares", _yes, (9, 10, 30)),
    (
        "mean of long-tailed amounts",
        "amounts",
        _known(lambda random, n: random.exponential(size=n), 1.0),
        (20, 30, 60),
    ),
)


def rows(trials: int | None = None) -> Iterator[Row]:
    """Count how often the interval holds the mean."""
    count = trials or TRIALS
    for what, of, draw, sizes in WORLDS:
        for n in sizes:
            values, mean = draw(np.random.default_rng(SEED), (count, n))
            yield Row(f"{what}, n = {n}", 95, covered(*mean_interval(values, of), mean), count)
    for documents in (30, 15, 8):
        held = [
            covered(*mean_interval(scores, "shares", clusters=labels), 0.5)
            for labels, scores in clustered(documents, -(-count // BATCH))
        ]
        yield Row(f"mean, 60 questions from {documents} documents", 95, float(np.mean(held)), count)


def covered(low: Floats, high: Floats, mean: Floats | float) -> float:
    """Return the percentage of intervals that hold a mean."""
    return float(100 * np.mean((low <= mean) & (mean <= high)))


def clustered(documents: int, batches: int, questions: int = 60) -> Iterator[tuple[Labels, Floats]]:
    """Yield documents of questions, one or more each, and their scores in 0..1 of mean .5, `BATCH` rows."""
    random = np.random.default_rng(SEED)
    for _ in range(batches):
        further = random.integers(documents, size=questions - documents)
        labels = np.concatenate([np.arange(documents), further])
        shared = random.normal(size=(BATCH, documents))[:, labels]
        own = random.normal(size=(BATCH, questions))
        yield labels, ndtr(np.sqrt(TOGETHER) * shared + np.sqrt(1 - TOGETHER) * own)
