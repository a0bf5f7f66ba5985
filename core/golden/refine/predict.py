"""Whether to refine: the judge's noise from repeated judgements, and each method's gain by simulation.

Judge a few batches several times (reshuffled each time, so that a preference for the first place counts as
noise), before anything is learned from them: the first turns draw their batches at random. Then `noise_of`
and `predict` estimate what refining gains or loses, and what it costs.

The simulated queries have a known true order and a judge with a given noise, as in metrics.md §7:
the true usefulness of the items is normal, in grades; a grade is the truth with noise, rounded and cut to
1..5, and items of equal grade are in random order; the judge orders a batch by the truth with noise, drawn
anew for every item of every batch. The spread of the truth is not given there: at 1.1 the grades alone reach
its tau of .69, and all its other figures are reproduced, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.arrays import Floats
from core.errors import InputError
from core.golden.refine.base import METHODS, RefineSettings
from core.golden.refine.methods import refinement
from core.prices import CURRENCY, PriceBook
from core.stats.intervals import SEED, resample_weights
from core.stats.means import mean_interval

GRADE_NOISE = 0.35
MOST_ITEMS = 1_000
MOST_RUNS = 10_000
_Choice = Literal["none", "locks", "map"]
_MOST = 10.0  # standard deviations of the truth: a judge this noisy cannot distinguish anything
_NEAR = 0.01  # difference in tau within which a cheaper method is preferred to the best


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Simulated conditions; noise is a standard deviation in grades."""

    noise: float  # noise of the judge's orders
    items: int = 40  # per query
    grade_noise: float = GRADE_NOISE  # noise of the grades
    spread: float = 1.1  # standard deviation of the truth
    mean: float = 3.0  # mean of the truth

    def __post_init__(self) -> None:
        """Refuse conditions that cannot be simulated."""
        if not 2 <= self.items <= MOST_ITEMS:
            raise InputError(f"{self.items} items cannot be simulated.", do=f"Use 2 to {MOST_ITEMS}.")
        for name, value in (("noise", self.noise), ("grade noise", self.grade_noise)):
            if not 0 <= value < np.inf:
                raise InputError(f"A {name} of {value} is not possible.", do="Use 0 or more.")
        if not 0 < self.spread < np.inf:
            raise InputError(f"A spread of {self.spread} is not possible.", do="Use more than 0.")
        if not 1 <= self.mean <= 5:
            raise InputError(f"A mean grade of {self.mean} is not possible.", do="Use 1 to 5.")


@dataclass(frozen=True, slots=True)
class Simulated:
    """Means over simulated queries, with 95 % intervals; tau is Kendall's, against the true order."""

    tau: float  # Tau of the refined order
    low: float  # Lower end of its interval
    high: float  # Upper end
    grades: float  # Tau of the order by grades alone
    grades_low: float  # Lower end of its interval
    grades_high: float  # Upper end
    gain: float  # Tau gained by refining
    gain_low: float  # Lower end of its interval; both orders are of the same queries
    gain_high: float  # Upper end
    turns: float  # Batches judged
    contradictions: float  # Pairs judged against a path of locks
    stable: float  # Share of the queries that became stable before the limit of turns; 0..1


@lru_cache(maxsize=128)
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
    means = rows.mean(axis=1)
    low, high = (np.where(np.isnan(end), means, end) for end in mean_interval(rows, "differences"))
    figures = [*np.stack([means, low, high], axis=1).ravel(), *values[:, 2:].mean(axis=0)]
    return Simulated(*map(float, figures))


def _run(settings: RefineSettings, world: World, seed: int, number: int) -> tuple[float, ...]:
    """Return one query's tau refined and by grades, turns, contradictions, and whether it became stable."""
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
    """Return Kendall's tau between an order, best first, and true values without ties."""
    values = truth[np.array(order)]
    pairs = np.triu_indices(len(values), 1)
    return float(np.sign(np.subtract.outer(values, values)[pairs]).mean())


@dataclass(frozen=True, slots=True)
class GradeNoise:
    """A judge's disagreement with itself: a standard deviation, relative to the true spread of the items."""

    sigma: float  # 0 = always the same order; at most 10, where orders agree only by chance
    low: float  # Lower end of its 95 % bootstrap interval over batches; NaN with fewer than two batches
    high: float  # Upper end
    agreement: float  # Mean Kendall's tau between two orders of a batch
    batches: int  # Batches that were judged more than once
    orders: int  # Orders of those batches


def noise_of(repeats: Sequence[Sequence[Sequence[int]]]) -> GradeNoise:
    """Estimate the noise of a judge from repeated judgements of the same batches.

    Two orders of one batch rank the same truth with independent noise. If truth and noise are normal, their
    values correlate with rho = 1 / (1 + sigma²), and Kendall's tau between them is 2 / pi · asin(rho) on
    average, whatever the size of the batch.

    Args:
        repeats: Orders of every batch, best first; a batch with one order is left out.

    Raises:
        InputError: If no batch has two orders, or two orders of a batch have different items.
    """
    kept = [orders for orders in repeats if len(orders) > 1]
    if not kept:
        raise InputError("No batch was judged twice.", do="Judge some batches twice or more.")
    taus = np.array([_agreement(orders) for orders in kept])
    low = high = np.nan
    if len(taus) > 1:
        means = resample_weights(len(taus), 2000, SEED) @ taus / len(taus)
        high, low = _sigma(np.quantile(means, (0.025, 0.975)))
    agreement = float(taus.mean())
    return GradeNoise(
        float(_sigma(agreement)), float(low), float(high), agreement, len(kept), sum(map(len, kept))
    )


def _agreement(orders: Sequence[Sequence[int]]) -> float:
    """Average tau over all pairs of orders of a batch."""
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
    """Return the noise, in standard deviations of the truth, at which repeats agree this much on average."""
    rho = np.clip(np.sin(np.pi / 2 * np.asarray(agreement)), 1 / (1 + _MOST**2), 1.0)
    return np.asarray(np.sqrt(1 / rho - 1))


def world_of(grades: Mapping[str, Sequence[float]], noise: float = 0.0) -> World:
    """Return the world that the grades of each query imply; the noise is in deviations of the truth."""
    known = [np.asarray(values, dtype=np.float64) for values in grades.values() if len(values) > 1]
    if not known:
        raise InputError("No query has two passages to put in order.")
    variance = float(np.mean([values.var() for values in known])) - GRADE_NOISE**2 - 1 / 12  # for rounding
    spread = max(variance, 0.1) ** 0.5
    return World(
        noise=noise * spread,
        items=int(np.median([len(values) for values in known])),
        spread=spread,
        mean=float(np.mean([values.mean() for values in known])),
    )


def usd_per_call(book: PriceBook, model: str, input_tokens: float, output_tokens: float) -> float | None:
    """Return the price of one call in dollars, or None if a price is unknown."""
    total = 0.0
    for unit, tokens in (("input_tokens", input_tokens), ("output_tokens", output_tokens)):
        price = book.find(model, unit)
        if price is None or price.currency != CURRENCY:
            return None
        total += price.each * tokens
    return total


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predicted gains and costs of refining."""

    # A row for "none" (by grades alone), "locks" and "map": method, tau (Kendall's, to the true order), low
    # and high (95 % over simulated queries, at the measured noise), worst (tau at the upper end of the
    # noise's interval; null if that is unknown), grades (tau of the order by grades), turns (calls per
    # query), usd (for all queries; null if a price is unknown) and recommended
    ways: pl.DataFrame
    recommended: _Choice
    noise: GradeNoise  # The noise used


def predict(
    noise: GradeNoise,
    grades: Mapping[str, Sequence[float]],
    settings: RefineSettings,
    usd: float | None,
    *,
    runs: int = 40,
    limit: float | None = None,
) -> Prediction:
    """Predict the gain and cost of both methods by simulation at the measured noise.

    A method is worth it if it gains more than chance at the measured noise and does not lose at the upper end
    of its interval. Among such methods the one with the best tau is recommended; if another is within 0.01 of
    it, the one with fewer calls.

    Args:
        grades: For every query the grades of the items to refine.
        settings: Settings of the refinement, used with each method.
        usd: Dollars per call, from `usd_per_call`; None = unknown.
        runs: Queries to simulate for each method.
        limit: The most dollars that refining may cost; None = no limit.

    Raises:
        InputError: If no query has two items, or the runs are out of range.
    """
    world = world_of(grades, noise.sigma)
    worst = None if np.isnan(noise.high) else noise.high * world.spread
    ways = ways_of(
        affordable(settings, usd, len(grades), limit), world, usd, len(grades), runs=runs, worst=worst
    )
    (recommended,) = ways.filter("recommended")["method"]
    return Prediction(ways, recommended, noise)


def affordable(
    settings: RefineSettings, usd: float | None, queries: int, limit: float | None
) -> RefineSettings:
    """Return the settings with no more turns than a limit in dollars pays for, but at least one."""
    if not usd or limit is None:
        return settings
    return replace(settings, turns=max(1, min(settings.turns, int(limit / (usd * max(1, queries))))))


def ways_of(
    settings: RefineSettings,
    world: World,
    usd: float | None,
    queries: int,
    *,
    runs: int,
    worst: float | None = None,
) -> pl.DataFrame:
    """Predict each method's gain, and which is recommended, as in `Prediction.ways`.

    The recommendation follows from the noise and the allowed turns: at equal calls, locks lead
    if there are few, and maximum a posteriori if there are many.

    Args:
        worst: The noise at the upper end of its interval, in grades; None = unknown.
    """
    rows: list[dict[str, Any]] = []
    worth: list[dict[str, Any]] = []
    for method in METHODS:
        chosen = replace(settings, method=method)
        usual = simulate(chosen, world, runs=runs)
        bad = None if worst is None else simulate(chosen, replace(world, noise=worst), runs=runs)
        row: dict[str, Any] = {
            "method": method, "tau": usual.tau, "low": usual.low, "high": usual.high,
            "worst": None if bad is None else bad.tau, "grades": usual.grades, "turns": usual.turns,
            "usd": None if usd is None else usd * usual.turns * queries,
        }  # fmt: skip
        rows.append(row)
        if usual.gain_low > 0 and (bad is None or bad.gain >= 0):
            worth.append(row)
    alone = {
        "method": "none", "tau": usual.grades, "low": usual.grades_low, "high": usual.grades_high,
        "worst": None if worst is None else usual.grades, "grades": usual.grades, "turns": 0.0, "usd": 0.0,
    }  # fmt: skip
    near = [row for row in worth if row["tau"] >= max(candidate["tau"] for candidate in worth) - _NEAR]
    recommended: _Choice = min(near, key=lambda row: row["turns"])["method"] if near else "none"
    ways = pl.DataFrame([alone, *rows], schema_overrides={"worst": pl.Float64, "usd": pl.Float64})
    return ways.with_columns(recommended=pl.col("method") == recommended)
