"""Differences of equally good stacks: how often interval and test call one real, and ties by their rule."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.calibration import SEED, Row
from bench.calibration.means import BATCH, clustered, many_ones
from core.arrays import Floats
from core.decide.ties import LEVEL, Paired
from core.stats.intervals import Sample
from core.stats.significance import ALPHA, Setup, compare

TRIALS = 4_000
SIZES = (6, 10, 20)
DELTA = 0.01


def rows(trials: int | None = None) -> Iterator[Row]:
    """Count differences called real that are none, and ties called sure that are just beyond the zone."""
    count = trials or TRIALS
    for n in SIZES:
        random = np.random.default_rng(SEED)
        worlds = {"": random.normal(0.5, 0.1, (2, count, n))}
        worlds[", many ones"] = np.stack([many_ones(random, (count, n)) for _ in range(2)])
        for which, (one, other) in worlds.items():
            yield from _called(f"n = {n}{which}", [_compared(one, other, None)], count)
    for n in (10, 20, 60):
        yield Row(f"stack exactly δ worse called a tie, n = {n}", 5, _tied(n, count), count)
    for documents in (30, 15, 8):
        held = clustered(documents, -(-2 * count // BATCH))
        found = [_compared(*np.split(scores, 2), labels) for labels, scores in held]
        yield from _called(f"60 questions from {documents} documents", found, count)


def _compared(one: Floats, other: Floats, clusters: Floats | None) -> tuple[Floats, Floats]:
    """Return which pairs the interval calls different, and which the test."""
    sample, pairs = Sample.means(np.concatenate([one, other]), clusters), np.arange(len(one))
    found = compare(sample, pairs, pairs + len(one), Setup(permutations=2_000))
    low, high, p = (found[name].fill_null(np.nan).to_numpy() for name in ("low", "high", "p"))
    return (low > 0) | (high < 0), p <= ALPHA


def _called(where: str, found: list[tuple[Floats, Floats]], count: int) -> Iterator[Row]:
    for name, called in zip(("interval", "test"), zip(*found, strict=True), strict=True):
        seen = float(100 * np.concatenate(called).mean())
        yield Row(f"null difference called real by the {name}, {where}", 5, seen, count)


def _tied(n: int, count: int) -> float:
    """Return how often a stack that is δ worse is surely no more than that."""
    random = np.random.default_rng(SEED)
    best = random.normal(0.5, 0.1, (count, n))
    values = np.stack([best, random.normal(0.5 - DELTA, 0.1, (count, n))])
    sure = []
    for world in range(count):
        paired = Paired(("best", "other"), values[:, world])
        _, most = paired.ends(0, np.array([1]), np.zeros(2), sign=1.0, tail=1 - LEVEL)
        sure.append(most[0] <= DELTA)
    return float(100 * np.mean(sure))
