"""Relevant passages that nobody saw: how often intervals hold the total, and bounds lie above it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from bench.calibration import SEED, Row
from core.arrays import Floats
from core.stats import captures
from core.stats.captures import Total

TRIALS, MODEL_TRIALS = 2000, 1000
QUERIES, RELEVANT = 60, 12


@dataclass(frozen=True, slots=True)
class World:
    """How lists hold relevant passages."""

    chances: tuple[float, ...]  # of each list to hold one
    same: float = 0.0  # share of the passages that the first two lists hold for sure
    easy: float = 0.0  # deviation, on the logit, of how easy a passage is for all lists


INDEPENDENT = (World((0.6, 0.5)), World((0.8, 0.3)), World((0.5, 0.4, 0.3)))
MODELLED = (World((0.5, 0.4, 0.3)), World((0.7, 0.6, 0.3)), World((0.4, 0.3, 0.5), same=0.3))


def histories(random: np.random.Generator, world: World) -> Floats:
    """Draw what the lists of a world hold, by query."""
    query = np.repeat(np.arange(QUERIES), RELEVANT)
    easy = world.easy * random.normal(size=(len(query), 1))
    held = random.random((len(query), len(world.chances))) < expit(logit(np.array(world.chances)) + easy)
    held[random.random(len(query)) < world.same, :2] = True
    some = held.any(axis=1)
    return captures.histories(held[some], query[some], QUERIES)


def drawn(world: World, estimate: Callable[[Floats], Total | None], trials: int) -> list[Total]:
    """Estimate the total of a world, many times."""
    random = np.random.default_rng(SEED)
    found = (estimate(histories(random, world)) for _ in range(trials))
    return [one for one in found if one is not None]


def above(found: Sequence[Total]) -> float:
    """Return in how many percent of the trials the low end lies above the truth."""
    return 100 * float(np.mean([one.low > QUERIES * RELEVANT for one in found]))


def held(found: Sequence[Total]) -> float:
    """Return in how many percent of the trials the interval holds the truth."""
    return 100 * float(np.mean([one.low <= QUERIES * RELEVANT <= one.high for one in found]))


def rows(trials: int | None = None) -> Iterator[Row]:
    """Count bounds above the truth, then how often the averaged models hold it."""
    n = trials or TRIALS
    for world in (*INDEPENDENT, World((0.6, 0.5), easy=1.0)):
        seen = above(drawn(world, captures.chao, n))
        yield Row(f"Chao, lower bound above the truth: {_named(world)}", 2.5, seen, n)
    n = trials or MODEL_TRIALS
    for world in MODELLED:
        yield Row(f"log-linear: {_named(world)}", 95, held(drawn(world, captures.log_linear, n)), n)


def _named(world: World) -> str:
    kind = "of which two find the same" if world.same else "that find the easy ones" if world.easy else ""
    chances = ", ".join(f"{chance:g}" for chance in world.chances)
    return f"{len(world.chances)} lists {kind or 'that are independent'} ({chances})"
