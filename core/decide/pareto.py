"""The exact set of stacks that no other stack beats in cost, latency and quality (CLQ paper §3.3)."""

from __future__ import annotations

from collections.abc import Sequence

import moocore
import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import InputError


def nondominated(
    cost: ArrayLike | None,
    latency: ArrayLike | None,
    quality: ArrayLike,
    *,
    weak: bool = False,
) -> NDArray[np.bool_]:
    """Which points are on the frontier.

    A point is dominated if another is at least as good on every axis and strictly better on one. The weak
    form is the paper's: dominated only if another is strictly better on every axis. Equal points stand or
    fall together.
    """
    given = [np.asarray(axis, dtype=np.float64) for axis in (cost, latency) if axis is not None]
    axes = [*given, -np.asarray(quality, dtype=np.float64)]
    if len(axes) < 2 or len({axis.shape for axis in axes}) > 1:
        raise InputError(
            f"A frontier needs two or three axes of one length; found lengths {[len(a) for a in axes]}.",
            do="Give quality with cost, latency or both.",
        )
    return undominated(axes, weak=weak)


def undominated(axes: Sequence[NDArray[np.float64]], *, weak: bool = False) -> NDArray[np.bool_]:
    """Which points are on the frontier of any number of axes, each [n] and better the lower.

    See `nondominated`, also for the weak form; False where an axis is unknown (NaN).
    """
    points = np.column_stack(axes)
    known = ~np.isnan(points).any(axis=1)
    mask = np.zeros(len(points), dtype=np.bool_)
    if known.any():
        shown = points[known]
        mask[known] = moocore.is_nondominated(_weak_keys(shown) if weak else shown, keep_weakly=True)
    return mask


def _weak_keys(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coordinates in which usual dominance means "strictly better on every axis" of the given points.

    Values that tie on an axis are ranked against the order of the other axes, so whoever ties on one axis and
    is better on another becomes worse on the first: neither dominates. Only equal points share a key.
    Keys are exact up to about 200,000 different values an axis (their product stays below 2⁵³).
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


def frontier_2d(cost: ArrayLike, quality: ArrayLike, *, weak: bool = False) -> NDArray[np.intp]:
    """The frontier of two axes in drawing order.

    Args:
        cost: [n], what is paid (cost or latency), lower is better.
        quality: [n], higher is better.
        weak: Use the paper's form.

    Returns:
        Indices of the frontier's points, by rising cost, then rising quality.
    """
    on = np.flatnonzero(nondominated(cost, None, quality, weak=weak))
    paid, got = np.asarray(cost, dtype=np.float64)[on], np.asarray(quality, dtype=np.float64)[on]
    return on[np.lexsort((got, paid))]
