"""The alarm of live quality: how often it is raised where nothing changed, and how soon after a fall."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.calibration import SEED, Row
from core.arrays import Floats
from core.stats.alarm import watch

TRIALS = 2000
LIVE = 1000  # Queries that are judged one after the other, each of which is looked at
WORLDS = ("yes or no", "graded")


def drawn(random: np.random.Generator, world: str, n: int, fall: float = 0.0) -> Floats:
    """Draw qualities of n queries; of the graded ones a tenth is 0, a third 1, the rest between."""
    if world == "yes or no":
        return (random.random(n) < 0.8 - fall).astype(np.float64)
    between = random.beta(2, 1, n).round(2)
    kind = random.random(n)
    graded = np.where(kind < 0.1, 0.0, np.where(kind > 0.67, 1.0, between))
    return np.asarray(graded * (1 - fall))


def raised(world: str, trials: int, first: int = 30) -> float:
    """Return how often, in percent, an alarm is raised though nothing changes."""
    random = np.random.default_rng(SEED + first)
    alarms = [
        watch(drawn(random, world, first + LIVE), first=first, seed=trial).raised for trial in range(trials)
    ]
    return 100 * sum(alarm is not None for alarm in alarms) / trials


def found(world: str, trials: int, *, first: int = 30, before: int = 100, fall: float = 0.15) -> float:
    """Return the median number of queries from a fall to its alarm; infinite where under half raise one."""
    random, waits = np.random.default_rng(SEED), []
    for trial in range(trials):
        values = np.append(drawn(random, world, first + before), drawn(random, world, LIVE, fall))
        alarm = watch(values, first=first, seed=trial).raised
        waits.append(np.inf if alarm is None else alarm + 1 - first - before)
    return float(np.median(waits))


def rows(trials: int | None = None) -> Iterator[Row]:
    """Yield alarms where nothing changed, by kind of quality and size of the reference."""
    for world in WORLDS:
        for first in (30, 100):
            seen = raised(world, trials or TRIALS, first)
            what = f"alarm of live quality, nothing changed, {LIVE} looks: {world}, first {first}"
            yield Row(what, 5, seen, trials or TRIALS, SEED + first)
