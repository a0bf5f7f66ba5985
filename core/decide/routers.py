"""Rules that route queries by several features: logistic regression and nearest neighbours.

Both estimate the gain of each further option over the first, which a query leaves only if the gain exceeds
a threshold. Features are standardised over all queries, because this uses no quality;
an unknown feature counts as the mean. The strength of the penalty, and the number of neighbours,
are chosen within the training queries, by leaving some out in turn, so that a
cross-validation over such a rule has seen none of the qualities that it is judged by.

The regression is weighted: a query counts by how much the option gains or loses against the first, so that
it minimises lost quality, and not the number of wrong decisions (the reduction of cost-sensitive
to weighted classification: Zadrozny, Langford and Abe 2003, Cost-sensitive learning by cost-proportionate
example weighting).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from core.arrays import Floats
from core.decide.learning import FOLDS, Choices, LearnedRule, cross_validated
from core.decide.routing import TIE, Depths, at_random, outcome
from core.records import JsonMap
from core.stats.intervals import SEED

PENALTIES = (1.0, 0.2, 0.04)
"""Weights of the squared coefficients, the strongest first, which wins ties."""
NEIGHBOURS = (40, 20, 10, 5)
"""Numbers of neighbours, the most first."""
_FEW = 600  # most queries that the penalty is chosen by
_LISTED = 200  # nearest queries stored for each query; enough of them are among the training queries
_BLOCK = 500  # queries whose distances are computed at a time
_STEPS = 25  # Maximum number of steps of Newton's method
_FREE = 1e-3  # weight of the squared intercept, which keeps it finite if every query agrees
COPIES = 19
"""Draws of noisy copies: a routing's gain exceeds all of them once in twenty times by chance."""


class RouterScorer(Protocol):
    """A learnt rule that estimates the gain of each further option."""

    @property
    def threshold(self) -> float:
        """The gain above which a query leaves the first option."""
        ...

    def gains(self, signs: Floats) -> Floats:
        """Return the gain of each further option [D − 1, Q] at features [Q, F]; NaN = unknown."""
        ...

    def as_json(self) -> JsonMap:
        """Return the rule in the form that `data/exported/router.py` reads."""
        ...


def standard(signs: Floats, means: Floats, scales: Floats) -> Floats:
    """Standardise features [Q, F]; an unknown feature becomes 0."""
    return np.nan_to_num((signs - means) / scales, nan=0.0, posinf=0.0, neginf=0.0)


def chosen(gains: Floats, threshold: float) -> Choices:
    """Return each query's option [Q]: the one that gains most above the threshold, or else the first."""
    best = gains.argmax(axis=0)
    there = gains[best, np.arange(gains.shape[1])] > threshold
    return np.where(there, best + 1, 0).astype(np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """Log odds that an option is better than the first."""

    means: Floats  # [F]
    scales: Floats  # [F]
    lines: Floats  # [D − 1, 1 + F], the intercept first
    penalty: float
    threshold: float = 0.0

    def gains(self, signs: Floats) -> Floats:
        """Return log odds [D − 1, Q]."""
        return self.lines[:, :1] + self.lines[:, 1:] @ standard(signs, self.means, self.scales).T

    def as_json(self) -> JsonMap:
        """Return method, coefficients, means, scales and threshold."""
        return {"method": "regression", **_said(self), "coefficients": self.lines.tolist()}


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """Mean gain over the first option among the nearest queries in standardised features."""

    means: Floats  # [F]
    scales: Floats  # [F]
    points: Floats  # [n, F], standardised
    gained: Floats  # [D − 1, n], gain of each option over the first
    count: int
    threshold: float
    rows: NDArray[np.intp]  # [n], index of each point's query

    def gains(self, signs: Floats) -> Floats:
        """Return mean gains [D − 1, Q]."""
        apart = _apart(standard(signs, self.means, self.scales), self.points)
        near = np.argsort(apart, axis=1, kind="stable")[:, : self.count]
        return np.asarray(self.gained[:, near].mean(axis=2))

    def as_json(self) -> JsonMap:
        """Return method, neighbours, points, gains, means, scales and threshold."""
        points = {"points": self.points.tolist(), "gains": self.gained.tolist()}
        return {"method": "neighbours", **_said(self), "neighbours": self.count, **points}


def _said(learnt: Regression | Neighbours) -> JsonMap:
    return {
        "threshold": learnt.threshold,
        "means": learnt.means.tolist(),
        "scales": learnt.scales.tolist(),
    }


def _apart(queries: Floats, points: Floats) -> Floats:
    """Return squared distances [Q, n]; rounded, so that equal ones stay equal in any summation order."""
    squares = (queries**2).sum(axis=1)[:, None] + (points**2).sum(axis=1) - 2 * queries @ points.T
    return np.asarray(np.round(np.maximum(squares, 0.0), 9))


@dataclass(frozen=True, slots=True, eq=False)
class _Learner:
    """Shared parts of both rules."""

    signs: Floats  # [Q, F]; NaN = unknown
    most: float = 1.0  # share of the queries that may leave the first option, 0..1
    means: Floats = field(init=False)  # [F]
    scales: Floats = field(init=False)  # [F]
    points: Floats = field(init=False)  # [Q, F], standardised

    def __post_init__(self) -> None:
        known = np.isfinite(self.signs)
        count = np.maximum(known.sum(axis=0), 1)
        means = np.where(known, self.signs, 0.0).sum(axis=0) / count
        spread = np.sqrt((np.where(known, self.signs - means, 0.0) ** 2).sum(axis=0) / count)
        scales = np.where(spread > TIE, spread, 1.0)
        standardised = {"means": means, "scales": scales, "points": standard(self.signs, means, scales)}
        for name, value in standardised.items():
            object.__setattr__(self, name, value)

    def _limit(self, gains: Floats) -> float:
        """Return the threshold that lets at most `most` of the queries leave the first option."""
        urgent = np.sort(gains.max(axis=0))[::-1]
        room = int(self.most * len(urgent) + TIE)
        return float(max(urgent[room], 0.0)) if room < len(urgent) else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class ByRegression(_Learner):
    """Logistic regression of an option being better than the first, weighted by a query's stake."""

    def learn(self, quality: Floats, rows: NDArray[np.intp]) -> Regression:
        """Choose the penalty on held-out queries, then fit all queries with it."""
        points, gained = self.points[rows], quality[1:, rows] - quality[0, rows]

        folds = list(_folds(min(len(rows), _FEW)))
        last: list[Floats | None] = [None] * len(folds)  # a weaker penalty starts from the stronger one's fit

        def left_out(penalty: float) -> float:
            total = 0.0
            for part, (inside, outside) in enumerate(folds):
                lines = last[part] = _fit(points[inside], gained[:, inside], penalty, last[part])
                total += _won(lines[:, :1] + lines[:, 1:] @ points[outside].T, gained[:, outside])
            return total

        penalty = _best(PENALTIES, left_out)
        lines = _fit(points, gained, penalty)
        limit = self._limit(lines[:, :1] + lines[:, 1:] @ points.T)
        return Regression(self.means, self.scales, lines, penalty, limit)

    def choose(self, learnt: Regression, depths: int) -> Choices:
        """Return which option each query gets [Q]."""
        del depths
        return chosen(learnt.gains(self.signs), learnt.threshold)


@dataclass(frozen=True, slots=True, eq=False)
class ByNeighbours(_Learner):
    """The mean gain of the queries with the most similar features."""

    _order: NDArray[np.intp] = field(init=False)  # [Q, L], the nearest queries of each, itself first

    def __post_init__(self) -> None:
        """Standardise the features, and list the nearest queries of each."""
        _Learner.__post_init__(self)
        blocks = [self.points[start : start + _BLOCK] for start in range(0, len(self.points), _BLOCK)]
        nearest = [
            np.argsort(_apart(block, self.points), axis=1, kind="stable")[:, :_LISTED] for block in blocks
        ]
        object.__setattr__(self, "_order", np.vstack(nearest))

    def learn(self, quality: Floats, rows: NDArray[np.intp]) -> Neighbours:
        """Choose the number of neighbours, excluding each query from its own."""
        every = quality[1:] - quality[0]
        gained = every[:, rows]
        others = {
            count: every[:, self._near(rows, count, itself=False)[rows]].mean(axis=2)
            for count in ([one for one in NEIGHBOURS if one <= len(rows) // 2] or [1])
        }
        count = _best(tuple(others), lambda number: _won(others[number], gained))
        limit = self._limit(others[count])
        return Neighbours(self.means, self.scales, self.points[rows], gained, count, limit, rows)

    def choose(self, learnt: Neighbours, depths: int) -> Choices:
        """Return which option each query gets [Q]."""
        del depths
        place = np.zeros(len(self.points), dtype=np.intp)
        place[learnt.rows] = np.arange(len(learnt.rows))
        near = place[self._near(learnt.rows, learnt.count, itself=True)]
        return chosen(learnt.gained[:, near].mean(axis=2), learnt.threshold)

    def _near(self, rows: NDArray[np.intp], count: int, *, itself: bool) -> NDArray[np.intp]:
        """Return the nearest of the given queries to each query [Q, count]."""
        among = np.zeros(len(self.points), dtype=np.bool_)
        among[rows] = True
        kept = among[self._order]
        if not itself:
            kept &= self._order != np.arange(len(self._order))[:, None]
        kept &= kept.cumsum(axis=1) <= count
        return self._order[kept].reshape(len(self._order), count)


def _won(gains: Floats, gained: Floats) -> float:
    """Return the total gain over the first option if every query takes the option with the largest gain."""
    options = np.vstack([np.zeros(gained.shape[1]), gained])
    return float(options[chosen(gains, 0.0), np.arange(gained.shape[1])].sum())


def _best(values: Sequence[Any], worth: Callable[[Any], float]) -> Any:  # noqa: ANN401
    """Return the value with the greatest worth, ties to the first."""
    worths = [worth(value) for value in values]
    return values[next(place for place, one in enumerate(worths) if one >= max(worths) - TIE)]


def _folds(count: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    fold = np.random.default_rng(SEED).permutation(np.arange(count) % FOLDS)
    for part in range(FOLDS):
        yield np.flatnonzero(fold != part), np.flatnonzero(fold == part)


def _fit(points: Floats, gained: Floats, penalty: float, start: Floats | None = None) -> Floats:
    """Fit a line for each further option, from a given start: [D − 1, 1 + F]."""
    design = np.column_stack([np.ones(len(points)), points])
    ridge = np.full(design.shape[1], penalty)
    ridge[0] = _FREE
    lines = np.zeros((len(gained), design.shape[1])) if start is None else start
    return np.array([_logistic(design, row, ridge, line) for row, line in zip(gained, lines, strict=True)])


def _logistic(design: Floats, gained: Floats, ridge: Floats, line: Floats) -> Floats:
    """Minimise the mean of weight × log loss plus ridge × squares / 2 by Newton's method."""
    stake = np.abs(gained)
    if stake.sum() <= TIE:
        return np.zeros(design.shape[1])
    there = stake > TIE  # a query that both score alike is uninformative
    design, better, weights = design[there], gained[there] > 0, stake[there] / stake.sum()
    for _ in range(_STEPS):
        odds = 1 / (1 + np.exp(-np.clip(design @ line, -35, 35)))
        slope = design.T @ (weights * (odds - better)) + ridge * line
        curve = (design * (weights * odds * (1 - odds))[:, None]).T @ design + np.diag(ridge)
        step = np.linalg.solve(curve, slope)
        length = float(np.abs(step).max())
        line = line - step * min(1.0, 5.0 / length if length else 1.0)
        if length < 1e-5:
            break
    return line


def copies_gain(rule: LearnedRule[Any], depths: Depths, *, draws: int = COPIES) -> tuple[Floats, Floats]:
    """Route between noisy copies of the best option, between which no feature can choose.

    Noise is normal and as large as the queries' spread between the options; a rule that gains there gains by
    overfitting the queries that it is judged on.

    Returns:
        Held-out gains [draws] over chance at the same rates, and over the best copy for all; higher is
        better.
    """
    random = np.random.default_rng(SEED)
    merit = depths.merit
    best = merit[int(merit.mean(axis=1).argmax())]
    spread = np.std(np.diff(merit, axis=0), axis=1).mean() / np.sqrt(2)
    over_chance, over_best = np.empty(draws), np.empty(draws)
    for place in range(draws):
        copies = Depths.of(best + spread * random.standard_normal(merit.shape))
        shares = cross_validated(rule, copies.quality, repeats=1, seed=SEED + place)
        routed = outcome(copies, shares, probed=False)
        chance = outcome(copies, at_random(copies, routed.rates), probed=False)
        over_chance[place] = routed.quality - chance.quality
        over_best[place] = routed.quality - copies.quality.mean(axis=1).max()
    return over_chance, over_best
