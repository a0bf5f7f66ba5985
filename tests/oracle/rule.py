"""The rule of the decision a second time, from its definition alone: numpy, and nothing of the product.

Everything is said in *merit*, the value of the measure with its sign turned where lower is better; NaN is
unknown.
"""

from dataclasses import dataclass, field, replace
from functools import cache
from math import exp, lgamma, pi

import numpy as np

CERTAIN = 8  # queries from which on a tie or a share of draws is said
WITHIN = 1.01  # costs up to 1 % apart count as equal
SLACKS = (1e-12, 1e-9, -1e-9)  # that move the border of every comparison: what then changes hangs on rounding
GRID = 250
CONVERGED = 1e-5  # of the gradient of the likelihood; the posterior mean then stands within .001


@dataclass(frozen=True)
class Question:
    """Stacks as measured, and what is asked of them."""

    names: tuple[str, ...]
    quality: np.ndarray  # [stacks, queries], or [stacks] where only averages are known
    latency: np.ndarray  # ms, of the same shape, or [stacks] where it is one number a stack
    cost: np.ndarray  # [stacks], dollars per 1,000 queries
    rule: str = "quality"
    sla: float | None = None
    budget: float | None = None
    floor: float | None = None
    band: float = 75.0
    higher: bool = True
    binary: bool = False  # 0 or 1 per query
    span: float | None = 1.0  # declared range of the measure
    delta: float | None = None
    shared: np.ndarray | None = None  # places of these queries among those that were timed; None = all

    @property
    def sign(self) -> float:
        return 1.0 if self.higher else -1.0

    @property
    def averages(self) -> bool:
        return self.quality.ndim == 1

    @property
    def n(self) -> int:
        return 0 if self.averages else self.quality.shape[1]

    @property
    def merits(self) -> np.ndarray:
        return self.sign * self.quality

    @property
    def merit(self) -> np.ndarray:
        return self.merits if self.averages else self.merits.mean(axis=1)

    @property
    def p50(self) -> np.ndarray:
        return self.latency if self.latency.ndim == 1 else np.array([_median(one) for one in self.latency])

    @property
    def zone(self) -> float:
        """The difference that does not matter."""
        if self.delta is not None:
            return self.delta
        if self.span is None:
            return 0.0
        return max(0.01, 1 / self.n) if self.binary and self.n else 0.01 * self.span


@dataclass(frozen=True)
class Alternative:
    place: int
    difference: float
    low: float | None
    high: float | None
    saves_usd: float | None
    saves_ms: float | None
    p_within: float | None


@dataclass(frozen=True)
class Choice:
    """What ships and what ties with it; `None` where nothing is feasible."""

    chosen: int | None
    ties: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Answer:
    choices: tuple[Choice, ...]  # more than one where a comparison lies within rounding of its border
    delta: float
    pgs: float | None = None  # unknown where there is nothing to choose from
    p_feasible: float | None = None  # that the chosen stack meets the limits
    expected: float | None = None
    alternatives: list[Alternative] = field(default_factory=list)

    @property
    def chosen(self) -> int | None:
        return self.choices[0].chosen

    @property
    def ties(self) -> frozenset[int]:
        return self.choices[0].ties


def compared(asked: Question) -> Question:
    """Narrow a question to stacks and queries that compare; an empty cell is missing.

    The queries that at least half of the stacks have count. The stack that lacks fewest begins; each other
    may cost a tenth of the queries, as long as half of them stay.
    """
    if asked.averages or not np.isnan(asked.quality).any():
        return asked
    has = ~np.isnan(asked.quality)
    usual = has.sum(axis=0) * 2 >= len(has)
    lacking = [int((usual & ~row).sum()) for row in has]
    first, *others = sorted(range(len(has)), key=lambda place: lacking[place])
    base = usual if lacking[first] * 10 <= usual.sum() else usual & has[first]
    left, kept = base & has[first], [first]
    for place in others:
        lost = int((left & ~has[place]).sum())
        if lost * 10 <= base.sum() and 2 * (left & has[place]).sum() >= base.sum():
            left, kept = left & has[place], [*kept, place]
    kept.sort()
    latency = asked.latency
    return replace(
        asked,
        names=tuple(asked.names[place] for place in kept),
        quality=asked.quality[kept][:, left],
        latency=latency[kept],
        cost=asked.cost[kept],
        shared=np.flatnonzero(left),
    )


def answer(asked: Question, draws: int = 20_000, seed: int = 0) -> Answer:
    """Answer a question in full."""
    choices = tuple(dict.fromkeys(choose(asked, slack) for slack in SLACKS))
    found = Answer(choices, asked.zone)
    if found.chosen is None:
        return found
    chances = None if asked.n < CERTAIN else _chances(asked, found.chosen, draws, seed)
    offered = alternatives(asked, found.chosen, None if chances is None else chances.within)
    if chances is None:
        return replace(found, alternatives=offered)
    return replace(
        found,
        pgs=chances.good,
        p_feasible=chances.feasible,
        expected=asked.sign * posterior_means(asked)[found.chosen],
        alternatives=offered,
    )


# --- what ships -----------------------------------------------------------------------------------


def feasible(asked: Question, slack: float = 0.0) -> np.ndarray:
    """Say which stacks meet every limit; an axis is required only where a limit or the rule asks for it."""
    return _meets(asked, asked.merit, asked.p50, slack)


def _meets(asked: Question, merit: np.ndarray, p50: np.ndarray, slack: float) -> np.ndarray:
    fits = np.ones(merit.shape, bool)
    if asked.floor is not None:
        fits &= merit >= asked.sign * asked.floor - slack
    for limit, value, needed in (
        (asked.sla, p50, asked.rule == "latency"),
        (asked.budget, asked.cost, asked.rule == "cost"),
    ):
        if needed:
            fits &= ~np.isnan(value)
        if limit is not None:
            fits &= value <= limit + slack  # false for NaN
    return fits


def choose(asked: Question, slack: float) -> Choice:
    """Choose by the rule; `slack` moves the border of every comparison."""
    fits = np.flatnonzero(feasible(asked, slack))
    if not len(fits):
        return Choice(None)
    merit = asked.merit
    if asked.rule == "cost":
        left = _most(merit, _cheapest(asked, fits, slack), slack)
        return Choice(_first(asked, _fastest(asked, left, slack)))
    if asked.rule == "latency":
        left = _most(merit, _fastest(asked, fits, slack), slack)
        return Choice(_first(asked, _cheapest(asked, left, slack)))
    best = _settled(asked, _most(merit, fits, slack), slack)
    tied = np.array([place for place in fits if place == best or _ties(asked, best, place, slack)])
    chosen = _settled(asked, tied, slack)
    return Choice(chosen, frozenset(int(place) for place in tied if place != chosen))


def _settled(asked: Question, tied: np.ndarray, slack: float) -> int:
    """Choose among ties: cost, latency, quality, name (a table knows no prompt)."""
    left = _fastest(asked, _cheapest(asked, tied, slack), slack)
    return _first(asked, _most(asked.merit, left, slack))


def _most(merit: np.ndarray, places: np.ndarray, slack: float) -> np.ndarray:
    return places[merit[places] >= merit[places].max() - abs(slack)]


def _cheapest(asked: Question, places: np.ndarray, slack: float) -> np.ndarray:
    """Those within 1 % of the cheapest; of unknown cost only where all are."""
    cost = asked.cost[places]
    return places if np.isnan(cost).all() else places[_near(cost, WITHIN * np.nanmin(cost) + slack)]


def _fastest(asked: Question, places: np.ndarray, slack: float) -> np.ndarray:
    p50 = asked.p50[places]
    return places if np.isnan(p50).all() else places[_near(p50, np.nanmin(p50) + asked.band + slack)]


def _near(values: np.ndarray, border: float) -> np.ndarray:
    """Say which lie below a border; the least always does."""
    return (values <= border) | (values == np.nanmin(values))


def _first(asked: Question, places: np.ndarray) -> int:
    return int(min(places, key=lambda place: asked.names[place]))


def _ties(asked: Question, best: int, other: int, slack: float) -> bool:
    """Whether a stack is surely no more than delta worse than the best, and no slower but for the band."""
    return _as_fast(asked, best, other, slack) and _as_good(asked, best, other, slack)


def _as_fast(asked: Question, best: int, other: int, slack: float) -> bool:
    first, second = asked.p50[best], asked.p50[other]
    if np.isnan(first) or np.isnan(second):
        return bool(np.isnan(first) and np.isnan(second))
    return bool(second - first <= asked.band + slack)


def _as_good(asked: Question, best: int, other: int, slack: float) -> bool:
    if asked.averages:
        return bool(round(asked.merit[best], 3) == round(asked.merit[other], 3))
    loss = asked.merits[best] - asked.merits[other]
    if asked.n < CERTAIN:
        return bool(np.abs(loss).max() < 1e-9)
    return bool(loss.mean() + quantile(0.95, asked.n - 1) * _error(loss) <= asked.zone + slack)


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


@cache
def quantile(share: float, degrees: int) -> float:
    """Return Student's quantile for a share above one half, by adding up the density."""
    constant = exp(lgamma((degrees + 1) / 2) - lgamma(degrees / 2)) / np.sqrt(degrees * pi)
    at = np.linspace(0, 60, 600_001)
    density = constant * (1 + at**2 / degrees) ** (-(degrees + 1) / 2)
    below = 0.5 + np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2 * (at[1] - at[0]))])
    return float(np.interp(share, below, at))


# --- how sure -------------------------------------------------------------------------------------


def distinct(asked: Question) -> tuple[np.ndarray, np.ndarray]:
    """Return one place per distinct row of results, and for each stack the position of its own."""
    _, first, own = np.unique(asked.quality.round(9), axis=0, return_index=True, return_inverse=True)
    return first, own.ravel()


def moments(asked: Question) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean merit and its variance for each distinct stack, and each stack's position among them."""
    first, own = distinct(asked)
    rows = asked.merits[first]
    apart = rows - rows.mean(axis=0)
    return rows.mean(axis=1), apart.var(axis=1, ddof=1) / asked.n, own


@dataclass(frozen=True)
class Chances:
    """Shares of draws: the chosen stack is good, it is feasible, each is no more than delta below it."""

    good: float | None
    feasible: float
    within: np.ndarray


def _chances(asked: Question, chosen: int, draws: int, seed: int) -> Chances:
    means, noise, own = moments(asked)
    spread = max(0.0, float(means.var(ddof=1) - noise.mean())) if len(means) > 1 else 0.0
    kept = np.divide(spread, spread + noise, out=np.ones_like(noise), where=spread + noise > 0)
    shrunk = (means.mean() + kept * (means - means.mean()))[own]
    alone = len(set(own[feasible(asked)])) == 1
    random = np.random.default_rng(seed)
    good, met, within, done = 0, 0, np.zeros(len(asked.names)), 0
    while done < draws:
        block = min(1_000, draws - done)
        done += block
        sample = random.integers(0, asked.n, (block, asked.n))
        rows = np.arange(block)[:, None] * asked.n
        often = np.bincount((sample + rows).ravel(), minlength=block * asked.n).reshape(block, asked.n)
        drawn = shrunk[:, None] + asked.merits @ often.T / asked.n - asked.merit[:, None]
        p50 = _drawn_latency(asked, sample)
        cost = np.broadcast_to(asked.cost[:, None], drawn.shape)
        fits = _meets(replace(asked, cost=cost), drawn, p50, 1e-9)
        good += int((fits[chosen] & _is_good(asked, chosen, fits, drawn, p50)).sum())
        met += int(fits[chosen].sum())
        within += (drawn >= drawn[chosen] - asked.zone - 1e-9).sum(axis=1)
    return Chances(None if alone else good / draws, met / draws, within / draws)


def _drawn_latency(asked: Question, sample: np.ndarray) -> np.ndarray:
    if asked.latency.ndim == 1 or (asked.sla is None and asked.rule != "latency"):
        return np.broadcast_to(asked.p50[:, None], (len(asked.names), len(sample)))
    timed = sample if asked.shared is None else asked.shared[sample]
    return np.stack([np.median(one[timed], axis=1) for one in asked.latency])


def _median(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else np.nan


def _is_good(
    asked: Question, chosen: int, fits: np.ndarray, drawn: np.ndarray, p50: np.ndarray
) -> np.ndarray:
    """Whether the chosen stack is good in each draw, were it feasible."""
    if asked.rule == "cost":
        return asked.cost[chosen] <= WITHIN * np.where(fits, asked.cost[:, None], np.inf).min(axis=0) + 1e-9
    if asked.rule == "latency":
        return p50[chosen] <= np.where(fits, p50, np.inf).min(axis=0) + asked.band + 1e-9
    return drawn[chosen] >= np.where(fits, drawn, -np.inf).max(axis=0) - asked.zone - 1e-9


# --- what to expect -------------------------------------------------------------------------------


def posterior_means(asked: Question) -> np.ndarray:
    """Return each stack's expected merit on new queries, under the prior of greatest likelihood."""
    means, noise, own = moments(asked)
    grid = np.linspace(means.min(), means.max(), GRID)
    noise = np.maximum(noise, 1e-10)
    logs = -((means[:, None] - grid) ** 2) / (2 * noise[:, None])
    likely = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights = prior(likely)
    return ((likely * weights) @ grid / (likely @ weights))[own]


def prior(likely: np.ndarray, limit: int = 1_000) -> np.ndarray:
    """Return the likeliest weights of the columns: EM in leaps (SQUAREM), until nothing can gain."""

    def stepped(weights: np.ndarray) -> np.ndarray:
        return weights * (likely.T @ (1 / (likely @ weights))) / len(likely)

    def value(weights: np.ndarray) -> float:
        return float(np.log(likely @ weights).sum())

    weights = np.full(likely.shape[1], 1 / likely.shape[1])
    for _ in range(limit):
        once = stepped(weights)
        twice = stepped(once)
        if (likely.T @ (1 / (likely @ twice))).max() / len(likely) - 1 < CONVERGED:
            return twice
        first, second = once - weights, twice - 2 * once + weights
        length = max(1.0, float(np.sqrt((first @ first) / max(second @ second, 1e-300))))
        start, weights = weights, twice
        while length > 1.01:
            leap = np.maximum(start + 2 * length * first + length**2 * second, 1e-300)
            leap /= leap.sum()
            if value(leap) >= value(twice) - 1e-9:
                weights = leap
                break
            length = (length + 1) / 2
    return weights


# --- what is offered ------------------------------------------------------------------------------


def alternatives(asked: Question, chosen: int, within: np.ndarray | None) -> list[Alternative]:
    """Return what is cheaper or faster than the chosen and on the frontier, the likeliest as good first."""
    fits = np.flatnonzero(feasible(asked))
    offered = [
        place
        for place in fits
        if place != chosen and _saves(asked, chosen, place) and not _dominated(asked, place, fits)
    ]
    made = [_alternative(asked, chosen, int(place), within) for place in offered]
    return sorted(made, key=lambda each: -(each.p_within if each.p_within is not None else each.difference))


def _saves(asked: Question, chosen: int, place: int) -> bool:
    cheaper = asked.cost[chosen] > WITHIN * asked.cost[place]
    return bool(cheaper or asked.p50[chosen] - asked.p50[place] > asked.band)


def _dominated(asked: Question, place: int, fits: np.ndarray) -> bool:
    """Whether another is at least as good on every axis that is known of any, and better on one.

    What is unknown on such an axis stands on no frontier.
    """
    axes = [axis for axis in (-asked.merit, asked.cost, asked.p50) if not np.isnan(axis[fits]).all()]
    values = np.stack(axes)
    mine = values[:, place : place + 1]
    over = (values[:, fits] <= mine).all(axis=0) & (values[:, fits] < mine).any(axis=0)
    return bool(np.isnan(mine).any() or over.any())


def _alternative(asked: Question, chosen: int, place: int, within: np.ndarray | None) -> Alternative:
    low = high = None
    difference = asked.merit[place] - asked.merit[chosen]
    if asked.n >= CERTAIN:
        half = quantile(0.975, asked.n - 1) * _error(asked.merits[place] - asked.merits[chosen])
        low, high = difference - half, difference + half
    return Alternative(
        place,
        float(difference),
        low,
        high,
        _known(asked.cost[chosen] - asked.cost[place]),
        _known(asked.p50[chosen] - asked.p50[place]),
        None if within is None else float(within[place]),
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
