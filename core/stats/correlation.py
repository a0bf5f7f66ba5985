"""Correlation of a retrieval measure with an outcome such as the grade of the answer.

Schwartz, Vasilyev and Sawaya (How important is recall for measuring retrieval quality?, §2.4, §3.2) judge a
measure by how well it correlates with the grade of the answer that was written from the Top-K. All four
coefficients are computed from one contingency table of the distinct values, so that a bootstrap resample is a
weighted count and no sorting. Samples of one query depend on one another (one query is answered at many K):
resamples draw queries, not samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import UnknownNameError
from core.stats.intervals import SEED, resample_weights

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Kind = Literal["spearman", "pearson", "kendall-b", "kendall-c"]
KINDS: tuple[Kind, ...] = ("spearman", "pearson", "kendall-b", "kendall-c")

RESAMPLES = 500
CELLS = 400_000
"""Cells of a contingency table up to which an interval is computed; beyond it a resample is too dear."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """One coefficient."""

    value: float | None  # −1..1; None when it is not defined, with the reason
    low: float | None  # lower end of the 95 % percentile interval; None when it was not computed
    high: float | None  # upper end
    n: int  # samples
    reason: str = ""  # why there is no value or no interval; empty when both are there


def correlate(
    measure: ArrayLike,
    outcome: ArrayLike,
    groups: Sequence[str] | NDArray[np.str_] | None = None,
    *,
    kind: Kind = "spearman",
    resamples: int = RESAMPLES,
) -> Correlation:
    """Correlate a measure with an outcome.

    Args:
        measure: Values [n]; NaN = not applicable, the sample is left out.
        outcome: Outcomes [n]; NaN = not graded, the sample is left out.
        groups: The query of each sample [n]; resamples draw these. None = every sample by itself.
        kind: Which coefficient; Kendall's tau-c is Stuart's.
        resamples: Number of bootstrap resamples; 0 = no interval.

    Returns:
        The coefficient with its interval.

    Raises:
        UnknownNameError: If the kind is not known.
        ValueError: If the lengths differ.
    """
    if kind not in KINDS:
        raise UnknownNameError("correlation", kind, KINDS)
    x, y = np.asarray(measure, dtype=np.float64), np.asarray(outcome, dtype=np.float64)
    known = ~(np.isnan(x) | np.isnan(y))
    x, y = x[known], y[known]
    if len(x) < 2:
        return Correlation(None, None, None, len(x), "fewer than two samples")
    levels = _Levels.of(x, y)
    value = levels.value(kind, np.ones((1, len(x))))[0]
    if np.isnan(value):
        constant = "measure" if len(levels.x) == 1 else "outcome"
        return Correlation(None, None, None, len(x), f"the {constant} has one value only")
    if not resamples or levels.cells > CELLS:
        return Correlation(float(value), None, None, len(x), "interval not computed" if resamples else "")
    names = np.arange(len(x)) if groups is None else np.asarray(groups)[known]
    drawn, position = np.unique(names, return_inverse=True)
    if len(drawn) < 2:
        return Correlation(float(value), None, None, len(x), "one query only, so no interval")
    weights = resample_weights(len(drawn), resamples, SEED)[:, position]
    values = levels.value(kind, weights)
    low, high = np.nanquantile(values, (0.025, 0.975)) if np.isfinite(values).any() else (np.nan, np.nan)
    return Correlation(float(value), _number(low), _number(high), len(x))


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


@dataclass(frozen=True, slots=True)
class _Levels:
    """Samples as cells of a table of distinct values: cell [n], x [a], y [b], ascending."""

    cell: Ints
    x: Floats
    y: Floats

    @classmethod
    def of(cls, x: Floats, y: Floats) -> _Levels:
        x_levels, x_at = np.unique(x, return_inverse=True)
        y_levels, y_at = np.unique(y, return_inverse=True)
        return cls((x_at * len(y_levels) + y_at).astype(np.int64), x_levels, y_levels)

    @property
    def cells(self) -> int:
        return len(self.x) * len(self.y)

    def value(self, kind: Kind, weights: Floats) -> Floats:
        """The coefficient of every weighting [w, n] of the samples: [w], NaN where not defined."""
        return np.array([_COEFFICIENTS[kind](self._table(row), self.x, self.y) for row in weights])

    def _table(self, weights: Floats) -> Floats:
        counts = np.bincount(self.cell, weights=weights, minlength=self.cells).astype(np.float64)
        return counts.reshape(len(self.x), len(self.y))


def _pearson(table: Floats, x: Floats, y: Floats) -> float:
    total, rows, columns = table.sum(), table.sum(axis=1), table.sum(axis=0)
    dx, dy = x - rows @ x / total, y - columns @ y / total
    spread = np.sqrt((rows @ dx**2) * (columns @ dy**2))
    return float(dx @ table @ dy / spread) if spread > 0 else np.nan


def _spearman(table: Floats, _x: Floats, _y: Floats) -> float:
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    return _pearson(table, np.cumsum(rows) - rows / 2, np.cumsum(columns) - columns / 2)


def _surplus(table: Floats) -> float:
    """Concordant minus discordant pairs."""
    below = table.sum(axis=0) - np.cumsum(table, axis=0)  # rows further down, per column
    right = below.sum(axis=1, keepdims=True) - np.cumsum(below, axis=1)
    left = np.cumsum(below, axis=1) - below
    return float((table * (right - left)).sum())


def _tau_b(table: Floats, _x: Floats, _y: Floats) -> float:
    total, rows, columns = table.sum(), table.sum(axis=1), table.sum(axis=0)
    untied = np.sqrt((total**2 - (rows**2).sum()) * (total**2 - (columns**2).sum())) / 2
    return _surplus(table) / untied if untied > 0 else np.nan


def _tau_c(table: Floats, _x: Floats, _y: Floats) -> float:
    fewest = min(np.count_nonzero(table.sum(axis=1)), np.count_nonzero(table.sum(axis=0)))
    total = table.sum()
    return 2 * _surplus(table) * fewest / (total**2 * (fewest - 1)) if fewest > 1 else np.nan


_COEFFICIENTS = {"pearson": _pearson, "spearman": _spearman, "kendall-b": _tau_b, "kendall-c": _tau_c}


@dataclass(frozen=True, slots=True)
class BestAlpha:
    """The parameter that correlates best."""

    alphas: Floats  # the grid [a]
    values: Floats  # coefficient at each of them [a], NaN where not defined, on all samples
    best: float | None  # best alpha on all samples (the smallest on ties): optimistic
    in_sample: float | None  # its coefficient: optimistic, since chosen on the same samples
    # Mean over folds, weighted by samples, of the coefficient on the queries left out, of the alpha that was
    # best on the others; None when it is not defined
    cross_validated: float | None
    chosen: tuple[float, ...]  # the alpha chosen in each fold


FOLDS = 5


def best_alpha(
    measures: ArrayLike,
    alphas: Sequence[float],
    outcome: ArrayLike,
    groups: Sequence[str] | NDArray[np.str_],
    *,
    kind: Kind = "spearman",
) -> BestAlpha:
    """Choose the parameter of a measure by its correlation, and say what it is worth on other queries.

    Queries are dealt into `FOLDS` folds, fewer where there are fewer queries.

    Args:
        measures: Values [a, n] at every alpha.
        alphas: The grid, ascending [a].
        outcome: Outcomes [n].
        groups: The query of each sample [n]; a query is never on both sides of a fold.
    """
    table, y, names = np.asarray(measures, dtype=np.float64), np.asarray(outcome), np.asarray(groups)
    grid = np.asarray(alphas, dtype=np.float64)
    drawn, position = np.unique(names, return_inverse=True)
    fold = np.random.default_rng(SEED).permutation(len(drawn))[position] % min(FOLDS, max(len(drawn), 1))

    def curve(part: NDArray[np.bool_]) -> Floats:
        found = (correlate(row[part], y[part], kind=kind, resamples=0).value for row in table)
        return np.array([np.nan if value is None else value for value in found])

    values = curve(np.ones(len(y), dtype=bool))
    chosen, held, weights = [], [], []
    for number in range(min(FOLDS, len(drawn)) if len(drawn) > 1 else 0):
        train = curve(fold != number)
        if np.isnan(train).all():
            continue
        pick = int(np.nanargmax(train))
        chosen.append(float(grid[pick]))
        outside = correlate(table[pick][fold == number], y[fold == number], kind=kind, resamples=0)
        if outside.value is not None:
            held.append(outside.value)
            weights.append(outside.n)
    at = None if np.isnan(values).all() else int(np.nanargmax(values))
    return BestAlpha(
        grid,
        values,
        None if at is None else float(grid[at]),
        None if at is None else float(values[at]),
        float(np.average(held, weights=weights)) if held else None,
        tuple(chosen),
    )
