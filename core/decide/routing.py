"""Routing: the gain from choosing the candidate depth query by query (CLQ paper §5.2, §5.4, §6).

A routing is a table of shares [depths, queries]: how often each query is answered at each depth. A fixed
depth, a threshold on a signal, chance and the oracle are all such tables, so that one function computes the
cost, latency and score of each. The rules that choose are in `core.decide.learning`.

A smaller K is replayed from one run with a deeper one, without calling the reranker again.

A pointwise reranker scores a passage independently of the others, so its order of the first K
passages of a pool is the deeper run's order of just these passages: the replay is exact. A listwise one reads
the pool as a whole and may order fewer passages differently.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from core.arrays import Floats
from core.errors import InputError
from core.records import Basis
from core.stats.intervals import Labels
from core.stats.latency import p95_reason
from core.stats.means import Of, mean_interval

BY_CANDIDATE = ("input_tokens", "output_tokens", "cpu_ms", "gpu_ms")
"""Units that grow with the number of candidates."""
TIE = 1e-9  # Qualities this close count as equal: the shallower depth is taken


def replayed(final: pl.DataFrame, pool: pl.DataFrame, depth: int) -> pl.DataFrame:
    """Return the final ranking that a smaller candidate depth would have given.

    Args:
        final: query_id, rank, passage_id of the deep run's final ranking.
        pool: The same of its candidate pool, in the order of retrieval.

    Returns:
        query_id, rank (from 1, at K = `depth`), passage_id, deep_rank (in the deep run), score (the
        reranker's, if `final` has it); sorted by query and rank.

    Raises:
        InputError: If the depth is below 1.
    """
    if depth < 1:
        raise InputError(f"A candidate depth of {depth} is not possible.", do="Give 1 or more.")
    offered = pool.filter(pl.col("rank") <= depth).select("query_id", "passage_id").unique()
    scores = [pl.col("score")] if "score" in final.columns else []
    return (
        final.join(offered, on=["query_id", "passage_id"], how="semi")
        .sort("query_id", "rank")
        .select(
            "query_id",
            pl.int_range(1, pl.len() + 1).over("query_id").alias("rank"),
            "passage_id",
            pl.col("rank").alias("deep_rank"),
            *scores,
        )
    )


def missing(final: pl.DataFrame, pool: pl.DataFrame) -> int:
    """Return how many passages of the pool are missing from the final ranking.

    They were cut off, discarded, or not stored.
    """
    return pool.join(final, on=["query_id", "passage_id"], how="anti").height


def replayed_ms(deep_ms: pl.Expr, depth: int, deep: int, line: tuple[float, float] | None) -> pl.Expr:
    """Return the latency of the reranker at a smaller K, modelled from the deep run's.

    Args:
        deep_ms: The reranker's ms of a query at the deep run's K.
        line: Slope (ms per candidate) and intercept (ms) of the reranker, see `decide.scaling`; None = in
            proportion to K.

    Returns:
        The query's own time, scaled as the line falls between the two K.
    """
    slope, intercept = line or (1.0, 0.0)
    whole = intercept + slope * deep
    return deep_ms * ((intercept + slope * depth) / whole if whole > 0 else 1.0)


def replayed_usage(usage: pl.DataFrame, depth: int, deep: int) -> pl.DataFrame:
    """Return the deep run's modelled usage at a smaller K: its reranker's share scales with the candidates.

    Args:
        usage: Rows of the table "usage" of the deep run.

    Returns:
        The rows; tokens and machine time of the stage "rerank" in proportion to K, its search units rounded
        up to whole ones.
    """
    reranked = pl.col("stage") == "rerank"
    by_candidate = pl.col("unit").is_in(list(BY_CANDIDATE))
    units = (pl.col("amount") * (depth / deep)).ceil()
    amount = (
        pl.when(reranked & by_candidate)
        .then(pl.col("amount") * (depth / deep))
        .when(reranked & (pl.col("unit") == "search_units"))
        .then(units)
        .otherwise(pl.col("amount"))
    )
    basis = pl.when(reranked).then(pl.lit(str(Basis.MODELLED))).otherwise(pl.col("basis"))
    return usage.with_columns(amount.alias("amount"), basis.alias("basis"))


@dataclass(frozen=True, eq=False)
class Depths:
    """Results of every query at every depth, the shallowest (cheapest) first."""

    quality: Floats  # [D, Q], 0..1, no NaN: leave out queries that a depth cannot score
    latency_ms: Floats  # [D, Q]; ms, NaN = unknown
    cost: Floats  # [D, Q]; $ per 1,000 queries like this one, NaN = unknown
    # [Q]; ms that a query sent deeper has already spent at the shallowest depth, because the signal is known
    # only afterwards. 0 if the signal is known before.
    probe_ms: Floats
    probe_cost: Floats  # [Q]; the same in $ per 1,000 queries
    higher_is_better: bool = True  # the direction of the quality

    @classmethod
    def of(
        cls,
        quality: ArrayLike,
        latency_ms: ArrayLike | None = None,
        cost: ArrayLike | None = None,
        *,
        probe_ms: ArrayLike = 0.0,
        probe_cost: ArrayLike = 0.0,
        higher_is_better: bool = True,
    ) -> Depths:
        """Check and shape the values; latency, cost and probes may be given per depth or as one number.

        Args:
            quality: [D, Q].
            latency_ms: Broadcast to [D, Q]; None = unknown.
            cost: Broadcast to [D, Q]; None = unknown.
            probe_ms: Broadcast to [Q].
            probe_cost: Broadcast to [Q].

        Raises:
            InputError: If there are fewer than two depths, no queries, or a quality is not a number.
        """
        scored = np.atleast_2d(np.asarray(quality, dtype=np.float64))
        if scored.ndim != 2 or len(scored) < 2 or not scored.shape[1]:
            raise InputError(
                f"Qualities of shape {scored.shape} cannot be routed between.",
                do="Give two or more depths over the same queries, at least one query.",
            )
        if not np.isfinite(scored).all():
            raise InputError("A query has no quality at one of the depths.", do="Leave such queries out.")
        unknown = np.nan
        return cls(
            scored,
            np.broadcast_to(_floats(unknown if latency_ms is None else latency_ms), scored.shape),
            np.broadcast_to(_floats(unknown if cost is None else cost), scored.shape),
            np.broadcast_to(_floats(probe_ms), scored.shape[1:]),
            np.broadcast_to(_floats(probe_cost), scored.shape[1:]),
            higher_is_better,
        )

    @property
    def merit(self) -> Floats:
        """The quality, with the sign such that higher is better [D, Q]."""
        return self.quality if self.higher_is_better else -self.quality

    @property
    def count(self) -> int:
        """Number of depths D."""
        return len(self.quality)

    @property
    def queries(self) -> int:
        """Number of queries Q."""
        return int(self.quality.shape[1])

    @cached_property
    def same(self) -> bool:
        """Whether every query scores the same at every depth, so that there is nothing to choose."""
        return bool((np.abs(self.quality - self.quality[0]) <= TIE).all())


def _floats(values: ArrayLike) -> Floats:
    return np.asarray(values, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class RoutingOutcome:
    """Quality, cost and latency of a routing."""

    rates: Floats  # [D], share of the queries at each depth
    scores: Floats  # [Q], expected quality of each query
    p50: float | None  # ms; None if the latency of a query is unknown
    p95: float | None  # ms; None with `p95_reason` if it is withheld
    mean_ms: float | None  # ms; None if unknown
    p95_reason: str | None  # why there is no p95, in words; None if there is one
    cost: float | None  # $ per 1,000 queries; None if unknown

    @property
    def quality(self) -> float:
        """Mean over the queries."""
        return float(self.scores.mean())

    @property
    def deeper(self) -> float:
        """Share of the queries that are not answered at the shallowest depth, 0..1."""
        return float(self.rates[1:].sum())


def one_hot(choices: ArrayLike, depths: int) -> Floats:
    """Return the table of a routing that sends every query to one depth.

    Args:
        choices: [Q], positions of depths.

    Returns:
        [D, Q] of 0 and 1.
    """
    return np.asarray(np.asarray(choices) == np.arange(depths)[:, None], dtype=np.float64)


def always(depths: Depths, which: int) -> Floats:
    """Route every query to one depth: [D, Q]."""
    return one_hot(np.full(depths.queries, which), depths.count)


def at_random(depths: Depths, rates: ArrayLike) -> Floats:
    """Route every query to a random depth with these rates [D], in expectation: [D, Q]."""
    return np.repeat(_floats(rates)[:, None], depths.queries, axis=1)


def oracle(depths: Depths) -> Floats:
    """Route every query to the depth with its best score, ties to the shallower: [D, Q].

    No signal can do better; it knows the judgements.
    """
    near = depths.merit >= depths.merit.max(axis=0) - TIE
    return one_hot(near.argmax(axis=0), depths.count)


def outcome(depths: Depths, shares: Floats, *, probed: bool = True) -> RoutingOutcome:
    """Compute the cost, latency and score of a routing.

    Args:
        depths: Results of every query at every depth.
        shares: [D, Q], columns that sum to 1.
        probed: Whether queries sent deeper pay for finding the signal; not if no signal is used
            (one depth for all, chance, oracle).

    Returns:
        The outcome. Latency percentiles are over the latencies of the chosen depths, each with its share as
        its weight; with one depth for all they equal `numpy.quantile` (linear).

    Raises:
        InputError: If the table does not fit or its columns do not sum to 1.
    """
    if shares.shape != depths.quality.shape or not np.allclose(shares.sum(axis=0), 1.0):
        raise InputError(
            f"Shares of shape {shares.shape} do not route {depths.queries} queries to {depths.count} depths."
        )
    further = (np.arange(depths.count) > 0)[:, None] * float(probed)
    took = depths.latency_ms + further * depths.probe_ms
    paid = depths.cost + further * depths.probe_cost
    timed, priced = _known(took, shares), _known(paid, shares)
    reason = p95_reason(depths.queries) if timed else "no latency of every query"
    return RoutingOutcome(
        rates=shares.mean(axis=1),
        scores=(shares * depths.quality).sum(axis=0),
        p50=percentile(took, shares, 0.5) if timed else None,
        p95=percentile(took, shares, 0.95) if reason is None else None,
        mean_ms=_mean(took, shares) if timed else None,
        p95_reason=reason,
        cost=_mean(paid, shares) if priced else None,
    )


def _known(values: Floats, shares: Floats) -> bool:
    return bool(np.isfinite(values[shares > 0]).all())


def _mean(values: Floats, shares: Floats) -> float:
    return float(np.where(shares > 0, shares * values, 0.0).sum() / shares.shape[1])


def percentile(values: Floats, weights: Floats, share: float) -> float:
    """Return a percentile of weighted values; equal to `numpy.quantile` if every weight is 1.

    A value of weight w spans w order statistics and lies in their middle.
    """
    counted = weights > 0
    order = np.argsort(values[counted], kind="stable")
    ranked, weight = values[counted][order], weights[counted][order]
    end = np.cumsum(weight)
    return float(np.interp(share * max(end[-1] - 1, 0.0), end - (weight + 1) / 2, ranked))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over queries with its interval; None if there are fewer than two queries."""

    value: float
    low: float | None
    high: float | None


def estimates(*scores: Floats, of: Of, clusters: Labels | None = None) -> list[Estimate]:
    """Return means over the same queries with their 95 % intervals.

    The routing is held fixed: the interval covers other queries of this kind, not another
    choice of threshold. Pass a difference of two outcomes' scores to compare them in pairs.

    Args:
        scores: Each [Q].
        of: As in `core.stats.means.mean_interval`, like clusters.
    """
    table = np.vstack(scores)
    low, high = mean_interval(table, of, clusters=clusters)
    ends = zip(low, high, strict=True)
    bounds = [(None, None) if np.isnan(a) else (float(a), float(b)) for a, b in ends]
    return [Estimate(float(row.mean()), *pair) for row, pair in zip(table, bounds, strict=True)]
