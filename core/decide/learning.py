"""Rules that route queries to depths, learnt from queries with known scores, and judged on others.

A rule may be chosen on the same queries that it is judged on, only to show how optimistic that is: its figure
of record comes from cross-validation, where each query is routed by a rule that has not seen it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.arrays import Floats
from core.decide.routing import TIE, one_hot
from core.errors import InputError
from core.stats.intervals import SEED

FOLDS = 5
REPEATS = 10  # Number of random splits into folds that a cross-validation averages over
MIN_QUERIES = 10  # The fewest queries that a rule can be learnt from

Choices = NDArray[np.intp]
Learnt = TypeVar("Learnt")


class LearnedRule(Protocol[Learnt]):
    """A rule learnt from some queries that sends every query to a depth."""

    def learn(self, quality: Floats, rows: NDArray[np.intp]) -> Learnt:
        """Learn the rule from the qualities [D, Q] of the queries `rows` alone."""

    def choose(self, learnt: Learnt, depths: int) -> Choices:
        """Return the depth that the rule chooses for each query: [Q], positions of depths."""


@dataclass(frozen=True, slots=True, eq=False)
class ByThreshold:
    """Send the queries of the greatest urgency deepest: one threshold between any two depths."""

    urgency: Floats  # [Q], higher = sent deeper first; NaN = the signal is unknown, the query stays shallow
    most: float = 1.0  # share of the queries that may leave the shallowest depth, 0..1

    def learn(self, quality: Floats, rows: NDArray[np.intp]) -> tuple[float, ...]:
        """Return the thresholds with the highest mean quality, ties to fewer queries sent deeper.

        Exact: every cut between different urgencies is tried, for all depths together.
        """
        known = rows[np.isfinite(self.urgency[rows])]
        order = known[np.argsort(-self.urgency[known], kind="stable")]
        ranked = self.urgency[order]
        gains = np.diff(quality[:, order], axis=0)
        sums = np.concatenate([np.zeros((len(gains), 1)), gains.cumsum(axis=1)], axis=1)
        allowed = np.append(True, np.append(ranked[1:] != ranked[:-1], True)[: len(ranked)])
        allowed &= np.arange(len(allowed)) <= self.most * len(rows) + TIE
        # From the deepest step up: best[c] = the largest gain of the steps so far with at most c queries.
        best, picks = np.zeros(len(allowed)), []
        for step in sums[::-1]:
            best, where = _running_best(np.where(allowed, step + best, -np.inf))
            picks.append(where)
        cuts, limit = [], len(allowed) - 1
        for where in reversed(picks):
            limit = int(where[limit])
            cuts.append(limit)
        return tuple(_between(ranked, cut) for cut in cuts)

    def choose(self, learnt: Sequence[float], depths: int) -> Choices:
        """Return each query's depth: the number of thresholds that its urgency reaches."""
        if len(learnt) != depths - 1:
            raise InputError(f"{len(learnt)} thresholds do not part {depths} depths.")
        reached = self.urgency >= np.asarray(learnt, dtype=np.float64)[:, None]
        return np.asarray(np.logical_and.accumulate(reached, axis=0).sum(axis=0))


def _running_best(values: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """Return the highest value so far and its position: a later one must be higher by more than a tie."""
    best, where = values.copy(), np.zeros(len(values), dtype=np.intp)
    for place in range(1, len(values)):
        if values[place] > best[place - 1] + TIE:
            where[place] = place
        else:
            best[place], where[place] = best[place - 1], where[place - 1]
    return best, where


def _between(ranked: Floats, cut: int) -> float:
    """Return a threshold that the first `cut` urgencies, in descending order, reach."""
    if not cut:
        return float(np.inf)
    return -float(np.inf) if cut == len(ranked) else float((ranked[cut - 1] + ranked[cut]) / 2)


@dataclass(frozen=True, slots=True, eq=False)
class ByTag:
    """Send the queries of some tags deeper."""

    tags: Sequence[str]  # [Q], one tag per query; "" = none, the query stays shallow
    most: float = 1.0  # share of the queries that may leave the shallowest depth, 0..1
    _codes: NDArray[np.intp] = field(init=False)
    _names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Assign every tag a code."""
        names, codes = np.unique(np.asarray(self.tags, dtype=object).astype(str), return_inverse=True)
        object.__setattr__(self, "_names", tuple(map(str, names)))
        object.__setattr__(self, "_codes", codes.reshape(-1).astype(np.intp))

    def learn(self, quality: Floats, rows: NDArray[np.intp]) -> dict[str, int]:
        """Return the depth with the best mean for each tag, tags with the most gain per query first."""
        gains = []
        for code, name in enumerate(self._names):
            mine = rows[self._codes[rows] == code]
            if name and len(mine):
                means = quality[:, mine].mean(axis=1)
                depth = int((means >= means.max() - TIE).argmax())
                gains.append((float(means[depth] - means[0]), name, depth, len(mine)))
        learnt, room = {}, self.most * len(rows) + TIE
        for _, name, depth, size in sorted(gains, key=lambda gain: (-gain[0], gain[1])):
            if depth and size <= room:
                learnt[name] = depth
                room -= size
        return learnt

    def choose(self, learnt: Mapping[str, int], depths: int) -> Choices:
        """Return which depth each query gets."""
        by_code = np.array([min(learnt.get(name, 0), depths - 1) for name in self._names], dtype=np.intp)
        return by_code[self._codes]


def in_sample(rule: LearnedRule[Learnt], quality: Floats) -> tuple[Learnt, Choices]:
    """Learn from all queries and route the same ones: an optimistic result, but the rule to use afterwards.

    Args:
        quality: [D, Q].

    Returns:
        The learnt rule, and the depths [Q].
    """
    learnt = rule.learn(quality, np.arange(quality.shape[1]))
    return learnt, rule.choose(learnt, len(quality))


def cross_validated(
    rule: LearnedRule[Learnt], quality: Floats, *, repeats: int = REPEATS, seed: int = SEED
) -> Floats:
    """Route every query by rules learnt from other queries, which are split into `FOLDS` parts.

    Args:
        quality: [D, Q].
        repeats: Number of splits, whose routings are averaged.

    Returns:
        Shares [D, Q]: how often each query went to each depth.

    Raises:
        InputError: If there are fewer than `MIN_QUERIES` queries.
    """
    depths, queries = quality.shape
    if queries < MIN_QUERIES:
        raise InputError(
            f"{queries} queries in {FOLDS} folds are too few to learn a routing from.",
            do=f"Judge at least {MIN_QUERIES} queries.",
        )
    random, shares = np.random.default_rng(seed), np.zeros(quality.shape)
    for _ in range(repeats):
        fold = random.permutation(np.arange(queries) % FOLDS)
        for part in range(FOLDS):
            learnt = rule.learn(quality, np.flatnonzero(fold != part))
            routed = one_hot(rule.choose(learnt, depths), depths)
            shares[:, fold == part] += routed[:, fold == part]
    return shares / repeats
