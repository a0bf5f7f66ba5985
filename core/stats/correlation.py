"""Correlation of a retrieval measure with an outcome such as the grade of the answer.

Schwartz, Vasilyev and Sawaya (How important is recall for measuring retrieval quality?, §2.4, §3.2) judge a
measure by how well it correlates with the grade of the answer that was written from the Top-K. All four
coefficients are computed from one contingency table of the distinct values, so that a bootstrap resample is a
weighted count and needs no sorting. Samples of one query depend on one another (one query is answered at many
K): resamples draw queries, not samples.

The module also tells how alike two rankings are: which passages they share, and in how similar an order.

overlap@K = |Top-K of one ∩ Top-K of the other| / the longer of the two lists, at most K.
Rank-biased overlap (RBO) weighs the first ranks more.
Kendall's tau-b over the shared passages of the two Top-K (Kendall 1945, Biometrika 33). Ranks of one list
never tie, so tau-b = (concordant − discordant) / all pairs. Fewer than two shared passages have no order.
The two are independent: a low overlap says nothing about the order, and vice versa.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from core.arrays import Floats, Ints, Mask
from core.errors import UnknownNameError
from core.stats.intervals import SEED, resample_weights

CorrelationKind = Literal["spearman", "pearson", "kendall-b", "kendall-c"]
KINDS: tuple[CorrelationKind, ...] = ("spearman", "pearson", "kendall-b", "kendall-c")

RESAMPLES = 500
CELLS = 400_000
"""Cells of a contingency table up to which an interval is computed; beyond it resampling costs too much."""
FOLDS = 5
AGREEMENT = pl.Schema(
    {"query_id": pl.String, "shared": pl.Int32, **dict.fromkeys(("overlap", "tau", "rbo"), pl.Float64)}
)
"""Columns of `agreement`."""
_PERSISTENCE = 0.9  # Chance of continuing to the next rank, in rank-biased overlap
_BLOCK = 2_000_000  # pairs of ranks compared at a time


@dataclass(frozen=True, slots=True)
class Correlation:
    """One correlation coefficient with its interval."""

    value: float | None  # −1..1; None when it is not defined, with the reason
    low: float | None  # lower end of the 95 % percentile interval; None when it was not computed
    high: float | None  # upper end
    n: int  # samples
    reason: str = ""  # why there is no value or no interval; empty if both exist


def correlate(
    measure: ArrayLike,
    outcome: ArrayLike,
    groups: Sequence[str] | NDArray[np.str_] | None = None,
    *,
    kind: CorrelationKind = "spearman",
    resamples: int = RESAMPLES,
) -> Correlation:
    """Correlate a measure with an outcome.

    Args:
        measure: Values [n]; NaN = not applicable, the sample is left out.
        outcome: Outcomes [n]; NaN = not graded, the sample is left out.
        groups: The query of each sample [n]; resamples draw these. None = every sample by itself.
        kind: Which coefficient; Kendall's tau-c is Stuart's.
        resamples: Number of bootstrap resamples; 0 = no interval.

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

    def value(self, kind: CorrelationKind, weights: Floats) -> Floats:
        """Return the coefficient of every weighting [w, n] of the samples: [w], NaN if not defined."""
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
    """Return concordant minus discordant pairs."""
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
    """The parameter value with the highest correlation."""

    alphas: Floats  # the grid [a]
    values: Floats  # coefficient at each alpha [a] on all samples, NaN if not defined
    best: float | None  # best alpha on all samples (the smallest on ties): optimistic
    in_sample: float | None  # its coefficient: optimistic, since chosen on the same samples
    # Mean over folds, weighted by samples, of the coefficient on the queries left out, at the alpha that was
    # best on the other queries; None if not defined
    cross_validated: float | None
    chosen: tuple[float, ...]  # the alpha chosen in each fold


def best_alpha(
    measures: ArrayLike,
    alphas: Sequence[float],
    outcome: ArrayLike,
    groups: Sequence[str] | NDArray[np.str_],
    *,
    kind: CorrelationKind = "spearman",
) -> BestAlpha:
    """Choose a measure's parameter by its correlation, and estimate the correlation on other queries.

    Queries are dealt into `FOLDS` folds, fewer if there are fewer queries.

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

    def curve(part: Mask) -> Floats:
        coefficients = (correlate(row[part], y[part], kind=kind, resamples=0).value for row in table)
        return np.array([np.nan if value is None else value for value in coefficients])

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


def agreement(first: pl.DataFrame, second: pl.DataFrame, k: int) -> pl.DataFrame:
    """Compare the Top-K of two stacks, query by query.

    Args:
        first: Rankings with query_id, passage_id and rank (from 1) of one stack; a passage at most once a
            query.
        k: The cutoff, at least 1.

    Returns:
        `AGREEMENT`, one row per query that either ranks, by id: shared (passages in both Top-K), overlap
        (0..1; 0 where only one ranks the query), rbo (0..1, the first ranks weigh most) and tau (−1..1, null
        with fewer than two shared passages).
    """
    one, other = (
        ranking.filter(pl.col("rank") <= k).select("query_id", "passage_id", "rank")
        for ranking in (first, second)
    )
    sizes = (
        one.group_by("query_id")
        .agg(pl.len().alias("one"))
        .join(
            other.group_by("query_id").agg(pl.len().alias("other")), on="query_id", how="full", coalesce=True
        )
        .select("query_id", pl.max_horizontal("one", "other").alias("longer"))
    )
    both = one.join(other, on=["query_id", "passage_id"]).sort("query_id", "rank")
    deeper = pl.max_horizontal("rank", "rank_right")
    ordered = both.group_by("query_id", maintain_order=True).agg(
        pl.col("rank_right"), rbo=deeper.replace_strict(_rbo_weights(k), return_dtype=pl.Float64).sum()
    )
    shared = ordered.select(
        "query_id",
        pl.col("rank_right").list.len().cast(pl.Int32).alias("shared"),
        "rbo",
        pl.Series("tau", _taus(ordered["rank_right"].to_list(), k), dtype=pl.Float64).fill_nan(None),
    )
    return (
        sizes.join(shared, on="query_id", how="left")
        .with_columns(pl.col("shared").fill_null(0), pl.col("rbo").fill_null(0.0))
        .with_columns((pl.col("shared") / pl.col("longer")).alias("overlap"))
        .select(pl.col(name).cast(dtype) for name, dtype in AGREEMENT.items())
        .sort("query_id")
    )


def _rbo_weights(k: int) -> dict[int, float]:
    """Return what a shared passage adds to the extrapolated rank-biased overlap, by the deeper of its ranks.

    Webber, Moffat and Zobel (2010, ACM TOIS 28, equation 32): the share of common passages at each depth d,
    weighted by (1 − p) p^(d − 1); the share at depth k stands for all depths below.
    """
    p = _PERSISTENCE
    at_depth = [(1 - p) * p ** (depth - 1) / depth for depth in range(1, k + 1)]
    return {rank: sum(at_depth[rank - 1 :]) + p**k / k for rank in range(1, k + 1)}


def _taus(lists: list[list[int]], k: int) -> Floats:
    """Return tau for lists of ranks, each listed in the other ranking's order; NaN for fewer than two."""
    widest = max((len(ranks_of_query) for ranks_of_query in lists), default=0)
    ranks = np.zeros((len(lists), widest), dtype=np.int32)
    for row, ranks_of_query in enumerate(lists):
        ranks[row, : len(ranks_of_query)] = ranks_of_query
    lengths = np.array([len(ranks_of_query) for ranks_of_query in lists], dtype=np.int64)
    swapped = np.zeros(len(lists), dtype=np.int64)
    step = max(1, _BLOCK // max(1, widest**2))
    after = np.triu(np.ones((widest, widest), dtype=np.bool_), 1)
    for start in range(0, len(lists), step):
        part = ranks[start : start + step]
        # An empty slot holds 0 and stands last: it must not count as a smaller rank.
        later = np.where(part > 0, part, k + 1)
        swapped[start : start + step] = ((later[:, :, None] > later[:, None, :]) & after).sum(axis=(1, 2))
    pairs = lengths * (lengths - 1) // 2
    share = np.divide(swapped, pairs, out=np.full(len(lists), np.nan), where=pairs > 0)
    return np.asarray(1 - 2 * share)


def order_agreement(first: Floats, second: Floats) -> float:
    """Return Kendall's tau-b between two orders of the same stacks, ties included.

    Args:
        first: [S] scores; NaN = not scored, left out of both.
        second: [S] scores.

    Returns:
        −1..1; NaN with fewer than two stacks, or if all stacks are equal on one side.
    """
    from scipy.stats import kendalltau  # noqa: PLC0415 - takes as long to import as a page to draw

    both = _scored_in_both(first, second)
    return np.nan if both is None else float(kendalltau(*both, variant="b").statistic)


def top_agreement(usual: Floats, other: Floats) -> float:
    """Return the AP correlation of an order of stacks with the usual one: Kendall's, weighted to the top.

    Yilmaz, Aslam and Robertson (SIGIR 2008): 2 · mean over all stacks but the first of the share of stacks
    above it that belong there, minus 1. Ties on either side count as they do on average when broken at
    random (Urbano and Marrero, ICTIR 2017).

    Args:
        usual: [S] scores, higher first; NaN = not scored, left out of both.
        other: [S] scores of the order that is compared.

    Returns:
        −1..1; NaN in the cases in which `order_agreement` is NaN.
    """
    both = _scored_in_both(usual, other)
    if both is None:
        return np.nan
    actual, here = both
    shares = 0.0
    for place in range(len(here)):
        belongs = np.where(actual == actual[place], 0.5, actual > actual[place])
        above, beside = here > here[place], here == here[place]
        beside[place] = False
        ahead, ties = int(above.sum()), int(beside.sum())
        before = np.arange(ties + 1) + ahead  # how many stand before it, by how many of its ties do so
        right = belongs[above].sum() + np.arange(ties + 1) * (belongs[beside].mean() if ties else 0.0)
        shares += float(np.divide(right, before, out=np.zeros(ties + 1), where=before > 0).mean())
    return 2 * shares / (len(here) - 1) - 1


def _scored_in_both(first: Floats, second: Floats) -> tuple[Floats, Floats] | None:
    """Return the scores of stacks that have both, or None if all scores of one side are equal."""
    both = ~(np.isnan(first) | np.isnan(second))
    # Sums of the same weights in another order differ in the last digits: they count as ties.
    one, other = np.round(first[both], 12), np.round(second[both], 12)
    return (one, other) if both.sum() > 1 and np.ptp(one) > 0 and np.ptp(other) > 0 else None
