"""Judges set right by people: answers that come in documents, and rankings of 30 graded questions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bench.calibration import SEED, Row
from core.arrays import Floats
from core.stats.corrected import Corrected, ScoredLabels, correct

TRIALS = 2000
GOOD, WRONG = 0.55, 0.2  # Share of good answers, and of those on which the judge errs
ALIKE = 0.1  # Correlation of two answers of a document, in being good and in being misjudged
QUESTIONS, GRADED, K = 1000, 30, 4
RIGHT = 0.8  # Chance that the judge of passages grades one as people do


def documents(random: np.random.Generator, count: int, per: int, graded: int, *, whole: bool) -> ScoredLabels:
    """Draw answers to `per` questions of each of `count` documents, of which people grade some.

    Args:
        graded: How many questions people grade, or how many documents where they are graded whole.
        whole: Whether people grade documents whole.
    """
    labels = np.repeat(np.arange(count), per)
    good, wrong = (_of_document(random, share, count)[labels] for share in (GOOD, WRONG))
    truth = (random.random(len(labels)) < good).astype(np.float64)
    judged = np.where(random.random(len(labels)) < wrong, 1 - truth, truth)
    of = labels if whole else np.arange(len(labels))
    kept = np.isin(of, random.permutation(of.max() + 1)[:graded])
    return ScoredLabels(np.where(kept, truth, np.nan), judged, labels)


def _of_document(random: np.random.Generator, share: float, count: int) -> Floats:
    size = (1 - ALIKE) / ALIKE
    return random.beta(share * size, (1 - share) * size, count)


def rankings(random: np.random.Generator) -> ScoredLabels:
    """Draw P@4 of a stack by people and by a judge, on `QUESTIONS` of which people grade `GRADED` whole."""
    good = random.beta(2.2, 1.8, QUESTIONS)[:, None] > random.random((QUESTIONS, K))
    judged = np.where(random.random(good.shape) < RIGHT, good, ~good).mean(axis=1)
    kept = random.permutation(QUESTIONS) < GRADED
    return ScoredLabels(np.where(kept, good.mean(axis=1), np.nan), judged)


def held(some: list[Corrected], truth: float, level: float = 100) -> float:
    """Return in how many percent of the trials the interval holds the truth."""
    return level * float(np.mean([one.low <= truth <= one.high for one in some]))


def _documents(graded: int, trials: int, *, whole: bool, clustered: bool = True) -> float:
    random = np.random.default_rng(SEED)
    drawn = (documents(random, 20, 50, graded, whole=whole) for _ in range(trials))
    some = (each if clustered else replace(each, clusters=None) for each in drawn)
    return held([correct(each) for each in some], GOOD)


def rows(trials: int | None = None) -> Iterator[Row]:
    """Count how often intervals hold, and how much surer people and a judge are than people alone."""
    n = trials or TRIALS
    for graded in (100, 400):
        seen = _documents(graded, n, whole=False)
        yield Row(f"corrected judge, 20 documents × 50, {graded} graded", 95, seen, n)
    yield Row("corrected judge, 20 documents × 50, 10 graded whole", 95, _documents(10, n, whole=True), n)
    random = np.random.default_rng(SEED)
    told = [correct(rankings(random)) for _ in range(n)]
    yield Row(f"corrected P@{K}, {GRADED} of {QUESTIONS} questions graded", 95, held(told, GOOD), n)
    surer = 100 * float(np.std([one.value for one in told]) / np.std([one.alone for one in told]))
    yield Row(f"corrected P@{K}, standard error of people's alone", 79, surer, n)
