"""Assessment of a choice, and of what the alternatives would bring (metrics.md §9).

Probability of good selection (PGS): the share of draws in which the shipped stack is feasible and no more
than the indifference zone below the best feasible one. Cheaper and faster stacks are offered with their
savings and costs; none is taken automatically.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.arrays import Floats, Mask, Rows
from core.decide.axes import COST, LATENCY, QUALITY, Axis
from core.decide.beliefs import Beliefs
from core.decide.pareto import by_noise, frontier_2d, undominated
from core.decide.rules import Constraints, Decision
from core.decide.ties import CHEAPER, LEVEL, ROUNDING, Numbers, Paired, lightest, ordered
from core.stats.intervals import CLUSTERS

SHOWN = 3  # Alternatives in a card and in a record; the table has all of them
STEP = 0.01  # Step of quality that a price refers to
AGAIN = 0.5**0.5  # How far as many queries again move a mean towards its true value, in its spread
MUCH = 0.5  # Share of the cost, or of the latency, from which on a saving is mentioned first
_SINGLE = 1e-6  # Largest difference between draws in single precision
DECIDED_BY = 2
"""Version of the rule: 1 was ties by significance, until 0.2."""
_EXPECTED = ("expected", "expected_low", "expected_high")
AVERAGES = "there are no results per query"
FEW = "there are too few queries"
ALONE = "there is nothing to choose from"
NOTHING = "nothing is chosen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A feasible stack that is cheaper or faster than the shipped one."""

    row: int  # its row of the table
    # Quality minus the shipped one's: below 0 is worse, whatever the direction of the measure
    difference: float
    low: float | None  # its 95 % interval over the queries of both; None if only averages are known
    high: float | None
    saves_usd: float | None  # $ per 1,000 queries, below 0 if it is dearer; None = unknown
    saves_ms: float | None
    told_apart: bool  # whether the latencies differ by more than the jitter band
    much: bool  # whether it saves at least half of the cost, or of the latency
    p_within_delta: float | None  # chance that it is no more than the indifference zone worse
    # row of the one before it with the same result on every query, no dearer and no faster but for noise
    twin_of: int | None
    expected: float | None  # its quality on new queries
    expected_low: float | None  # its 95 % interval
    expected_high: float | None
    pgs: float | None = None  # its own probability of good selection; None = unknown, or not the first


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitPrice:
    """The extra cost of the next better stack on a frontier."""

    row: int  # its row of the table
    than: int  # the one before it on the frontier
    gain: float  # gain in quality; above 0 is better
    more: float  # $ per 1,000 queries, or ms
    per_step: float  # the price per `STEP` of quality


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """Confidence in a decision and its alternatives, for every page, command, record and agent."""

    pgs: float | None  # probability of good selection, 0..1; None = unknown
    unknown: str  # why it is unknown
    resamples: int | None  # how many give the chances; None = none
    # Chance that as many queries again reveal a stack that is better by more than δ; None = unknown
    p_better_found: float | None
    p_feasible: float | None  # share of draws in which the shipped stack meets every limit
    expected: float | None  # quality of the shipped stack on new queries
    expected_low: float | None  # its 95 % interval, which holds although the stack was selected
    expected_high: float | None
    expected_next: tuple[float | None, float | None, float | None]  # the same of the runner-up
    ahead: bool  # whether the shipped stack is surely better than every other feasible one
    # Row that is most often the best if the shipped stack isn't a good selection; the cheapest of equals
    rival: int | None
    alternatives: tuple[Alternative, ...]
    prices: Mapping[str, tuple[LimitPrice, ...]]  # prices by the key of the axis that pays: cost, latency
    decided_by: int = DECIDED_BY

    @property
    def offered(self) -> tuple[tuple[Alternative, int], ...]:
        """The alternatives that differ by more than noise, each with the number of its twins."""
        twins = [other.twin_of for other in self.alternatives]
        return tuple((other, twins.count(other.row)) for other in self.alternatives if other.twin_of is None)


def assess(
    table: pl.DataFrame,
    decision: Decision,
    limits: Constraints,
    believed: Beliefs | None,
    paired: Paired | None,
) -> Assessment:
    """Assess a decision: its chance of being good, its expected quality, and its alternatives.

    Args:
        table: The table behind the decision.
        limits: Its limits.
        believed: Beliefs about all rows of the table, in order; None = averages only, or too few queries.
        paired: Quality per query, as used for the decision.
    """
    quality = decision.quality
    numbers = Numbers.of(table, quality, limits.jitter_ms, paired, delta=decision.delta)
    chosen = decision.chosen
    good = within = rival = found = None
    if chosen is not None and believed is not None:
        good, within, rival = _good(believed, decision, limits, chosen)
        found = None if good is None else _found(believed, decision, limits, chosen, good)
        if rival is not None:
            rows = np.flatnonzero(decision.feasible)
            rival = lightest(numbers, rival, rows[rows != chosen])
    alone = chosen is not None and _alone(numbers, decision)
    known = good is not None and not alone
    expected, low, high = _expected(believed, chosen)
    others = _alternatives(decision, numbers, believed, by_noise(table, decision))
    if known and believed is not None and others:  # the same reference as the chosen stack's
        share, _, _ = _good(believed, decision, limits, others[0].row)
        others = (replace(others[0], pgs=share), *others[1:])
    return Assessment(
        pgs=good if known else None,
        unknown="" if known else _why(decision, believed, paired, alone=alone),
        resamples=None if believed is None else len(believed.drawn),
        p_better_found=found if known else None,
        p_feasible=within,
        expected=expected,
        expected_low=low,
        expected_high=high,
        expected_next=_expected(believed, decision.runner_up),
        ahead=chosen is not None and _ahead(numbers, decision, chosen),
        rival=rival if known else None,
        alternatives=others,
        prices={axis.key: _prices(table, decision, axis, numbers.alike) for axis in (COST, LATENCY)},
    )


def _expected(believed: Beliefs | None, row: int | None) -> tuple[float | None, float | None, float | None]:
    """Return a row's expected quality on new queries, with its interval; shares stay in 0..1."""
    if believed is None or row is None:
        return None, None, None
    middle, reach, values = believed.expected[row], believed.reach[row], believed.sample.quality
    least, most = (0.0, 1.0) if np.nanmin(values) >= 0 and np.nanmax(values) <= 1 else (-np.inf, np.inf)
    return _number(middle), _number(max(middle - reach, least)), _number(min(middle + reach, most))


def _why(decision: Decision, believed: Beliefs | None, paired: Paired | None, *, alone: bool) -> str:
    if decision.chosen is None:
        return NOTHING
    if alone:
        return ALONE
    return AVERAGES if paired is None or (believed is None and paired.units >= CLUSTERS) else FEW


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _alone(numbers: Numbers, decision: Decision) -> bool:
    """Return whether all feasible stacks have equal results; one without results per query differs."""
    rows = np.flatnonzero(decision.feasible)
    singly = numbers.singly(rows)
    if numbers.paired is None or not singly.all():
        return len(rows) < 2
    places = numbers.places[rows]
    values, first = numbers.paired.values[places], numbers.paired.values[places[:1]]
    return bool(((values == first) | (np.isnan(values) & np.isnan(first))).all())


def _ahead(numbers: Numbers, decision: Decision, chosen: int) -> bool:
    """Return whether the shipped stack is surely better than each other feasible one.

    The stack was selected, so each comparison uses the end of the two-sided interval (Gutmann & Maymin 1987,
    Ann. Stat. 15): testing the best against the next one keeps its level at half of it.
    """
    others = np.flatnonzero(decision.feasible)
    others = others[others != chosen]
    if not len(others) or numbers.places[chosen] < 0 or not numbers.singly(others).all():
        return False
    nearest = others[[int(numbers.merit[others].argmax())]]  # this one usually decides, at little cost
    return all(
        bool((numbers.better_by(chosen, rows, (1 - LEVEL) / 2)[0] > ROUNDING).all())
        for rows in (nearest, others)
    )


def _good(
    believed: Beliefs, decision: Decision, limits: Constraints, chosen: int
) -> tuple[float | None, float | None, int | None]:
    """Return the shares of draws in which a row is a good selection, and feasible; and its rival."""
    rows = np.flatnonzero(~decision.unknown.any(axis=1))
    if np.isnan(believed.quality[chosen]).any():
        return None, None, None
    fits = _fits(believed, limits, decision.required, np.array([chosen]))[0]
    near, best = _near_best(believed, decision, limits, (chosen, rows))
    good = fits & near
    won = best[~good & (best >= 0) & (best != chosen)]
    rival = int(np.bincount(won).argmax()) if len(won) else None
    return float(good.mean()), float(fits.mean()), rival


def _found(believed: Beliefs, decision: Decision, limits: Constraints, chosen: int, good: float) -> float:
    """Return how often as many queries again reveal a row that is better by more than δ.

    The belief then lies between today's mean and the true one, with half of its variance (Jalal &
    Alarid-Escudero 2018, Med. Decis. Making 38). Under a rule for cost or latency, queries count only for the
    limits, so the doubt is about what they could show.
    """
    if decision.rule != "quality":
        return 1 - good
    rows = np.flatnonzero(~decision.unknown.any(axis=1))
    fits = _fits(believed, limits, decision.required, np.array([chosen]))[0]
    near, _ = _near_best(believed, decision, limits, (chosen, rows), AGAIN)
    return float((fits & ~near).mean())


def _near_best(
    believed: Beliefs, decision: Decision, limits: Constraints, among: tuple[int, Rows], width: float = 1.0
) -> tuple[Mask, Rows]:
    """Return the draws in which no feasible row beats the chosen one by more than δ [B].

    The second result is the best row in each draw [B]; -1 = none that could beat it.

    Args:
        width: Distance of the quality draws from the mean, relative to the actual one.
    """
    chosen, rows = among
    if decision.rule == "quality":
        sign = 1 if decision.quality.higher_is_better else -1
        mine = sign * _drawn(believed, chosen, width)
        rows = rows[believed.peaks(sign)[rows] > mine.min() + decision.delta]  # the others never beat it
        fits = _fits(believed, limits, decision.required, rows)
        merits = np.where(fits, sign * _drawn(believed, rows, width), -np.inf)
        best = merits.max(axis=0, initial=-np.inf)
        return np.asarray(mine >= best - decision.delta - _SINGLE), _firsts(merits, rows)
    fits = _fits(believed, limits, decision.required, rows)
    if decision.rule == "cost":
        cost = np.where(fits, believed.sample.cost[rows, None], np.inf)
        near = believed.sample.cost[chosen] <= cost.min(axis=0, initial=np.inf) * (1 + CHEAPER)
        return np.asarray(near), _firsts(-cost, rows)
    paid = np.where(fits, believed.numbers(LATENCY, rows), np.inf)
    band = np.maximum(decision.band[chosen], decision.band[rows][paid.argmin(axis=0)])
    near = believed.numbers(LATENCY, np.array([chosen]))[0] <= paid.min(axis=0) + band + ROUNDING
    return np.asarray(near), _firsts(-paid, rows)


def _drawn(believed: Beliefs, rows: int | Rows, width: float) -> NDArray[Any]:
    """Return the draws of quality of a row [B], or of several [m, B], with their width scaled."""
    values = believed.quality[rows]
    if width == 1:
        return values
    middle = believed.shrunk[rows][..., None]
    return np.asarray(middle + width * (values - middle))


def _firsts(merits: Floats, rows: Rows) -> Rows:
    """Return the best of some rows in each draw [B]; -1 = none is left."""
    if not len(rows):
        return np.full(merits.shape[1], -1)
    at = merits.argmax(axis=0)
    there = merits[at, np.arange(merits.shape[1])] > -np.inf
    return np.where(there, rows[at], -1)


def _fits(believed: Beliefs, limits: Constraints, required: Sequence[Axis], rows: Rows) -> Mask:
    """Return in which draws rows meet every limit [m, B]; a number without draws meets no limit."""
    fits = np.ones((len(rows), believed.quality.shape[1]), dtype=np.bool_)
    for axis in required:
        limit = limits.of(axis)
        if limit is not None:
            slack = _SINGLE if axis.key == QUALITY.key else 0.0
            merit = axis.merit(believed.numbers(axis, rows))
            fits &= merit >= axis.merit(np.asarray(limit)) - slack
    return fits


def _alternatives(
    decision: Decision, numbers: Numbers, believed: Beliefs | None, noisy: Mask
) -> tuple[Alternative, ...]:
    """Return stacks that are cheaper or faster than the chosen row, the most notable and likeliest first.

    Args:
        noisy: Rows that a better one beats even allowing for noise [n], which are excluded.
    """
    chosen = decision.chosen
    if chosen is None:
        return ()
    rows = _lighter(numbers, decision, chosen)
    rows = rows[~noisy[rows]]
    gaps, low, high = _gaps(numbers, rows, chosen)
    saves_usd, saves_ms = (
        numbers.cost[chosen] - numbers.cost[rows],
        numbers.latency[chosen] - numbers.latency[rows],
    )
    apart_ms = np.abs(saves_ms) > np.maximum(numbers.band[rows], numbers.band[chosen])
    much = (saves_usd >= MUCH * numbers.cost[chosen]) & (saves_usd > 0)
    much |= (saves_ms >= MUCH * numbers.latency[chosen]) & apart_ms
    within = np.full(len(rows), np.nan)
    if believed is not None:
        apart = numbers.sign * (believed.quality[rows] - believed.quality[chosen])
        within = np.where(
            np.isnan(apart).any(axis=1), np.nan, (apart >= -decision.delta - _SINGLE).mean(axis=1)
        )
    first = _told_first(numbers, rows, gaps)
    order = np.lexsort((-gaps, -np.nan_to_num(within, nan=-1.0), rows != first))
    twins = _twins(numbers, rows[order])
    return tuple(
        Alternative(
            row=int(rows[at]),
            difference=float(gaps[at]),
            low=_number(low[at]),
            high=_number(high[at]),
            saves_usd=_number(saves_usd[at]),
            saves_ms=_number(saves_ms[at]),
            told_apart=bool(apart_ms[at]),
            much=bool(much[at]),
            p_within_delta=_number(within[at]),
            twin_of=twins.get(int(rows[at])),
            **dict(zip(_EXPECTED, _expected(believed, int(rows[at])), strict=True)),
        )
        for at in order
    )


def _twins(numbers: Numbers, rows: Rows) -> dict[int, int]:
    """Return the rows that equal an earlier one on every query, and in cost and time within noise."""
    if numbers.paired is None:
        return {}
    twins: dict[int, int] = {}
    values = {int(row): numbers.paired.values[numbers.places[row]] for row in rows[numbers.singly(rows)]}
    for row, own in values.items():
        for first, results in values.items():
            if first == row:
                break
            alike = max(numbers.alike[[row, first]]) * numbers.cost[first]
            band = max(numbers.band[[row, first]])
            near = abs(numbers.cost[row] - numbers.cost[first]) <= alike
            near &= abs(numbers.latency[row] - numbers.latency[first]) <= band
            if near and first not in twins and np.array_equal(own, results, equal_nan=True):
                twins[row] = first
                break
    return twins


def _told_first(numbers: Numbers, rows: Rows, gaps: Floats) -> int | None:
    """Return the cheapest, then the fastest, of rows within δ of the chosen one, or None."""
    within = rows[gaps >= -numbers.delta - ROUNDING]
    return int(ordered(numbers, within)[0]) if len(within) else None


def _lighter(numbers: Numbers, decision: Decision, chosen: int) -> Rows:
    """Return the feasible rows that are cheaper or faster, and that no other of them beats.

    A stack of unknown latency cannot be said to replace one that was timed.
    """
    rows: Rows = np.flatnonzero(decision.feasible)
    alike = np.maximum(numbers.alike[rows], numbers.alike[chosen])
    cheaper = numbers.cost[rows] * (1 + alike) < numbers.cost[chosen]
    slowest = numbers.latency[rows] + np.maximum(numbers.band[rows], numbers.band[chosen])
    faster = slowest + ROUNDING < numbers.latency[chosen]
    said = ~np.isnan(numbers.latency[rows]) | np.isnan(numbers.latency[chosen])
    rows = rows[(cheaper | faster) & said]
    if not len(rows):
        return rows
    paid = [axis[rows] for axis in (numbers.cost, numbers.latency) if not np.isnan(axis[rows]).all()]
    kept: Rows = rows[undominated([-numbers.merit[rows], *paid])]
    return kept


def _gaps(numbers: Numbers, rows: Rows, chosen: int) -> tuple[Floats, Floats, Floats]:
    """Return by how much rows are better than the chosen one, with the interval if known [m]."""
    gaps = numbers.merit[rows] - numbers.merit[chosen]
    low, high = np.full((2, len(rows)), np.nan)
    singly = numbers.singly(rows)
    if numbers.paired is not None and numbers.places[chosen] >= 0 and singly.any():
        places, shift = numbers.places[rows[singly]], numbers.shift
        apart, low[singly], high[singly] = numbers.paired.differences(places, int(numbers.places[chosen]))
        moved = shift[places] - shift[numbers.places[chosen]]
        ends = numbers.sign * (np.stack([apart, low[singly], high[singly]]) + moved)
        gaps[singly], low[singly], high[singly] = ends[0], ends[1:].min(axis=0), ends[1:].max(axis=0)
    return gaps, low, high


def _prices(table: pl.DataFrame, decision: Decision, axis: Axis, same: Floats) -> tuple[LimitPrice, ...]:
    """Return the price of each step up the frontier of quality and one axis, for steps of δ or more.

    A difference within the noise (a share of the cost, or the jitter band) isn't a step: the better
    of two such stacks stands for both.
    """
    paid = np.where(decision.feasible, axis.read(table), np.nan)
    merit = decision.quality.merit(decision.quality.read(table))
    line: list[int] = []
    for row in frontier_2d(paid, merit).tolist():
        if line:
            pair = [line[-1], row]
            alike = max(same[pair]) * paid[line[-1]] if axis == COST else max(decision.band[pair])
            if paid[row] - paid[line[-1]] <= alike:
                line.pop()
        line.append(row)
    steps = []
    for before, row in pairwise(line):
        gain, more = float(merit[row] - merit[before]), float(paid[row] - paid[before])
        if gain >= max(decision.delta - ROUNDING, ROUNDING):
            steps.append(LimitPrice(row=row, than=before, gain=gain, more=more, per_step=more / gain * STEP))
    return tuple(steps)
