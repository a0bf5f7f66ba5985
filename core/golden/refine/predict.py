"""Whether to refine: the judge's noise from repeated judgements, and what each way would gain at that noise.

Judge a few batches several times (shuffled anew each time, so that a liking for the first place counts as
noise), before anything is learned from them: batches of the first turns are drawn by chance. Then `noise_of`
and `predict` say what refining would bring and cost, or that it would lose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.errors import InputError
from core.golden.refine.base import METHODS, RefineSettings
from core.golden.refine.simulate import GRADE_NOISE, Simulated, World, simulate, tau
from core.prices import CURRENCY, PriceBook
from core.stats.intervals import SEED, resample_weights

Floats = NDArray[np.float64]
Choice = Literal["none", "locks", "map"]

_MOST = 10.0  # standard deviations of the truth: such a judge tells nothing apart
_NEAR = 0.01  # of tau: what is this near to the best may be chosen for its price


@dataclass(frozen=True, slots=True)
class Noise:
    """How much a judge differs from itself: a standard deviation, in those of the truth of the items."""

    sigma: float  # 0 = always the same order; at most 10, where orders agree no more than by chance
    low: float  # Lower end of its 95 % bootstrap interval over batches; NaN with fewer than two batches
    high: float  # Upper end
    agreement: float  # Mean Kendall's tau between two orders of a batch
    batches: int  # Batches that were judged more than once
    orders: int  # Orders of those


def noise_of(repeats: Sequence[Sequence[Sequence[int]]]) -> Noise:
    """Estimate the noise of a judge from repeated judgements of the same batches.

    Two orders of one batch rank the same truth with independent noise. With normal truth and noise their
    values correlate with rho = 1 / (1 + sigma²), and Kendall's tau between them is 2 / pi · asin(rho) in the
    mean, whatever the size of the batch.

    Args:
        repeats: Of every batch its orders, best first; a batch with one order is left out.

    Raises:
        InputError: If no batch has two orders, or two orders of a batch are of different items.
    """
    kept = [orders for orders in repeats if len(orders) > 1]
    if not kept:
        raise InputError("No batch was judged twice.", do="Judge some batches twice or more.")
    taus = np.array([_agreement(orders) for orders in kept])
    low = high = np.nan
    if len(taus) > 1:
        means = resample_weights(len(taus), 2000, SEED) @ taus / len(taus)
        high, low = _sigma(np.quantile(means, (0.025, 0.975)))
    return Noise(
        float(_sigma(taus.mean())),
        float(low),
        float(high),
        float(taus.mean()),
        len(kept),
        sum(map(len, kept)),
    )


def _agreement(orders: Sequence[Sequence[int]]) -> float:
    """Mean tau of every two orders of a batch."""
    names = sorted(orders[0])
    if len(names) < 2 or any(sorted(order) != names for order in orders):
        raise InputError("Orders of one batch are of different items.")
    place = {name: at for at, name in enumerate(names)}
    taus = []
    for one, other in combinations(orders, 2):
        worth = np.empty(len(names))
        worth[[place[name] for name in other]] = np.arange(len(names), 0, -1)
        taus.append(tau([place[name] for name in one], worth))
    return float(np.mean(taus))


def _sigma(agreement: NDArray[np.floating] | float) -> Floats:
    """The noise, in standard deviations of the truth, at which repeats agree like this in the mean."""
    rho = np.clip(np.sin(np.pi / 2 * np.asarray(agreement)), 1 / (1 + _MOST**2), 1.0)
    return np.asarray(np.sqrt(1 / rho - 1))


def world_of(grades: Mapping[str, Sequence[float]], noise: float = 0.0) -> World:
    """The world that the grades of some queries speak for: their median number, mean and spread.

    Args:
        grades: Of every query the grades of the items that are refined.
        noise: Of the judge, in standard deviations of the truth.

    Raises:
        InputError: If no query has two items.
    """
    known = [np.asarray(values, dtype=np.float64) for values in grades.values() if len(values) > 1]
    if not known:
        raise InputError("No query has two passages to put in order.")
    variance = float(np.mean([values.var() for values in known])) - GRADE_NOISE**2 - 1 / 12  # of rounding
    spread = max(variance, 0.1) ** 0.5
    return World(
        noise=noise * spread,
        items=int(np.median([len(values) for values in known])),
        spread=spread,
        mean=float(np.mean([values.mean() for values in known])),
    )


def usd_per_call(book: PriceBook, model: str, input_tokens: float, output_tokens: float) -> float | None:
    """Dollars of one call; None where a price is not known."""
    total = 0.0
    for unit, tokens in (("input_tokens", input_tokens), ("output_tokens", output_tokens)):
        price = book.find(model, unit)
        if price is None or price.currency != CURRENCY:
            return None
        total += price.each * tokens
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to refine, and what it is expected to bring."""

    method: Choice  # "locks", "map", or "none": the order by grades
    tau: float  # Kendall's tau to the true order
    low: float  # Lower end of its 95 % interval over simulated queries; the noise is taken as measured
    high: float  # Upper end
    worst: float | None  # Tau at the upper end of the noise's interval; null where that has none
    grades: float  # Tau of the order by grades alone
    turns: float  # Calls per query
    usd: float | None  # Dollars of all queries; null where a price is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What refining would bring."""

    ways: tuple[Way, ...]  # "none", "locks", "map"
    recommended: Choice  # Which of them
    noise: Noise  # What it rests on
    world: World  # What was simulated
    runs: int  # Queries simulated for each
    seed: int  # Of the simulation

    def frame(self) -> pl.DataFrame:
        """A row per way: method, tau, low, high, worst, grades, turns, usd, recommended."""
        rows = pl.DataFrame(
            [asdict(way) for way in self.ways], schema_overrides={"worst": pl.Float64, "usd": pl.Float64}
        )
        return rows.with_columns(recommended=pl.col("method") == self.recommended)


def predict(
    noise: Noise,
    grades: Mapping[str, Sequence[float]],
    settings: RefineSettings,
    usd: float | None,
    *,
    runs: int = 40,
    seed: int = SEED,
) -> Prediction:
    """Predict what refining gains and costs, both ways, by simulation at the measured noise.

    A way is worth it when it gains more than chance at the measured noise and does not lose at the upper end
    of its interval. Of those the one with the best tau is recommended; where another is within 0.01 of it,
    the one with fewer calls.

    Args:
        grades: Of every query the grades of the items that would be refined.
        settings: Of the refinement; each method is tried with them.
        usd: Dollars of one call, as `usd_per_call` tells; None = not known.
        runs: Queries to simulate for each method.

    Raises:
        InputError: If no query has two items, or the runs are out of range.
    """
    world = world_of(grades, noise.sigma)
    ways, worth = [], []
    for method in METHODS:
        chosen = replace(settings, method=method)
        usual = simulate(chosen, world, runs=runs, seed=seed)
        worst = (
            None
            if np.isnan(noise.high)
            else simulate(chosen, replace(world, noise=noise.high * world.spread), runs=runs, seed=seed)
        )
        way = _way(method, usual, worst, len(grades), usd)
        ways.append(way)
        if usual.gain_low > 0 and (worst is None or worst.gain >= 0):
            worth.append(way)
    base = replace(
        ways[0], method="none", tau=usual.grades, low=usual.grades_low, high=usual.grades_high,
        worst=None if np.isnan(noise.high) else usual.grades, turns=0.0, usd=0.0,
    )  # fmt: skip
    best = max((way.tau for way in worth), default=0.0)
    near = [way for way in worth if way.tau >= best - _NEAR]
    recommended = min(near, key=lambda way: way.turns).method if near else "none"
    return Prediction(
        ways=(base, *ways), recommended=recommended, noise=noise, world=world, runs=runs, seed=seed
    )  # fmt: skip


def _way(method: Choice, usual: Simulated, worst: Simulated | None, queries: int, usd: float | None) -> Way:
    return Way(
        method=method, tau=usual.tau, low=usual.low, high=usual.high,
        worst=None if worst is None else worst.tau, grades=usual.grades, turns=usual.turns,
        usd=None if usd is None else usd * usual.turns * queries,
    )  # fmt: skip
