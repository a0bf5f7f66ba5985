"""What a refinement would reach: queries whose true order is known, and a judge with a stated noise.

The world of metrics.md §7: the true usefulness of the items is normal, in grades; a grade is the truth with
noise, rounded and cut to 1..5, and items of one grade lie in any order; the judge orders a batch by the truth
with noise, drawn anew for every item of every batch. The spread of the truth is not stated there: with 1.1
grades alone have its tau of .69, and every other figure of it comes out, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError
from core.golden.refine.base import RefineSettings
from core.golden.refine.methods import refinement
from core.stats.intervals import SEED, bootstrap_means

Floats = NDArray[np.float64]
GRADE_NOISE = 0.35
MOST_ITEMS = 1_000
MOST_RUNS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What is simulated; noises are standard deviations in grades."""

    noise: float  # of the judge who orders
    items: int = 40  # of a query
    grade_noise: float = GRADE_NOISE  # of the grades
    spread: float = 1.1  # standard deviation of the truth
    mean: float = 3.0  # of the truth

    def __post_init__(self) -> None:
        """Refuse what cannot be simulated."""
        if not 2 <= self.items <= MOST_ITEMS:
            raise InputError(f"{self.items} items cannot be simulated.", do=f"Use 2 to {MOST_ITEMS}.")
        for name, value in (("noise", self.noise), ("grade noise", self.grade_noise)):
            if not 0 <= value < np.inf:
                raise InputError(f"A {name} of {value} is not possible.", do="Use 0 or more.")
        if not 0 < self.spread < np.inf:
            raise InputError(f"A spread of {self.spread} is not possible.", do="Use more than 0.")
        if not 1 <= self.mean <= 5:
            raise InputError(f"A mean grade of {self.mean} is not possible.", do="Use 1 to 5.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """Means over simulated queries, with 95 % bootstrap intervals; tau is Kendall's, to the true order."""

    tau: float  # Of the refined order
    low: float  # Lower end of its interval
    high: float  # Upper end
    grades: float  # Tau of the order by grades alone
    grades_low: float  # Lower end of its interval
    grades_high: float  # Upper end
    gain: float  # What refining adds to tau
    gain_low: float  # Lower end of its interval; both orders are of the same queries
    gain_high: float  # Upper end
    turns: float  # Batches judged
    contradictions: float  # Pairs judged against a path of locks
    stable: float  # Share of the queries that came to rest before the limit of turns; 0..1
    runs: int  # Queries simulated
    seed: int  # Of all that is random


def simulate(settings: RefineSettings, world: World, *, runs: int = 200, seed: int = SEED) -> Simulated:
    """Refine simulated queries. The same seed gives every method the same queries.

    Raises:
        InputError: If there are no runs, or too many.
    """
    if not 1 <= runs <= MOST_RUNS:
        raise InputError(f"{runs} runs are not possible.", do=f"Use 1 to {MOST_RUNS}.")
    values = np.array([_run(settings, world, seed, number) for number in range(runs)])
    tau, grades = values[:, 0], values[:, 1]
    rows = np.array([tau, grades, tau - grades])
    means, (low, high) = rows.mean(axis=1), bootstrap_means(rows, seed=seed)
    ends = [
        (float(mean), *(float(mean if np.isnan(end) else end) for end in pair))
        for mean, *pair in zip(means, low, high, strict=True)
    ]
    return Simulated(
        tau=ends[0][0], low=ends[0][1], high=ends[0][2],
        grades=ends[1][0], grades_low=ends[1][1], grades_high=ends[1][2],
        gain=ends[2][0], gain_low=ends[2][1], gain_high=ends[2][2],
        turns=float(values[:, 2].mean()), contradictions=float(values[:, 3].mean()),
        stable=float(values[:, 4].mean()), runs=runs, seed=seed,
    )  # fmt: skip


def _run(settings: RefineSettings, world: World, seed: int, number: int) -> tuple[float, ...]:
    """One query: tau refined and by grades, turns, contradictions, whether it came to rest."""
    random = np.random.default_rng([seed, number])
    truth = random.normal(world.mean, world.spread, world.items)
    grades = np.clip(np.round(truth + random.normal(0.0, world.grade_noise, world.items)), 1, 5)
    ranks = random.permutation(world.items)
    names = [str(item) for item in range(world.items)]
    query = refinement(grades.tolist(), ranks.tolist(), names, settings, seed=f"{seed}/{number}")
    before = tau(query.order(), truth)
    while (batch := query.batch()) is not None:
        items = np.array(batch)
        seen = truth[items] + random.normal(0.0, world.noise, len(items))
        query.told(items[np.argsort(-seen)].tolist())
    return (
        tau(query.order(), truth), before, query.turns, len(query.contradictions), query.stopped == "stable"
    )  # fmt: skip


def tau(order: Sequence[int], truth: Floats) -> float:
    """Kendall's tau of an order, best first, to true values without ties."""
    values = truth[np.array(order)]
    pairs = np.triu_indices(len(values), 1)
    return float(np.sign(np.subtract.outer(values, values)[pairs]).mean())
