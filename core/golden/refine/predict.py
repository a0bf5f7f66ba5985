"""Whether to refine: the judge's noise from repeated judgements, and by simulation what each way would gain.

Judge a few batches several times (shuffled anew each time, so that a liking for the first place counts as
noise), before anything is learned from them: batches of the first turns are drawn by chance. Then `noise_of`
and `predict` say what refining would bring and cost, or that it would lose.

Simulated are queries whose true order is known, and a judge with a stated noise. The world of metrics.md §7:
the true usefulness of the items is normal, in grades; a grade is the truth with noise, rounded and cut to
1..5, and items of one grade lie in any order; the judge orders a batch by the truth with noise, drawn anew
for every item of every batch. The spread of the truth is not stated there: with 1.1 grades alone have its tau
of .69, and every other figure of it comes out, too.
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

from core.errors import InputError
from core.golden.refine.base import METHODS, RefineSettings
from core.golden.refine.methods import refinement
from core.prices import CURRENCY, PriceBook
from core.stats.intervals import SEED, resample_weights
from core.stats.means import mean_interval

Floats = NDArray[np.float64]
GRADE_NOISE = 0.35
MOST_ITEMS = 1_000
MOST_RUNS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Conditions that are simulated; noises are standard deviations in grades."""

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


@dataclass(frozen=True, slots=True)
class Simulated:
    """Means over simulated queries, with 95 % intervals; tau is Kendall's, to the true order."""

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
    """Return one query: tau refined and by grades, turns, contradictions, whether it came to rest."""
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
    """Return Kendall's tau of an order, best first, to true values without ties."""
    values = truth[np.array(order)]
    pairs = np.triu_indices(len(values), 1)
    return float(np.sign(np.subtract.outer(values, values)[pairs]).mean())


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
    agreement = float(taus.mean())
    return Noise(float(_sigma(agreement)), float(low), float(high), agreement, len(kept), sum(map(len, kept)))


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
    """Return the noise, in standard deviations of the truth, at which repeats agree like this in the mean."""
    rho = np.clip(np.sin(np.pi / 2 * np.asarray(agreement)), 1 / (1 + _MOST**2), 1.0)
    return np.asarray(np.sqrt(1 / rho - 1))


def world_of(grades: Mapping[str, Sequence[float]], noise: float = 0.0) -> World:
    """Return the world that the grades by query speak for; the noise is in deviations of the truth."""
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
    """Return dollars of one call; None where a price is not known."""
    total = 0.0
    for unit, tokens in (("input_tokens", input_tokens), ("output_tokens", output_tokens)):
        price = book.find(model, unit)
        if price is None or price.currency != CURRENCY:
            return None
        total += price.each * tokens
    return total


@dataclass(frozen=True, slots=True)
class Prediction:
    """Gains and costs of refining, as predicted."""

    # A row for "none" (by grades alone), "locks" and "map": method, tau (Kendall's, to the true order), low
    # and high (95 % over simulated queries, the noise taken as measured), worst (tau at the upper end of the
    # noise's interval; null where that has none), grades (tau of the order by grades), turns (calls per
    # query), usd (of all queries; null where a price is not known) and recommended
    ways: pl.DataFrame
    recommended: Choice
    noise: Noise  # What it rests on


def predict(
    noise: Noise,
    grades: Mapping[str, Sequence[float]],
    settings: RefineSettings,
    usd: float | None,
    *,
    runs: int = 40,
    limit: float | None = None,
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
        limit: The most dollars that refining may take; None = any.

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
    """Return the settings with no more turns than a limit in dollars pays for; the least is one."""
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
    """Predict what each way would bring, and which is recommended: `Prediction.ways`.

    Which one it is follows from the noise and from the turns that the settings allow: at equal calls locks
    lead with few, maximum a posteriori with many.

    Args:
        worst: The noise at the upper end of its interval, in grades; None = it has none.
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
    recommended: Choice = min(near, key=lambda row: row["turns"])["method"] if near else "none"
    ways = pl.DataFrame([alone, *rows], schema_overrides={"worst": pl.Float64, "usd": pl.Float64})
    return ways.with_columns(recommended=pl.col("method") == recommended)
