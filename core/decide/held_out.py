"""The best of several on questions that did not choose it."""

from __future__ import annotations

import numpy as np

from core.arrays import Floats
from core.stats.intervals import SEED, Labels, columns_of

FOLDS = 5
_EQUAL = 1e-12


def best_row(values: Floats, usual: int, sign: float) -> int:
    """Return the best row by its mean, or the usual one if it is as good.

    Args:
        values: [S, Q]; NaN = unknown.
        usual: A row.
        sign: 1 if higher is better, otherwise −1.
    """
    known = ~np.isnan(values).all(axis=1)
    means = np.full(len(values), -np.inf)
    means[known] = sign * np.nanmean(values[known], axis=1)
    return usual if means[usual] >= means.max() - _EQUAL else int(means.argmax())


def held_out(
    values: Floats, usual: int, sign: float, clusters: Labels | None = None, *, repeats: int = 1
) -> Floats:
    """Return each question's value by the row that is best on the other folds [Q].

    Args:
        values: [S, Q]; NaN = unknown.
        usual: The row that is taken where no other is better.
        sign: 1 if higher is better, otherwise −1.
        clusters: [Q], equal for questions of a group, which are held out together; None = each alone.
        repeats: Number of splits into folds, whose values are averaged.
    """
    each = np.arange(values.shape[1]) if clusters is None else columns_of(clusters, values.shape[1])
    random, total = np.random.default_rng(SEED), np.zeros(values.shape[1])
    for _ in range(repeats):
        fold = (random.permutation(int(each.max()) + 1) % FOLDS)[each]
        for held in range(FOLDS):
            total[fold == held] += values[best_row(values[:, fold != held], usual, sign), fold == held]
    return total / repeats
