"""Agreement of judges beyond chance: kappa for two, alpha for any number of them.

Cohen (1960), A coefficient of agreement for nominal scales, and (1968) weighted kappa, here with quadratic
weights; Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, which takes missing grades and more
than two judges; Fleiss (1971), Measuring nominal scale agreement among many raters, for any number of judges
a passage. All are 1 − observed / expected disagreement: 1 = always agreed, 0 = as by chance, below 0 =
less than by chance. If chance leaves nothing to disagree on (everybody gave one and the same grade), they
are not defined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from core.arrays import Floats, Ints
from core.stats.intervals import SEED, resample_weights

Weights = Literal["none", "quadratic"]
_Level = Literal["nominal", "ordinal", "interval"]
GRADES = 5
RESAMPLES = 2000
Policy = Literal["latest", "majority", "mean"]
_N, _SUM = pl.len().cast(pl.Int64), pl.col("grade").cast(pl.Int64).sum()
_TAKEN: Mapping[Policy, pl.Expr] = {
    "latest": pl.col("grade").last(),
    "majority": pl.col("grade").mode().min(),
    "mean": -((_N - 2 * _SUM) // (2 * _N)),  # in whole numbers, so that a half is a half: ceil(mean - 1/2)
}


@dataclass(frozen=True, slots=True)
class Agreement:
    """A coefficient with its interval."""

    value: float  # at most 1; NaN = not defined
    low: float  # lower end of the 95 % bootstrap interval over queries; NaN with fewer than two queries
    high: float  # upper end
    n: int  # passages that it rests on (judged by both, or by two or more)
    queries: int  # queries that those passages belong to


def confusion(first: Ints, second: Ints, query: Ints) -> Floats:
    """Count pairs of grades, query by query.

    Args:
        first: [n] grades 1..5 of one judge.
        second: [n] grades of the other for the same passages.
        query: [n] number of the query, from 0.

    Returns:
        [queries, 5, 5]: passages to which the first gave the row's and the second the column's grade.
    """
    queries = int(query.max()) + 1 if len(query) else 0
    counts = np.zeros((queries, GRADES, GRADES))
    np.add.at(counts, (query, first - 1, second - 1), 1.0)
    return counts


def coincidences(grades: Ints, query: Ints, *, once: bool = False) -> Floats:
    """Return Krippendorff's coincidence matrices, query by query.

    Args:
        grades: [judges, n], 1..5; 0 = this judge did not grade the passage.
        query: [n] number of the query, from 0.
        once: Whether a passage counts once, however many judged it (Fleiss), instead of once per judge.

    Returns:
        [queries, 5, 5]: every ordered pair of grades of one passage counts 1 / (its judges − 1); a passage
        with one grade has no pair.
    """
    queries = int(query.max()) + 1 if len(query) else 0
    given = np.stack([(grades == grade).sum(axis=0) for grade in range(1, GRADES + 1)], axis=1).astype(float)
    judges = given.sum(axis=1)
    several = judges > 1
    given, judges = given[several], judges[several]
    pairs = given[:, :, None] * given[:, None, :]
    diagonal = np.arange(GRADES)
    pairs[:, diagonal, diagonal] -= given
    counts = np.zeros((queries, GRADES, GRADES))
    share = (judges - 1) * judges if once else judges - 1
    np.add.at(counts, query[several], pairs / share[:, None, None])
    return counts


def put_together(rows: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """Merge the grades of several judges into one; ties never raise a grade.

    Args:
        rows: query_id, passage_id, judge and grade (null = none), judge by judge.

    Returns:
        query_id, passage_id, grade and judge (who gave it), a row per passage that anybody graded.
    """
    given = rows.drop_nulls("grade").group_by("query_id", "passage_id", maintain_order=True)
    return given.agg(_TAKEN[policy].cast(pl.Int8).alias("grade"), pl.col("judge").str.join(", "))


def kappa(counts: Floats, weights: Weights = "none") -> Floats:
    """Return Cohen's kappa of confusion matrices."""
    distance = _distances("nominal" if weights == "none" else "interval")
    total = counts.sum(axis=(-1, -2))
    rows, columns = counts.sum(axis=-1), counts.sum(axis=-2)
    observed = (counts * distance).sum(axis=(-1, -2))
    expected = (rows[..., :, None] * columns[..., None, :] * distance).sum(axis=(-1, -2))
    return _one_less(observed * total, expected)


def alpha(counts: Floats, level: _Level = "ordinal") -> Floats:
    """Return Krippendorff's alpha of coincidence matrices."""
    given = counts.sum(axis=-1)
    total = given.sum(axis=-1)
    distance = _ordinal(given) if level == "ordinal" else _distances(level)
    observed = (counts * distance).sum(axis=(-1, -2))
    expected = (given[..., :, None] * given[..., None, :] * distance).sum(axis=(-1, -2))
    return _one_less(observed * (total - 1), expected)


def _one_less(observed: Floats, expected: Floats) -> Floats:
    shares = np.full(np.shape(expected), np.nan)
    np.divide(observed, expected, out=shares, where=np.asarray(expected) > 0)
    return np.asarray(1.0 - shares)


def _distances(level: Literal["nominal", "interval"]) -> Floats:
    apart = np.subtract.outer(np.arange(GRADES), np.arange(GRADES)).astype(np.float64)
    return np.asarray(apart**2 if level == "interval" else (apart != 0).astype(np.float64))


def _ordinal(given: Floats) -> Floats:
    """Return the squared ordinal distance of two grades [..., 5, 5].

    It counts the passages between them, and half of those at either end.
    """
    below = np.cumsum(given, axis=-1) - given / 2
    return np.asarray((below[..., :, None] - below[..., None, :]) ** 2)


def kappa_of(counts: Floats, weights: Weights = "none", *, seed: int = SEED) -> Agreement:
    """Return Cohen's kappa over all queries, with its interval.

    Args:
        counts: What `confusion` returns.
        weights: As in `kappa`.
    """
    drawn = _drawn(counts, seed)
    return _agreement(kappa(counts.sum(axis=0), weights), kappa(drawn, weights), counts, counts.sum())


def alpha_of(counts: Floats, passages: int) -> Agreement:
    """Return Krippendorff's ordinal alpha over all queries, with its interval.

    Args:
        counts: What `coincidences` returns.
        passages: How many have two grades or more.
    """
    return _agreement(alpha(counts.sum(axis=0)), alpha(_drawn(counts)), counts, passages)


def fleiss_of(counts: Floats, passages: int) -> Agreement:
    """Return Fleiss' kappa over all queries, with its interval; chance is one mix of grades for all judges.

    Args:
        counts: What `coincidences` returns if passages count once.
        passages: How many have two grades or more.
    """
    return _agreement(kappa(counts.sum(axis=0)), kappa(_drawn(counts)), counts, passages)


def shares_of(counts: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the shares of the second judge's grades per grade of the first, with intervals.

    Args:
        counts: What `confusion` returns.

    Returns:
        Shares of each row [5, 5] with the ends of their 95 % bootstrap intervals over queries; NaN in a row
        without passages, and for the ends with fewer than two queries.
    """
    share = _shares(counts.sum(axis=0) if len(counts) else np.zeros((GRADES, GRADES)))
    drawn = _shares(_drawn(counts))
    known = np.isfinite(share) if len(drawn) else np.zeros_like(share, dtype=np.bool_)
    ends = np.full((2, GRADES, GRADES), np.nan)
    ends[:, known] = np.nanpercentile(drawn[:, known], [2.5, 97.5], axis=0)
    return share, ends[0], ends[1]


def _shares(counts: Floats) -> Floats:
    total = counts.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(counts, total, out=np.full(np.shape(counts), np.nan), where=total > 0))


def _drawn(counts: Floats, seed: int = SEED) -> Floats:
    """Return sums over resampled queries: [resamples, 5, 5]; the passages of a query stay together."""
    known = counts[counts.any(axis=(1, 2))]
    if len(known) < 2:
        return np.zeros((0, GRADES, GRADES))
    weights = resample_weights(len(known), RESAMPLES, seed)
    return np.asarray((weights @ known.reshape(len(known), -1)).reshape(-1, GRADES, GRADES))


def _agreement(value: Floats, drawn: Floats, counts: Floats, n: float) -> Agreement:
    known = drawn[~np.isnan(drawn)]
    ends = np.percentile(known, [2.5, 97.5]) if len(known) else (np.nan, np.nan)
    queries = int(counts.any(axis=(1, 2)).sum())
    return Agreement(float(value), float(ends[0]), float(ends[1]), int(n), queries)
