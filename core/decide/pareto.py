"""The stacks that no other beats: the exact set, and the frontier of a decision (CLQ paper §3.3)."""

from __future__ import annotations

from collections.abc import Sequence

import moocore
import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from core.arrays import Floats, Mask
from core.decide.axes import COST, LATENCY, floats
from core.decide.rules import Decision
from core.decide.ties import ROUNDING, costs_alike


def undominated(axes: Sequence[Floats], *, weak: bool = False) -> Mask:
    """Return which points are on the frontier of any number of axes, each [n] and better when lower.

    A point is dominated if another is at least as good on every axis and strictly better on one. The weak
    form is the paper's: dominated only if another is strictly better on every axis. Equal points share
    their fate. False if an axis is unknown (NaN).
    """
    points = np.column_stack(axes)
    known = ~np.isnan(points).any(axis=1)
    mask = np.zeros(len(points), dtype=np.bool_)
    if known.any():
        shown = points[known]
        mask[known] = moocore.is_nondominated(_weak_keys(shown) if weak else shown, keep_weakly=True)
    return mask


def _weak_keys(points: Floats) -> Floats:
    """Return coordinates in which usual dominance means "strictly better on every axis" in the given points.

    Values that tie on an axis are ranked against the order of the other axes: a point that ties on one axis
    and is better on another becomes worse on the first, so that neither dominates. Only equal points share a
    key. Keys are exact up to about 200,000 different values per axis (their product stays below 2⁵³).
    """
    ranks = np.column_stack([np.unique(axis, return_inverse=True)[1] for axis in points.T]).astype(np.int64)
    sizes = ranks.max(axis=0) + 1
    keys = np.empty_like(points)
    for axis in range(points.shape[1]):
        key = ranks[:, axis]
        for other in range(points.shape[1]):
            if other != axis:
                key = key * sizes[other] + (sizes[other] - 1 - ranks[:, other])
        keys[:, axis] = key
    return keys


def frontier_2d(cost: ArrayLike, quality: ArrayLike) -> NDArray[np.intp]:
    """Return the frontier of two axes in drawing order.

    Args:
        cost: [n], cost or latency, lower is better.
        quality: [n], higher is better.

    Returns:
        Indices of the frontier's points, by rising cost, then rising quality.
    """
    paid, got = np.asarray(cost, dtype=np.float64), np.asarray(quality, dtype=np.float64)
    on = np.flatnonzero(undominated([paid, -got]))
    return on[np.lexsort((got[on], paid[on]))]


def hypervolume(paid: Sequence[ArrayLike], quality: ArrayLike, *, worst: Sequence[float]) -> float:
    """Return the share of the box between worst and ideal corner that at least one stack dominates.

    Two sets of stacks are only comparable at the same corner (Zitzler & Thiele 1999, IEEE Trans. Evol.
    Comput. 3). The ideal corner is cost 0, latency 0 and quality 1.

    Args:
        paid: Cost, latency or both, each [n], lower is better.
        quality: [n], 0..1, higher is better.
        worst: The corner: a value for each of `paid`, then one for quality.

    Returns:
        0..1; 0 if no point is known on every axis or the box has no extent.
    """
    points = _to_minimise(paid, quality)
    points = points[undominated(list(points.T))]
    ideal = np.array([0.0] * len(paid) + [-1.0])
    extent = np.array([*worst[:-1], -worst[-1]]) - ideal
    if not len(points) or (extent <= 0).any():
        return 0.0
    return float(moocore.hypervolume((points - ideal) / extent, ref=np.ones(len(extent))))


def knee(paid: Sequence[ArrayLike], quality: ArrayLike) -> int | None:
    """Return the point of the frontier after which more quality costs the most.

    Every axis is scaled to 0..1 over the frontier; the knee is the point farthest from the line (in three
    axes, the plane) through the ends, on the side of the ideal (Das 1999, Struct. Optim. 18).

    Args:
        paid: Cost, latency or both, each [n], lower is better.
        quality: [n], higher is better.

    Returns:
        Its row; None if the frontier has fewer than three different points or bends nowhere towards the
        ideal.
    """
    points = _to_minimise(paid, quality)
    on = np.flatnonzero(undominated(list(points.T)))
    points = points[on]
    if len(np.unique(points, axis=0)) < 3:
        return None
    low, extent = points.min(axis=0), np.ptp(points, axis=0)
    scaled = (points - low) / np.where(extent > 0, extent, 1.0)
    distance = scaled.sum(axis=1)
    # The ends are at the best of each axis; on the line through the ends of two axes the sum is 1.
    ends = float(np.mean([distance[scaled[:, axis].argmin()] for axis in range(scaled.shape[1])]))
    nearest = int(distance.argmin())
    return int(on[nearest]) if distance[nearest] < ends - 1e-12 else None


def _to_minimise(paid: Sequence[ArrayLike], quality: ArrayLike) -> Floats:
    """Stack the costs and the quality as columns, each better the lower."""
    return np.column_stack([*paid, -np.asarray(quality, dtype=np.float64)])


def frontier(table: pl.DataFrame, decision: Decision, *, weak: bool = False) -> Mask:
    """Return which feasible stacks no other feasible one beats on the compared axes.

    The axes are cost, latency and quality in the direction of the measure, except those on which nothing is
    known. If only quality is left, the stacks of the best quality are on the frontier. In the usual form, the
    stacks `by_noise` are not.

    Args:
        weak: Whether to take the paper's form; see `undominated`.

    Returns:
        Mask [n].
    """
    mask = _unbeaten(table, decision, weak=weak)
    return mask if weak else mask & ~by_noise(table, decision)


def by_noise(table: pl.DataFrame, decision: Decision) -> Mask:
    """Return which feasible stacks a better one beats, allowing for the noise of their timing.

    The better one is neither slower by more than the jitter band nor dearer by more than the noise of a cost,
    if this was measured for one of them (`cost_noise`).

    Returns:
        Mask [n].
    """
    beaten = np.zeros(table.height, dtype=np.bool_)
    timed = ~np.isnan(floats(table, "cost_noise"))
    if not timed.any():
        return beaten
    merit = decision.quality.merit(decision.quality.read(table))
    latency, cost, alike = LATENCY.read(table), COST.read(table), costs_alike(table)
    for row in np.flatnonzero(_unbeaten(table, decision)):
        near = latency[row] <= latency + np.maximum(decision.band[row], decision.band)
        near &= cost[row] <= cost * (1 + np.maximum(alike[row], alike))
        beaten |= near & (merit[row] > merit + ROUNDING) & (timed | timed[row])
    return beaten & decision.feasible


def _unbeaten(table: pl.DataFrame, decision: Decision, *, weak: bool = False) -> Mask:
    mask = decision.feasible.copy()
    if mask.any():
        points = [-axis.merit(axis.read(table))[mask] for axis in decision.compared]
        mask[mask] = undominated(points, weak=weak)
    return mask


def frontier_rows(table: pl.DataFrame, decision: Decision, *, weak: bool = False) -> list[int]:
    """Return the rows of `frontier`, the best quality first."""
    on = frontier(table, decision, weak=weak).nonzero()[0]
    worst_last = -decision.quality.merit(decision.quality.read(table))[on]
    return [int(row) for row in on[worst_last.argsort(kind="stable")]]
