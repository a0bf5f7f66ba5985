"""How sure a choice is: shares of joint resamples of the queries in which a stack does this or that.

One draw of the queries serves the quality and the latency of every stack (metrics.md §10), so a query that is
both hard and slow is so for all of them at once. Cost does not vary. Work goes by blocks of resamples, in
each of which all stacks are looked at together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.clq.pareto import nondominated
from core.clq.rules import Constraints, Rule
from core.clq.significance.bootstrap import RESAMPLES, weights
from core.clq.significance.sample import Floats, quotient
from core.errors import InputError, UnknownNameError

_CELLS = 1 << 21
"""Stacks × resamples of one block; bounds the memory of an array to 16 MB."""
_TIE = 1e-12
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class JointSample:
    """What is known of S stacks on Q queries.

    Attributes:
        quality: [S, Q], 0..1; NaN = not applicable. A row without any value falls back to `fixed_quality`.
        latency_ms: [S, Q]; ms; NaN = not timed. A row without any value falls back to `fixed_latency`.
        cost: [S], $ per 1,000 queries; NaN = unknown.
        fixed_quality: [S], the reported mean of stacks without values per query; NaN = unknown.
        fixed_latency: [S], the reported latency of stacks without timings; NaN = unknown.
        share: The percentile of the latency, 0.5 or 0.95 for example.
    """

    quality: Floats
    latency_ms: Floats
    cost: Floats
    fixed_quality: Floats
    fixed_latency: Floats
    share: float = 0.5

    def __post_init__(self) -> None:
        stacks = len(self.cost)
        shapes = {self.quality.shape, self.latency_ms.shape}
        lengths = {len(self.quality), stacks, len(self.fixed_quality), len(self.fixed_latency)}
        if len(shapes) > 1 or self.quality.ndim != 2 or len(lengths) > 1 or not self.quality.shape[1]:
            raise InputError(
                f"Quality of shape {self.quality.shape} and latency of shape {self.latency_ms.shape} of "
                f"{stacks} stacks do not belong together.",
                do="Give both as [stacks, queries] on the same queries.",
            )
        if not 0 < self.share < 1:
            raise InputError(f"{self.share} is no percentile.", do="Give one between 0 and 1, such as 0.95.")

    @property
    def quality_varies(self) -> Mask:
        """Which stacks have a quality per query [S]."""
        return np.asarray((~np.isnan(self.quality)).any(axis=1))

    @property
    def latency_varies(self) -> Mask:
        """Which stacks have a latency per query [S]."""
        return np.asarray((~np.isnan(self.latency_ms)).any(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Chances:
    """Shares of the resamples, 0..1, per stack [S].

    Attributes:
        frontier: In which the stack is on the frontier of the compared axes.
        sla: In which it meets the SLA; NaN without an SLA or where the latency is unknown.
        feasible: In which it meets every constraint.
        best: In which it is the best under the rule; equal bests share one. The tie-breaks of the rule are
            left out: this is about which stack is best, not about which of two alike is taken.
        varies: Whether anything of the stack varies between resamples; where not, a share only says what
            the others do.
        resamples: How many.
        seed: Of the resampling.
    """

    frontier: Floats
    sla: Floats
    feasible: Floats
    best: Floats
    varies: Mask
    resamples: int
    seed: int


def chances(
    sample: JointSample,
    constraints: Constraints,
    rule: Rule = "quality",
    *,
    resamples: int = RESAMPLES,
    seed: int,
) -> Chances:
    """Resample the queries and count.

    Args:
        sample: Quality and latency per query, and cost.
        constraints: SLA, budget, floor and jitter band.
        rule: "quality" maximises quality; "cost" minimises cost, then maximises quality; "latency" maximises
            quality within the jitter band of the fastest.
        resamples: How many.
        seed: Of the resampling; the same seed draws the same queries as every other interval here.

    Returns:
        The shares. The frontier compares cost and latency where any stack has them; a stack whose value on a
        compared axis is unknown is not on it, as in `core.clq.pareto.nondominated`.

    Raises:
        UnknownNameError: If the rule does not exist.
        InputError: If there is no resample.
    """
    if rule not in ("quality", "cost", "latency"):
        raise UnknownNameError("rule", rule, ("quality", "cost", "latency"))
    stacks, queries = sample.quality.shape
    drawn = weights(queries, resamples, seed)
    sums = np.zeros((4, stacks))
    block = max(1, _CELLS // max(1, stacks))
    for start in range(0, resamples, block):
        part = drawn[start : start + block]
        quality, latency = qualities(sample, part), latencies(sample, part)
        feasible = feasible_in(quality, latency, sample.cost, constraints, rule)
        sums[0] += _on_frontier(quality, latency, sample.cost)
        sums[1] += _within(latency, constraints.sla_ms).sum(axis=1)
        sums[2] += feasible.sum(axis=1)
        sums[3] += _best(quality, latency, sample.cost, feasible, (rule, constraints.jitter_ms))
    shares = sums / resamples
    timed = sample.latency_varies | ~np.isnan(sample.fixed_latency)
    shares[1, ~timed if constraints.sla_ms is not None else slice(None)] = np.nan
    varies = sample.quality_varies | sample.latency_varies
    return Chances(shares[0], shares[1], shares[2], shares[3], varies, resamples, seed)


def qualities(sample: JointSample, drawn: Floats) -> Floats:
    """Mean quality of every stack in every resample.

    Args:
        sample: Quality per query.
        drawn: [B, Q], how often each query counts; not necessarily whole numbers.

    Returns:
        [S, B]; NaN where no query of a stack counts.
    """
    known = ~np.isnan(sample.quality)
    means = quotient(np.where(known, sample.quality, 0.0) @ drawn.T, known.astype(np.float64) @ drawn.T)
    fixed = ~sample.quality_varies
    means[fixed] = sample.fixed_quality[fixed, None]
    return means


def latencies(sample: JointSample, drawn: Floats) -> Floats:
    """The percentile of the latency of every stack in every resample.

    Args:
        sample: Latency per query.
        drawn: [B, Q], how often each query counts; whole numbers.

    Returns:
        [S, B]; ms, NaN where it is unknown.
    """
    made = np.repeat(sample.fixed_latency[:, None], len(drawn), axis=1)
    counts = np.ascontiguousarray(drawn.T, dtype=np.int32)
    for row in np.flatnonzero(sample.latency_varies):
        made[row] = weighted_percentile(sample.latency_ms[row], counts, sample.share)
    return made


def weighted_percentile(values: Floats, counts: NDArray[np.int32], share: float) -> Floats:
    """A percentile, interpolated linearly between order statistics, of every resample of a sample.

    Args:
        values: [Q]; NaN = no value, never drawn.
        counts: [Q, B], how often each value is drawn in each resample.
        share: The percentile, 0..1.

    Returns:
        [B], equal to `numpy.quantile` of the values repeated by their counts; NaN where none is drawn.
    """
    order = np.argsort(values)[: np.count_nonzero(~np.isnan(values))]
    size = counts[order].sum(axis=0)
    place = share * (size - 1)
    below = np.floor(place).astype(np.int32)
    above = np.minimum(below + 1, size - 1)
    reached, first, second = np.zeros((3, counts.shape[1]), dtype=np.int32)
    for row in order[:-1]:  # by rows: several times faster than one cumulative sum of all
        reached += counts[row]
        first += reached <= below
        second += reached <= above
    low, high = values[order[first]], values[order[second]]
    return np.where(size > 0, low + (high - low) * (place - below), np.nan)


def _within(latency: Floats, sla_ms: float | None) -> Mask:
    return np.asarray(latency <= (np.inf if sla_ms is None else sla_ms))


def feasible_in(quality: Floats, latency: Floats, cost: Floats, limits: Constraints, rule: Rule) -> Mask:
    """Which stacks meet the limits in each resample [S, B].

    As in `core.clq.rules` an unknown value excludes where a constraint or the rule needs it.
    """
    found = ~np.isnan(quality)
    if limits.sla_ms is not None or rule == "latency":
        found &= ~np.isnan(latency) & _within(latency, limits.sla_ms)
    if limits.budget is not None or rule == "cost":
        found &= (cost <= (np.inf if limits.budget is None else limits.budget))[:, None]
    if limits.floor is not None:
        found &= quality >= limits.floor
    return found


def _best(quality: Floats, latency: Floats, cost: Floats, feasible: Mask, rule: tuple[Rule, float]) -> Floats:
    """How many resamples each stack wins [S]; equal bests share one. The rule comes with its jitter band."""
    name, jitter_ms = rule
    among = feasible
    if name == "cost":
        paid = np.where(feasible, cost[:, None], np.inf)
        least = paid.min(axis=0)
        among = feasible & (paid <= least + np.maximum(1e-12, 1e-9 * np.abs(least)))
    if name == "latency":
        gap = np.where(feasible, latency, np.inf)
        gap -= np.where(feasible.any(axis=0), gap.min(axis=0), 0.0)
        among = feasible & ((gap < jitter_ms) | (gap == 0))
    reached = np.where(among, quality, -np.inf)
    best = among & (reached >= reached.max(axis=0, initial=-np.inf) - _TIE)
    return np.asarray((best / np.maximum(best.sum(axis=0), 1)).sum(axis=1))


def _on_frontier(quality: Floats, latency: Floats, cost: Floats) -> Floats:
    """In how many resamples each stack is on the frontier [S]."""
    timed, priced = not np.isnan(latency).all(), not np.isnan(cost).all()
    counts = np.zeros(len(cost))
    if not (timed or priced):
        return counts
    rows = _contenders(quality, latency if timed else None, cost if priced else None)
    paid = cost[rows] if priced else None
    for q, ms in zip(quality[rows].T, latency[rows].T, strict=True):
        counts[rows] += nondominated(paid, ms if timed else None, q)
    return counts


def _contenders(quality: Floats, latency: Floats | None, cost: Floats | None) -> NDArray[np.intp]:
    """Rows that no other row beats in every resample of the block: the others are never on the frontier.

    What such a row dominates is dominated by the row that beats it, too, so leaving it out changes nothing.
    """
    slowest, fastest = (None, None) if latency is None else (latency.max(axis=1), latency.min(axis=1))
    worst, ideal = (cost, slowest, quality.min(axis=1)), (cost, fastest, quality.max(axis=1))
    kept = np.ones(len(quality), dtype=np.bool_)
    paid, reachable = _to_minimise(*worst), _to_minimise(*ideal)
    for row in paid[nondominated(*worst)]:
        kept &= ~((row <= reachable).all(axis=1) & (row < reachable).any(axis=1))
    return np.flatnonzero(kept)


def _to_minimise(cost: Floats | None, latency: Floats | None, quality: Floats) -> Floats:
    return np.column_stack([*(axis for axis in (cost, latency) if axis is not None), -quality])
