"""Confidence in a choice: shares of joint resamples of the queries in which a stack is best or feasible.

One draw of the queries serves the quality and the latency of every stack (metrics.md §10), so a query that is
both hard and slow is so for all of them at once. Cost does not vary. The work is done in blocks of resamples,
with all stacks of a block processed together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from core.arrays import Floats, Mask
from core.decide.axes import COST, LATENCY, QUALITY, Axis
from core.decide.pareto import undominated
from core.decide.rules import RULES, Constraints, Rule
from core.decide.ties import CHEAPER, JITTER_MS, ROUNDING
from core.errors import InputError, UnknownNameError
from core.stats.intervals import RESAMPLES, Labels, query_weights, quotient
from core.stats.latency import inflation

_CELLS = 1 << 21  # Stacks × resamples of one block; bounds the memory of an array to 16 MB
_TIE = 1e-12
_FEW = 64  # Maximum number of stacks for which comparing all at once is faster than one resample at a time
_Noise = tuple[Floats, Floats]
"""What timing leaves uncertain [S]: the band of latencies, ms, and the share of a cost (NaN = unknown)."""


@dataclass(frozen=True, slots=True, eq=False)
class JointSample:
    """Results of S stacks on Q queries, as far as they are known."""

    # [S, Q], 0..1; NaN = not applicable. A row without any value falls back to `fixed_quality`.
    quality: Floats
    latency_ms: Floats  # [S, Q]; ms; NaN = not timed. A row without any value falls back to `fixed_latency`.
    cost: Floats  # [S], $ per 1,000 queries; NaN = unknown
    fixed_quality: Floats  # [S], the reported mean of stacks without values per query; NaN = unknown
    fixed_latency: Floats  # [S], the reported latency of stacks without timings; NaN = unknown
    share: float | None = 0.5  # the percentile of the latency, 0.5 or 0.95 for example; None = its mean
    # By the key of an axis beside the quality [S, Q], NaN = unknown, and [S], the reported means of the rows
    # without any value; left out if not needed
    beside: Mapping[str, tuple[Floats, Floats]] = field(default_factory=dict)
    # [S], width within which latencies count as equal; ms. Empty = the paper's for all.
    band: Floats = field(default_factory=lambda: np.empty(0))
    # [S], share of a cost that its timing leaves uncertain; NaN = not measured. Empty = of none.
    cost_noise: Floats = field(default_factory=lambda: np.empty(0))
    query_ids: tuple[str, ...] = ()  # [Q], the queries' ids; empty if not needed
    clusters: Labels | None = None  # [Q], equal for the queries of a group, drawn together; None = each alone
    # [S], the φ of successive latencies (`core.stats.latency.serial`); empty = independent
    serial: Floats = field(default_factory=lambda: np.empty(0))
    # [S, R], means of the quality if each resample draws grades too (`core.stats.judge_noise`); empty =
    # only the queries are drawn. For a row without any value `quality` counts.
    noisy: Floats = field(default_factory=lambda: np.empty((0, 0)))
    again: Floats = field(default_factory=lambda: np.empty((0, 0)))  # [S, R], such means on new queries

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
        if self.share is not None and not 0 < self.share < 1:
            raise InputError(f"{self.share} is not a percentile.", do="Give one between 0 and 1: 0.95.")

    @property
    def quality_varies(self) -> Mask:
        """Which stacks have a quality per query [S]."""
        return _varies(self.quality)

    @property
    def latency_varies(self) -> Mask:
        """Which stacks have a latency per query [S]."""
        return _varies(self.latency_ms)

    def bands(self, limits: Constraints) -> Floats:
        """Return the band within which a stack's latencies count as equal, under some limits [S]; ms."""
        if limits.jitter_ms is None and len(self.band):
            return self.band
        return np.full(len(self.cost), JITTER_MS if limits.jitter_ms is None else limits.jitter_ms)

    def known(self) -> dict[str, Mask]:
        """Return for each axis the stacks whose number is known [S]."""
        masks = {
            QUALITY.key: self.quality_varies | ~np.isnan(self.fixed_quality),
            LATENCY.key: self.latency_varies | ~np.isnan(self.fixed_latency),
            COST.key: ~np.isnan(self.cost),
        }
        return masks | {
            key: _varies(values) | ~np.isnan(fixed) for key, (values, fixed) in self.beside.items()
        }

    def take(self, rows: Sequence[int]) -> JointSample:
        """Return some of the stacks."""
        kept = np.asarray(rows, dtype=np.intp)
        names = (
            field.name
            for field in fields(self)
            if field.name not in ("share", "query_ids", "beside", "clusters")
        )
        beside = {key: (values[kept], fixed[kept]) for key, (values, fixed) in self.beside.items()}
        some = {name: values[kept] for name in names if len(values := getattr(self, name))}
        return replace(self, beside=beside, **some)

    def drawn(self, drawn: Floats, required: Sequence[Axis]) -> dict[str, Floats]:
        """Return the numbers of every stack in every resample, by axis; see `on_axis`.

        Args:
            required: Axes needed besides quality, latency and cost.
        """
        keys = dict.fromkeys((QUALITY.key, LATENCY.key, COST.key, *(axis.key for axis in required)))
        return {key: self.on_axis(key, drawn) for key in keys}

    def on_axis(self, key: str, drawn: Floats) -> Floats:
        """Return each stack's numbers on an axis in every resample [S, B]; [S, 1] for the cost.

        Args:
            drawn: [B, Q], how often each query counts; whole numbers.
        """
        if key == QUALITY.key:
            return qualities(self, drawn)
        if key == LATENCY.key:
            return latencies(self, drawn)
        if key == COST.key:
            return self.cost[:, None]
        if key not in self.beside:
            return np.full((len(self.cost), len(drawn)), np.nan)
        return means_drawn(*self.beside[key], drawn)


def _varies(values: Floats) -> Mask:
    """Return which stacks have values per query [S]."""
    return np.asarray((~np.isnan(values)).any(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Chances:
    """Shares of the resamples, 0..1, per stack [S]."""

    # In which the stack is on the frontier of the compared axes, by more than the noise of timings; NaN if
    # one of its numbers there is unknown, and if quality is the only axis
    frontier: Floats
    sla: Floats  # in which it meets the SLA; NaN without an SLA or if the latency is unknown
    feasible: Floats  # in which it meets every constraint; NaN if a required number is unknown
    # In which the stack is the best under the rule; each of several equal bests counts. The rule's tie-breaks
    # are left out: this is about which stack is best, not about which of two equal ones is taken.
    best: Floats
    again: Floats  # in which it is the best on as many new queries; NaN if `JointSample.again` is empty
    # Whether anything of the stack varies between resamples; if not, a share only reflects the others
    varies: Mask

    @property
    def counted(self) -> tuple[Floats, ...]:
        """All shares, in order."""
        return self.frontier, self.sla, self.feasible, self.best, self.again


def chances(
    sample: JointSample,
    constraints: Constraints,
    rule: Rule = "quality",
    *,
    resamples: int = RESAMPLES,
    seed: int,
) -> Chances:
    """Count the outcomes over resamples of the queries.

    Args:
        sample: Quality and latency per query, and cost.
        constraints: SLA, budget, floor, harm cap, jitter band and the direction of the quality.
        rule: "quality" takes the best quality; "cost" minimises cost, then takes the best quality; "latency"
            the best quality within the jitter band of the fastest.
        resamples: Number of resamples; with judge noise as many as it has.
        seed: Seed of the resampling; the same seed draws the same queries as every other interval here.

    Returns:
        The shares. The frontier compares cost and latency if any stack has them.

    Raises:
        UnknownNameError: If the rule does not exist.
        InputError: If there is no resample.
    """
    if rule not in RULES:
        raise UnknownNameError("rule", rule, RULES)
    stacks, queries = sample.quality.shape
    required, known = constraints.required(rule), sample.known()
    quality_axis = next(axis for axis in required if axis.key == QUALITY.key)
    resamples = sample.noisy.shape[1] or resamples
    weighed = query_weights(queries, resamples, seed, sample.clusters)
    sums, noise = np.zeros((5, stacks)), _noise(sample, constraints)
    block = max(1, _CELLS // max(1, stacks))
    for start in range(0, resamples, block):
        values, part = sample.drawn(weighed[start : start + block], required), slice(start, start + block)
        latency = values[LATENCY.key]
        for place, means in enumerate((sample.noisy, sample.again)):
            if means.size:
                drawn_too = ~np.isnan(means).all(axis=1, keepdims=True)
                values[QUALITY.key] = np.where(drawn_too, means[:, part], values[QUALITY.key])
            merit = quality_axis.merit(values[QUALITY.key])
            feasible = feasible_in(values, constraints, (rule, required), known=known)
            best = _best(merit, latency, sample.cost, feasible, (rule, sample.bands(constraints)))
            sums[3 + place] += best
            if not place:
                sums[0] += _on_frontier(merit, latency, sample.cost, noise)
                sums[1] += (latency <= (np.inf if constraints.sla_ms is None else constraints.sla_ms)).sum(
                    axis=1
                )
                sums[2] += feasible.sum(axis=1)
    shares = sums / resamples
    shares[4, slice(None) if not sample.again.size else slice(0)] = np.nan
    compared = [
        axis for axis in constraints.axes if axis.compared and (axis == quality_axis or known[axis.key].any())
    ]
    shares[0, _any_unknown(known, compared) if len(compared) > 1 else slice(None)] = np.nan
    shares[1, ~known[LATENCY.key] if constraints.sla_ms is not None else slice(None)] = np.nan
    shares[2, _any_unknown(known, required)] = np.nan
    varies = sample.quality_varies | sample.latency_varies
    frontier, sla, within, best, again = shares
    return Chances(frontier, sla, within, best, again, varies)


def _any_unknown(known: Mapping[str, Mask], among: Sequence[Axis]) -> Mask:
    """Return which stacks lack a number on one of some axes [S]."""
    nowhere = np.zeros_like(known[QUALITY.key])
    return np.asarray(~np.logical_and.reduce([known.get(axis.key, nowhere) for axis in among]))


def qualities(sample: JointSample, drawn: Floats) -> Floats:
    """Mean quality of every stack in every resample."""
    return means_drawn(sample.quality, sample.fixed_quality, drawn)


def means_drawn(values: Floats, reported: Floats, drawn: Floats) -> Floats:
    """Return means [S, B] of values per query [S, Q], the reported ones [S] if there are no values."""
    known = ~np.isnan(values)
    means = quotient(np.where(known, values, 0.0) @ drawn.T, known.astype(np.float64) @ drawn.T)
    fixed = ~_varies(values)
    means[fixed] = reported[fixed, None]
    return means


def latencies(sample: JointSample, drawn: Floats) -> Floats:
    """Return the percentile, or the mean, of the latency of every stack in every resample.

    If successive latencies are correlated, resamples lie correspondingly further from the sample's.
    """
    found = _latencies(sample, drawn)
    if not sample.serial.any():
        return found
    once = _latencies(sample, np.ones((1, drawn.shape[1])))
    wider = np.sqrt(inflation(sample.serial, sample.share))[:, None]
    return np.asarray(np.where(np.isnan(once), found, np.maximum(once + wider * (found - once), 0.0)))


def _latencies(sample: JointSample, drawn: Floats) -> Floats:
    if sample.share is None:
        return means_drawn(sample.latency_ms, sample.fixed_latency, drawn)
    percentiles = np.repeat(sample.fixed_latency[:, None], len(drawn), axis=1)
    counts = np.ascontiguousarray(drawn.T, dtype=np.int32)
    for row in np.flatnonzero(sample.latency_varies):
        percentiles[row] = weighted_percentile(sample.latency_ms[row], counts, sample.share)
    return percentiles


def weighted_percentile(values: Floats, counts: NDArray[np.int32], share: float) -> Floats:
    """Return a percentile, interpolated linearly between order statistics, of every resample of a sample."""
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


def feasible_in(
    values: Mapping[str, Floats],
    limits: Constraints,
    asked: tuple[Rule, Sequence[Axis]],
    *,
    known: Mapping[str, Mask],
) -> Mask:
    """Return which stacks meet the limits in each resample [S, B], among those known on every required axis.

    If none of the drawn queries was timed on a stack, it meets no limit on its latency.
    """
    rule, required = asked
    meets = ~np.isnan(values[QUALITY.key]) & ~_any_unknown(known, required)[:, None]
    for axis in required:
        limit, numbers = limits.of(axis), values[axis.key]
        if limit is not None:
            meets &= axis.merit(numbers) >= axis.merit(np.asarray(limit))
        elif axis.key == rule:
            meets &= ~np.isnan(numbers)
    return meets


def _best(merit: Floats, latency: Floats, cost: Floats, feasible: Mask, rule: tuple[Rule, Floats]) -> Floats:
    """Return in how many resamples each stack is the best [S]; each of equal bests counts.

    The rule comes with the bands [S].
    """
    name, band = rule
    among = near_objective(latency, cost, feasible, band, name)
    reached = np.where(among, merit, -np.inf)
    best = among & (reached >= reached.max(axis=0, initial=-np.inf) - _TIE)
    return np.asarray(best.sum(axis=1), dtype=np.float64)


def near_objective(latency: Floats, cost: Floats, feasible: Mask, band: Floats, rule: Rule) -> Mask:
    """Return which feasible stacks the rule cannot tell from its best, quality aside [S, B].

    Bands [S] in ms.
    """
    if rule == "quality":
        return feasible
    if rule == "cost":
        paid = np.where(feasible, cost[:, None], np.inf)
        return np.asarray(feasible & (paid <= paid.min(axis=0) * (1 + CHEAPER)))
    gap = np.where(feasible, latency, np.inf)
    width = np.maximum(band[:, None], band[gap.argmin(axis=0)])
    gap -= np.where(feasible.any(axis=0), gap.min(axis=0), 0.0)
    return np.asarray(feasible & (gap <= width + _TIE))


def _noise(sample: JointSample, limits: Constraints) -> _Noise:
    share = sample.cost_noise if len(sample.cost_noise) else np.full(len(sample.cost), np.nan)
    return sample.bands(limits), share


def _by_noise(axes: tuple[Floats, Floats, Floats], kept: Mask, noise: _Noise) -> Mask:
    """Return which stacks of the frontier a better one beats but for the noise of timing [S, B].

    It is `core.decide.pareto.by_noise` in every resample.

    Args:
        axes: Merit and latency [S, B], cost [S, 1]; NaN = unknown of all.
        kept: The frontier [S, B].
    """
    (merit, latency, cost), (band, share) = axes, noise
    measured, beaten = ~np.isnan(share), np.zeros_like(kept)
    alike = np.fmax(CHEAPER, share)
    for row in range(len(kept)) if measured.any() else ():
        slack_ms, slack = np.maximum(band, band[row])[:, None], np.maximum(alike, alike[row])[:, None]
        near = kept[row] & (measured | measured[row])[:, None]
        near &= np.isnan(latency) | (latency[row] <= latency + slack_ms)
        near &= np.isnan(cost) | (cost[row] <= cost * (1 + slack))
        beaten |= near & (merit[row] > merit + ROUNDING)
    return beaten


def _on_frontier(merit: Floats, latency: Floats, cost: Floats, noise: _Noise) -> Floats:
    """Return in how many resamples each stack is on the frontier [S]."""
    timed, priced = not np.isnan(latency).all(), not np.isnan(cost).all()
    counts = np.zeros(len(cost))
    if not (timed or priced):
        return counts
    rows = _contenders(merit, latency if timed else None, cost if priced else None)
    axes = merit[rows], latency[rows], cost[rows, None]
    among = [-axes[0], *([axes[1]] if timed else []), *([axes[2]] if priced else [])]
    kept = (_undominated_each if len(rows) <= _FEW else _undominated_of_many)(among)
    counts[rows] = (kept & ~_by_noise(axes, kept, (noise[0][rows], noise[1][rows]))).sum(axis=1)
    return counts


def _undominated_of_many(axes: Sequence[Floats]) -> Mask:
    """Return the same as `_undominated_each`, one resample at a time."""
    broadcast = np.broadcast_arrays(*axes)
    return np.stack([undominated(list(one)) for one in zip(*(axis.T for axis in broadcast), strict=True)], 1)


def _undominated_each(axes: Sequence[Floats]) -> Mask:
    """Return which of a few stacks are on the frontier in every resample [S, B]; see `undominated`.

    Axes [S, B], or [S, 1] if constant over resamples, are better the lower.
    """
    kept = np.asarray(~np.logical_or.reduce(np.broadcast_arrays(*map(np.isnan, axes))))
    for stack in range(len(kept)):
        beaten = np.logical_and.reduce(np.broadcast_arrays(*(axis[stack] <= axis for axis in axes)))
        beaten &= np.logical_or.reduce(np.broadcast_arrays(*(axis[stack] < axis for axis in axes)))
        kept &= ~beaten
    return kept


def _contenders(merit: Floats, latency: Floats | None, cost: Floats | None) -> NDArray[np.intp]:
    """Return rows that no other row beats throughout the block's resamples; others are never on the frontier.

    What such a row dominates is also dominated by the row that beats it, so leaving it out changes nothing.
    """
    paid = [] if cost is None else [cost]
    slowest, fastest = ([], []) if latency is None else ([latency.max(axis=1)], [latency.min(axis=1)])
    worst = np.column_stack([*paid, *slowest, -merit.min(axis=1)])
    ideal = np.column_stack([*paid, *fastest, -merit.max(axis=1)])
    kept = np.ones(len(merit), dtype=np.bool_)
    for row in worst[undominated(list(worst.T))]:
        kept &= ~((row <= ideal).all(axis=1) & (row < ideal).any(axis=1))
    return np.flatnonzero(kept)
