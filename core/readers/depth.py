"""One reader's scores by k: its best depth, how stable that is, how far it scales (RAGGED §2, §4–6).

Scores are points, 0 to 100, over the depths that were evaluated; depth 0 is the closed book.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from core.errors import InputError

DELTA = 5  # Distance from k* of the neighbours in RSS (RAGGED §2)
EPSILON = 0.5  # The smallest gain, in points, that counts as one (RAGGED §2)
PLATEAU = 0.95  # Share of the best score that the deepest k has to keep for a plateau

_Shape = Literal["improve-then-plateau", "peak-then-decline"]

_ROUNDING = 1e-9  # points; 40.4 − 39.9 is a gain of 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """The figures of one reader on one run (metrics.md §5)."""

    k_star: int  # the k of the best score, the smallest on ties
    best: float  # points, at k*
    rss: float | None  # stability: the worst neighbour's share of the best score
    rss_fewer: float | None  # the same for the neighbours below k* alone; None if there is none
    rss_more: float | None  # the same for the neighbours above k*
    rss_reason: str | None  # why there is no RSS
    rsc: float  # scalability, k_last read as "last anywhere", the formula; can be negative
    rsc_before_stop: float  # the same, k_last read as the last k before the first gain below epsilon
    k_last: int  # start_k if no gain counts
    k_last_before_stop: int
    start_k: int  # where the sum of gains starts: 0 = closed book, otherwise the smallest k
    shape: _Shape | None  # None if one k was evaluated or every score is 0
    wanted: tuple[int, ...]  # depths needed to compute RSS: the ends of k* ± delta


def depth_of(
    ks: Sequence[int],
    values: Sequence[float | None],
    *,
    closed_book: float | None = None,
    delta: int = DELTA,
    epsilon: float = EPSILON,
    plateau: float = PLATEAU,
) -> Depth:
    """Compute the figures of a curve of scores by k."""
    scores = _curve(ks, values)
    if closed_book is None or math.isnan(closed_book):
        closed_book = scores.get(0)
    by_k = {k: scores[k] for k in sorted(scores) if k > 0}
    if not by_k:
        raise InputError("No depth k ≥ 1 has a score.", do="Evaluate the reader at one k at least.")
    k_star = max(by_k, key=lambda k: (by_k[k], -k))
    fewer, more, reason = _stability(by_k, k_star, delta)
    rss = min((side for side in (fewer, more) if side is not None), default=None)
    path = by_k if closed_book is None else {0: closed_book, **by_k}
    start = next(iter(path))
    anywhere, before_stop = _last_gains(path, epsilon)
    near = (max(1, k_star - delta), k_star + delta)
    return Depth(
        k_star=k_star,
        best=by_k[k_star],
        rss=rss,
        rss_fewer=fewer,
        rss_more=more,
        rss_reason=reason,
        rsc=anywhere * (path[anywhere] - path[start]),
        rsc_before_stop=before_stop * (path[before_stop] - path[start]),
        k_last=anywhere,
        k_last_before_stop=before_stop,
        start_k=start,
        shape=_shape(by_k, k_star, plateau),
        wanted=() if rss is not None or not by_k[k_star] else tuple(k for k in near if k not in by_k),
    )


def which(ks: Sequence[int], held: Sequence[bool]) -> str:
    """Describe the depths at which something holds, as in RAGGED's Table 1: always, never, k ≤ 5, k = 2, 10.

    Args:
        ks: Depths that were evaluated, ascending.
        held: Whether it holds at each.
    """
    true = [k for k, holds in zip(ks, held, strict=True) if holds]
    if not true or len(true) == len(ks):
        return "always" if true else "never"
    if len(true) > 1 and true == list(ks[: len(true)]):
        return f"k ≤ {true[-1]}"
    if len(true) > 1 and true == list(ks[-len(true) :]):
        return f"k ≥ {true[0]}"
    return f"k = {', '.join(map(str, true))}"


def _curve(ks: Sequence[int], values: Sequence[float | None]) -> dict[int, float]:
    scores: dict[int, float] = {}
    for k, value in zip(ks, values, strict=True):
        if value is None or math.isnan(value):
            continue
        if k < 0 or k in scores:
            raise InputError(f"k = {k} {'is not a depth' if k < 0 else 'has two scores'}.")
        scores[int(k)] = float(value)
    return scores


def _stability(
    by_k: dict[int, float], k_star: int, delta: int
) -> tuple[float | None, float | None, str | None]:
    """Return the worst neighbour's share of the best score below and above k* (RAGGED eq. 1), or why none."""
    if not by_k[k_star]:
        return None, None, f"the best score, at k = {k_star}, is 0"
    near = {k: value / by_k[k_star] for k, value in by_k.items() if k != k_star and abs(k - k_star) <= delta}
    fewer = min((share for k, share in near.items() if k < k_star), default=None)
    more = min((share for k, share in near.items() if k > k_star), default=None)
    return fewer, more, None if near else f"no other k within {k_star} ± {delta} was evaluated"


def _last_gains(path: dict[int, float], epsilon: float) -> tuple[int, int]:
    """Return k_last of RSC (RAGGED eq. 2): of the last gain anywhere, and of the last before a gain fails."""
    depths = list(path)
    anywhere = before_stop = depths[0]
    stopped = False
    for previous, k in pairwise(depths):
        if path[k] - path[previous] >= epsilon - _ROUNDING:
            anywhere = k
            before_stop = before_stop if stopped else k
        else:
            stopped = True
    return anywhere, before_stop


def _shape(by_k: dict[int, float], k_star: int, plateau: float) -> _Shape | None:
    if len(by_k) < 2 or not by_k[k_star]:
        return None
    kept = by_k[max(by_k)] >= plateau * by_k[k_star] - _ROUNDING
    return "improve-then-plateau" if kept else "peak-then-decline"
