"""The interval of the area under the curve: how often it holds the area, where few tell and where many do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import ndtri

from bench.calibration import SEED, Row
from core.arrays import Floats
from core.stats.separation import area

TRIALS = 4000
SIZES = ((5, 20), (20, 5), (5, 5), (10, 50), (40, 30))
DOCUMENTS = ((10, 6), (15, 6), (30, 4))
AREA = 0.94


def scores(random: np.random.Generator, members: int, others: int, spread: float) -> tuple[Floats, Floats]:
    """Draw normal scores of two classes whose area is `AREA`; `spread` is the members' deviation."""
    ahead = float(ndtri(AREA)) * np.hypot(1, spread)
    return random.normal(ahead, spread, members), random.normal(0, 1, others)


def held(members: int, others: int, trials: int, spread: float = 1.0) -> float:
    """Return in how many percent of the trials the interval holds the area."""
    random = np.random.default_rng(SEED)
    ends = (area(*scores(random, members, others, spread)) for _ in range(trials))
    return 100 * float(np.mean([low <= AREA <= high for _, low, high in ends]))


def grouped(documents: int, each: int, trials: int) -> float:
    """Return the same of classes whose questions come in documents that make half of a score's variance."""
    random, hits = np.random.default_rng(SEED), 0
    of = np.repeat(np.arange(documents), each)
    member = of % 2 == 0
    for _ in range(trials):
        drawn = random.normal(2 * float(ndtri(AREA)) * member) + random.normal(size=documents)[of]
        _, low, high = area(drawn[member], drawn[~member], clusters=(of[member], of[~member]))
        hits += low <= AREA <= high
    return 100 * hits / trials


def rows(trials: int | None = None) -> Iterator[Row]:
    """Count over classes of several sizes, then with members that scatter twice as much."""
    n = trials or TRIALS
    for members, others in SIZES:
        yield Row(f"AUC {AREA}, {members} against {others}", 95, held(members, others, n), n)
    yield Row(f"AUC {AREA}, 5 against 20, members scatter twice", 95, held(5, 20, n, 2.0), n)
    for documents, each in DOCUMENTS:
        held_by = grouped(documents, each, n)
        yield Row(f"AUC {AREA}, {documents} documents of {each}", 95, held_by, n)
