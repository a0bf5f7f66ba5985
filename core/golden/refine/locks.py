"""Algorithm 1 (CLQ §3.4): scores by small Plackett–Luce steps, pairs locked in an acyclic graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from core.golden.refine.base import Pair, Turns

Floats = NDArray[np.float64]
EPSILON = 1e-6  # Information before the first turn


class Graph:
    """Locked pairs and what follows from them. Sets of items are the bits of a whole number."""

    def __init__(self, items: int) -> None:
        self.below = [0] * items  # items that an item has a path to
        self.above = [0] * items  # items that have a path to it

    def implies(self, pair: Pair) -> bool:
        """Whether there is a path from the first to the second."""
        return bool(self.below[pair[0]] >> pair[1] & 1)

    def lock(self, pair: Pair) -> None:
        """Add a pair; the caller knows that no path implies it in either direction."""
        better, worse = pair
        above, below = self.above[better] | 1 << better, self.below[worse] | 1 << worse
        for item in _bits(above):
            self.below[item] |= below
        for item in _bits(below):
            self.above[item] |= above

    def sorted(self, preferred: Sequence[int], first: int | None = None) -> list[int]:
        """Sort topologically (Kahn 1962): of the items with nothing left above, the preferred one first.

        Only the `first` places are sorted where that is a number.
        """
        left, above = list(preferred), self.above
        order: list[int] = []
        waiting = (1 << len(left)) - 1
        while left and len(order) != first:
            place = next(place for place, item in enumerate(left) if not above[item] & waiting)
            item = left.pop(place)
            waiting ^= 1 << item
            order.append(item)
        return order


def _bits(number: int) -> list[int]:
    found = []
    while number:
        lowest = number & -number
        found.append(lowest.bit_length() - 1)
        number ^= lowest
    return found


class Locks(Turns):
    """The state of Algorithm 1 for one query."""

    def _begin(self) -> None:
        self._score = list(self._grades)
        self._info = [EPSILON] * len(self.ids)
        self._graph = Graph(len(self.ids))
        self._pending: dict[Pair, int] = {}

    def _learn(self, order: Sequence[int]) -> None:
        self._step(order)
        if (self.turns + 1) % self.settings.recentre == 0:
            mean = math.fsum(self._score) / len(self._score)
            self._score = [score - mean for score in self._score]
        self._lock(order)

    def _step(self, order: Sequence[int]) -> None:
        """One Plackett–Luce step: every suffix of the order is a choice of its first from all of it."""
        eta = max(self.settings.least_step, self.settings.step / math.sqrt(1 + self.turns / 50))
        change = dict.fromkeys(order, 0.0)
        for start in range(len(order)):
            suffix = order[start:]
            highest = max(self._score[item] for item in suffix)
            weights = [math.exp(self._score[item] - highest) for item in suffix]
            total = sum(weights)
            for item, weight in zip(suffix, weights, strict=True):
                chance = weight / total
                change[item] += eta * ((item == order[start]) - chance)
                self._info[item] += chance * (1 - chance)
        for item, step in change.items():
            self._score[item] += min(max(step, -self.settings.clip), self.settings.clip)

    def _lock(self, order: Sequence[int]) -> None:
        for pair in combinations(order, 2):
            implied = self._graph.implies(pair)
            if implied or self._graph.implies(pair[::-1]):
                self._pending.pop(pair, None)  # locks stay, so that a count kept till here was of no use
                if not implied:
                    self.contradictions.append(pair)
                continue
            self._pending[pair] = count = self._pending.get(pair, 0) + 1
            if 0 < self.settings.confirmations <= count or self._clear(pair):
                self._graph.lock(pair)
                self.locks.append(pair)

    def _clear(self, pair: Pair) -> bool:
        """Whether the better one's lower bound exceeds the other's upper bound."""
        low, high = (self._score[item] for item in pair)
        deviations = sum(1 / math.sqrt(max(self._info[item], EPSILON)) for item in pair)
        return low - high > self.settings.z * deviations

    def order(self, first: int | None = None) -> list[int]:
        """Best first: as the locks say, else by score, rank, id."""
        items = range(len(self._score))
        preferred = sorted(items, key=lambda item: (-self._score[item], self._place[item]))
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
