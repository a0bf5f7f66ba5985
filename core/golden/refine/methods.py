"""The two methods of refinement, and how a refinement begins or resumes.

`locks` is Algorithm 1 (CLQ §3.4): scores by small Plackett–Luce steps, pairs locked in an acyclic graph.

`map` is Plackett–Luce maximum a posteriori over all judged orders, with a prior centred on the grades.
It goes beyond the paper with the same judge calls as Algorithm 1: in the end every order counts in full,
not only by the small step that its turn allowed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from scipy.special import ndtr

from core.arrays import Floats, Ints
from core.errors import InputError
from core.golden.refine.base import TOP, RankedPair, Refinement, RefineMethod, RefineSettings
from core.records import JsonMap
from core.stats.threads import one_thread

EPSILON = 1e-6  # Information before the first turn


class PreferenceGraph:
    """Locked pairs and what follows from them. Sets of items are stored as the bits of an integer."""

    def __init__(self, items: int) -> None:
        self.below = [0] * items  # items that an item has a path to
        self.above = [0] * items  # items that have a path to it

    def lock(self, pair: RankedPair) -> None:
        """Add a pair; the caller must know that no path implies it in either direction."""
        better, worse = pair
        above, below = self.above[better] | 1 << better, self.below[worse] | 1 << worse
        for item in _bits(above):
            self.below[item] |= below
        for item in _bits(below):
            self.above[item] |= above

    def sorted(self, preferred: Sequence[int], first: int | None = None) -> list[int]:
        """Sort topologically (Kahn 1962): among the items with none left above them, the preferred one first.

        If `first` is a number, only that many ranks are sorted.
        """
        left, above = list(preferred), self.above
        order: list[int] = []
        waiting = (1 << len(left)) - 1
        while left and len(order) != first:
            for item in left:
                if not above[item] & waiting:
                    break
            left.remove(item)
            waiting ^= 1 << item
            order.append(item)
        return order


def _bits(number: int) -> list[int]:
    bits = []
    while number:
        lowest = number & -number
        bits.append(lowest.bit_length() - 1)
        number ^= lowest
    return bits


class Locks(Refinement):
    """The state of Algorithm 1 for one query."""

    def _begin(self) -> None:
        self._score = list(self._grades)
        self._info = [EPSILON] * len(self.ids)
        self._graph = PreferenceGraph(len(self.ids))
        self._pending: dict[RankedPair, int] = {}

    def _learn(self, order: Sequence[int]) -> None:
        self._step(order)
        if (self.turns + 1) % self.settings.recentre == 0:
            mean = math.fsum(self._score) / len(self._score)
            self._score = [score - mean for score in self._score]
        self._lock(order)

    def _step(self, order: Sequence[int]) -> None:
        """Take a Plackett–Luce step: in every suffix of the order, the first item is chosen from all."""
        eta = max(self.settings.least_step, self.settings.step / math.sqrt(1 + self.turns / 50))
        change = dict.fromkeys(order, 0.0)
        scores = [self._score[item] for item in order]
        for start, first in enumerate(order):
            highest = max(scores[start:])
            weights = [math.exp(score - highest) for score in scores[start:]]
            total = sum(weights)
            for item, weight in zip(order[start:], weights, strict=True):
                chance = weight / total
                change[item] += eta * ((item == first) - chance)
                self._info[item] += chance * (1 - chance)
        for item, step in change.items():
            self._score[item] += min(max(step, -self.settings.clip), self.settings.clip)

    def _lock(self, order: Sequence[int]) -> None:
        below, enough = self._graph.below, self.settings.confirmations or math.inf
        deviation = {item: 1 / math.sqrt(max(self._info[item], EPSILON)) for item in order}
        for pair in combinations(order, 2):
            better, worse = pair
            implied = below[better] >> worse & 1
            if implied or below[worse] >> better & 1:
                self._pending.pop(pair, None)  # locks stay, so its count is no longer needed
                if not implied:
                    self.contradictions.append(pair)
                continue
            self._pending[pair] = count = self._pending.get(pair, 0) + 1
            # Or if the better one's lower bound exceeds the other's upper bound.
            apart = self._score[better] - self._score[worse]
            if count >= enough or apart > self.settings.z * (deviation[better] + deviation[worse]):
                self._graph.lock(pair)
                self.locks.append(pair)

    def order(self, first: int | None = None) -> list[int]:
        """Return the items, best first: by locks, then score, rank, id."""
        behind = [-score for score in self._score]
        preferred = sorted(self._placed, key=behind.__getitem__)
        return self._graph.sorted(preferred, first)

    def _scores(self) -> Sequence[float]:
        return self._score

    def _information(self) -> Sequence[float]:
        return self._info

    def _known(self) -> Floats:
        return 0.3 * np.log1p(self._info)

    def _settled(self) -> float:
        return len(self.locks)

    def _rest(self) -> bool:
        return self._streak >= self.settings.stable


def loss(scores: Floats, orders: Ints, centre: Floats, precision: float) -> tuple[float, Floats]:
    """Return the negative log posterior of scores [n], up to a constant, and its gradient.

    Orders are items, best first [orders, m]; centre [n] and precision belong to the Gaussian prior.
    """
    ordered = scores[orders]
    highest = ordered.max(axis=1, keepdims=True, initial=-np.inf)
    weights = np.exp(ordered - highest)
    totals = np.cumsum(weights[:, ::-1], axis=1)[:, ::-1]  # for every suffix
    off = scores - centre
    value = float((np.log(totals) + highest - ordered).sum() + precision / 2 * off @ off)
    chances = weights * np.cumsum(1 / totals, axis=1)  # an item's chances summed over the suffixes it is in
    pulled = np.bincount(orders.ravel(), (chances - 1).ravel(), minlength=len(scores))
    return value, pulled + precision * off


def curvature(scores: Floats, orders: Ints, precision: float) -> Floats:
    """Return the Hessian of `loss` [n, n]."""
    ordered = scores[orders]
    weights = np.exp(ordered - ordered.max(axis=1, keepdims=True, initial=-np.inf))
    totals = np.cumsum(weights[:, ::-1], axis=1)[:, ::-1]
    once, twice = np.cumsum(1 / totals, axis=1), np.cumsum(1 / totals**2, axis=1)
    table = np.eye(len(scores)) * precision
    np.add.at(table, (orders, orders), weights * once)
    # Two items share the suffixes that begin at or before the better of them.
    places = np.arange(orders.shape[1])
    shared = twice[:, np.minimum.outer(places, places)]
    products = weights[:, :, None] * weights[:, None, :] * shared
    np.subtract.at(table, (orders[:, :, None], orders[:, None, :]), products)
    return table


class Map(Refinement):
    """The state of `map` for one query."""

    every = 5

    def _begin(self) -> None:
        self._centre = np.array(self._grades) * self.settings.scale
        self._told: list[Sequence[int]] = []
        self._start = self._mode = self._centre  # it starts at the last point of the curve: see `_solve`
        self._solved = 0  # number of orders in the mode
        self._certain = 0.0

    def _learn(self, order: Sequence[int]) -> None:
        self._told.append(order)

    def _orders(self) -> Ints:
        return np.array(self._told, dtype=np.int64).reshape(len(self._told), -1)

    def _solve(self) -> Floats:
        """Find the mode from a starting point fixed by rule, so that calls in between change nothing."""
        if self._solved < len(self._told):
            from scipy.optimize import minimize  # noqa: PLC0415 - takes long to import

            given = (self._orders(), self._centre, self.settings.prior)
            with one_thread():
                solution = minimize(loss, self._start, given, method="L-BFGS-B", jac=True)
            self._mode, self._solved = solution.x, len(self._told)
        return self._mode

    def _covariance(self) -> Floats:
        table = curvature(self._solve(), self._orders(), self.settings.prior)
        with one_thread():
            return np.asarray(np.linalg.inv(table))

    def order(self, first: int | None = None) -> list[int]:
        """Return the items, best first by score, then rank, id."""
        behind = (-self._solve()).tolist()
        return sorted(self._placed, key=behind.__getitem__)[:first]

    def _scores(self) -> Sequence[float]:
        return [float(score) for score in self._solve()]

    def _information(self) -> Sequence[float]:
        return [float(variance) ** -1 for variance in np.diag(self._covariance())]

    def _known(self) -> Floats:
        return np.zeros(len(self._grades))

    def _settled(self) -> float:
        self._start = self._solve()
        self._certain = certainty(self._start, self._covariance(), self.order())
        return self._certain

    def _rest(self) -> bool:
        return self._certain >= self.settings.sure


def certainty(scores: Floats, covariance: Floats, order: Sequence[int]) -> float:
    """Return the certainty of the Top-20: the lesser of its order and its membership.

    Each is the mean, over the pairs inside the Top-20 or across its edge, of the probability that the pair is
    in the right order, by the Gaussian of the posterior.
    """
    placed = np.array(order)
    spread = covariance[np.ix_(placed, placed)]
    variance = np.diag(spread)
    deviation = np.sqrt(np.maximum(variance[:, None] + variance[None, :] - 2 * spread, 1e-12))
    chances = ndtr(np.subtract.outer(scores[placed], scores[placed]) / deviation)
    inside = chances[:TOP, :TOP][np.triu_indices(min(TOP, len(placed)), 1)]
    across = chances[:TOP, TOP:]
    return float(min(inside.mean(), across.mean() if across.size else 1.0))


_KINDS: Mapping[RefineMethod, type[Locks | Map]] = {"locks": Locks, "map": Map}


def refinement(
    grades: Sequence[float], ranks: Sequence[float], ids: Sequence[str], settings: RefineSettings, seed: str
) -> Refinement:
    """Begin the refinement of one query."""
    return _KINDS[settings.method](grades, ranks, ids, settings, seed)


def restore(state: JsonMap) -> Refinement:
    """Resume a refinement from its `state`.

    Raises:
        InputError: If it isn't a valid state.
    """
    try:
        settings = RefineSettings.read(dict(state["settings"]))
        known = refinement(state["grades"], state["ranks"], state["ids"], settings, state["seed"])
        known.replay(state["log"])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError("This is not a checkpoint of a refinement.", do="Begin the query anew.") from error
    return known
