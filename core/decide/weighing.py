"""Reweighted ratings of passages: rankings of many weight vectors at once, and a search among them.

A passage's score is its relevance plus the sum of weight · rating; below a threshold of relevance it is
discarded (LeVine and Varjavand, "Relevance isn't all you need", §2.1). The search and its cross-validation
are ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.arrays import Floats, Grades, Ints

FOLDS = 5
EQUAL = 0.5
"""The paper's weight of every criterion (§2.1, item 3)."""
_DRAWN_LOG2 = 8  # 256 weight vectors besides the hand-picked ones
_STEP = 0.05
_CELLS = 1 << 22  # scores that are sorted at a time
_EMPTY = -1


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """Every query's candidates with a reranker's ratings, in the order in which they win ties."""

    relevance: Floats  # [Q, P]; NaN if it was unreadable, or there is no passage
    criteria: Floats  # [Q, P, C]; 0 if there is none
    grades: Grades  # [Q, P]; 1..5 judged, 0 unjudged, -1 no passage


def ranked(ratings: Ratings, weights: Floats, threshold: float, depth: int | None = None) -> Grades:
    """Return the grades of the rankings that weights produce.

    Args:
        weights: [W, C].
        threshold: Relevance below which passages are discarded; passages without one come last.
        depth: Ranks to keep; None for all.

    Returns:
        int8 [W, Q, depth]; -1 after the end of a ranking.
    """
    queries, passages = ratings.relevance.shape
    depth = passages if depth is None else min(depth, passages)
    made = np.full((len(weights), queries, depth), _EMPTY, dtype=np.int8)
    unread = np.isnan(ratings.relevance)
    dropped = (ratings.grades == _EMPTY) | (~unread & (ratings.relevance < threshold))
    base = np.where(unread, -1e6, ratings.relevance)
    some = max(1, _CELLS // max(1, queries * passages))
    for first in range(0, len(weights), some):
        added = np.einsum("qpc,wc->wqp", ratings.criteria, weights[first : first + some])
        scores = np.where(dropped, -np.inf, np.where(unread, base, np.round(base + added, 9)))
        order = np.argsort(-scores, axis=2, kind="stable")[..., :depth]
        kept = np.where(dropped, np.int8(_EMPTY), ratings.grades)
        made[first : first + some] = np.take_along_axis(np.broadcast_to(kept, scores.shape), order, axis=2)
    return made


def offered(criteria: int, usual: Floats, seed: int) -> Floats:
    """Return candidate weight vectors [W, C], the usual ones first.

    Relevance alone, all equal at several levels, each criterion alone and each left out, and a Sobol sample
    of the cube 0..1, rounded to steps of 0.05.
    """
    from scipy.stats import qmc  # noqa: PLC0415 - takes as long to import as a page to draw

    one = np.eye(criteria)
    levels = np.array([0.0, 0.05, 0.1, 0.25, EQUAL, 0.75, 1.0])
    drawn = qmc.Sobol(criteria, seed=seed).random_base2(_DRAWN_LOG2)
    parts = (
        usual[None],
        levels[:, None] * np.ones(criteria),
        *(weight * one for weight in (0.1, 0.25, EQUAL, 1.0)),
        EQUAL * (1 - one),
        np.round(drawn / _STEP) * _STEP,
        np.round(drawn * 0.25 / _STEP) * _STEP,
    )
    rows = np.round(np.concatenate(parts), 4)
    _, first = np.unique(rows, axis=0, return_index=True)
    return np.asarray(rows[np.sort(first)])


def tuned(values: Floats, seed: int, *, higher_is_better: bool = True) -> Ints:
    """Return for each query the row that is best for the queries of the other folds; the first on ties.

    Args:
        values: [W, Q], the measure of every weight vector; NaN if it does not apply.
    """
    sign = 1.0 if higher_is_better else -1.0
    queries = values.shape[1]
    fold = np.random.default_rng(seed).permutation(queries) % FOLDS
    known = ~np.isnan(values)
    chosen = np.zeros(queries, dtype=np.int64)
    for number in range(FOLDS):
        others = (fold != number)[None] & known
        count = np.maximum(others.sum(axis=1), 1)
        means = np.where(others, values, 0.0).sum(axis=1) / count
        means = np.where(others.any(axis=1), np.round(sign * means, 12), -np.inf)
        chosen[fold == number] = int(means.argmax())
    return chosen
