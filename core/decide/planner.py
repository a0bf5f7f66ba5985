"""Would more evaluation change the decision: queries to judge, repeats to time (an extension of the paper).

The queries to come are unknown, so many plausible worlds are drawn: in each the queries seen so far have
other shares (Bayesian bootstrap; Rubin 1981, Ann. Stat. 9), by cluster if they come in clusters, m more
queries are drawn by these shares, and the rule is applied again to all queries together. Stacks tie as in
`core.decide.ties`: if the end of the paired interval, which has shrunk to √(n / (n + m)) of today's, lies
within the indifference zone. A world's shares themselves are the result of judging without end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from core.arrays import Floats, Mask, Rows
from core.decide.axes import LATENCY, QUALITY, Axis
from core.decide.joint import JointSample, feasible_in, near_objective, qualities
from core.decide.rules import Constraints, Rule
from core.decide.ties import CHEAPER, DIGITS, LEVEL, Numbers
from core.errors import InputError, UnknownNameError
from core.stats.intervals import CLUSTERS, Labels, Sample
from core.stats.significance import student_ends

WORLDS = 1000
KINDS = ("queries", "timings")
_Kind = Literal["queries", "timings"]
_TIE = 1e-12
_LAST = 1e9  # Distance below any merit that marks what is dropped
_PARTS = 20_000  # Whole parts that the shares of a world are rounded to when a percentile needs counts


@dataclass(frozen=True, slots=True, eq=False)
class Stakes:
    """Figures of S stacks that the rule's tie-break needs besides quality, latency and cost."""

    # [S, S], how far a stack's interval end lies beyond its difference from the best (first axis); NaN =
    # only equal ones tie
    reach: Floats
    prompt: tuple[Floats, ...]  # each [S], sizes of the prompt, the most telling first; NaN = unknown
    answered: bool  # whether the cost includes the generator, which reads the prompt
    names: Rows  # [S], rank of the name in alphabetical order
    averages: Mask  # [S], which have no values per query, and so tie where they are shown as equal


def stakes(
    table: pl.DataFrame, per_query: Floats, quality: Axis = QUALITY, clusters: Labels | None = None
) -> Stakes:
    """Read the stakes from a table of stacks.

    Args:
        table: As for `core.decide.rules.decide`; sizes may be null or absent.
        per_query: [S, Q], their quality; NaN = not applicable.
        clusters: [Q], which queries belong together; None if they are independent.
    """
    reach = np.full((table.height, table.height), np.nan)
    for best in range(table.height):
        gaps = per_query[best] - per_query
        enough = Sample.means(gaps, clusters).units >= CLUSTERS
        low, high = student_ends(gaps[enough], 1 - LEVEL, clusters)
        reach[best, enough] = (high - low) / 2
    numbers = Numbers.of(table, quality)
    names, averages = np.argsort(np.argsort(numbers.names)), np.asarray(np.isnan(per_query).all(axis=1))
    return Stakes(reach, numbers.prompt, numbers.answered, names, averages)


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """Effects of more evaluation on the decision; shares of the worlds, 0..1."""

    more: tuple[int, ...]  # [M], queries (or timings per stack) added
    flip: Floats  # [M], how often a different stack is chosen than today
    # [M], how often the choice then still differs from that of evaluation without end; the chance
    # that even more evaluation would turn it
    left: Floats
    final: Floats  # [S], how often evaluation without end would choose each stack
    left_now: float  # the same as `left`, with nothing added
    now: int | None  # row of today's choice; None = nothing is feasible


def outlook(
    sample: JointSample,
    held: Stakes,
    limits: tuple[Constraints, Rule],
    more: Sequence[int],
    *,
    kind: _Kind = "queries",
    worlds: int = WORLDS,
    seed: int,
) -> Outlook:
    """Draw the worlds and decide in each, after each amount of further evaluation.

    Args:
        sample: Results per query of the candidate stacks.
        held: Their tie intervals and order of preference.
        more: Amounts to add, ascending, each at least 1; all use one sequence of draws, so that the shares
            do not jump between them.
        kind: "queries" judges and times further queries; "timings" times the same ones again, so that quality
            and its interval stay unchanged.

    Returns:
        The shares. If nothing is feasible today, a flip is any choice at all.

    Raises:
        UnknownNameError: If the kind does not exist.
        InputError: If the amounts do not rise from at least 1, or there is no world.
    """
    if kind not in KINDS:
        raise UnknownNameError("kind", kind, KINDS)
    amounts = np.asarray(more, dtype=np.int64)
    if worlds < 1 or not len(amounts) or amounts[0] < 1 or (np.diff(amounts) <= 0).any():
        raise InputError(
            f"{worlds} worlds with {list(more)} more {kind} cannot be drawn.",
            do="Give at least one world and amounts that rise from 1 or more.",
        )
    stage = _Stage(_still(sample) if kind == "timings" else sample, held, limits)
    queries = sample.quality.shape[1]
    random = np.random.default_rng(seed)
    each = np.arange(queries) if sample.clusters is None else sample.clusters
    units = int(each.max()) + 1
    shares = random.dirichlet(np.ones(units), size=worlds)
    now = stage.choose(np.ones((1, queries)), 1.0)[0]
    parts, exact = np.rint(shares * _PARTS)[:, each], shares[:, each]
    final = stage.choose(parts, 0.0 if kind == "queries" else 1.0, exact=exact)
    drawn = np.ones((worlds, units))
    choices = np.empty((len(amounts), worlds), dtype=np.intp)
    more_units = np.rint(amounts * (units / queries)).astype(np.int64)  # each brings as many queries as those
    for place, extra in enumerate(np.diff(more_units, prepend=0)):
        drawn += random.multinomial(extra, shares)
        shrunk = float(np.sqrt(queries / (queries + amounts[place]))) if kind == "queries" else 1.0
        choices[place] = stage.choose(drawn[:, each], shrunk)
    counts = np.bincount(final[final >= 0], minlength=len(sample.cost))
    return Outlook(
        more=tuple(int(amount) for amount in amounts),
        flip=np.asarray((choices != now).mean(axis=1)),
        left=np.asarray((choices != final).mean(axis=1)),
        final=counts / worlds,
        left_now=float((final != now).mean()),
        now=None if now < 0 else int(now),
    )


def _still(sample: JointSample) -> JointSample:
    """Return the sample with every quality fixed at its mean."""
    fixed = qualities(sample, np.ones((1, sample.quality.shape[1])))[:, 0]
    return replace(sample, quality=np.full_like(sample.quality, np.nan), fixed_quality=fixed)


@dataclass(frozen=True, slots=True, eq=False)
class _Stage:
    """The rule of `core.decide.rules.decide`, applied to many worlds at once."""

    sample: JointSample
    held: Stakes
    limits: tuple[Constraints, Rule]

    def choose(self, drawn: Floats, width: float, exact: Floats | None = None) -> Rows:
        """Return the chosen row in each world [W]; −1 = nothing is feasible.

        Args:
            drawn: [W, Q], how often each query counts; whole numbers.
            width: Width of the quality intervals, relative to today's.
            exact: [W, Q], the weights for the means if `drawn` are rounded.
        """
        constraints, rule = self.limits
        required = constraints.required(rule)
        values = self.sample.drawn(drawn, required)
        if exact is not None:
            values[QUALITY.key] = qualities(self.sample, exact)
        latency, cost = values[LATENCY.key], self.sample.cost
        feasible = feasible_in(values, constraints, (rule, required), known=self.sample.known())
        band = self.sample.bands(constraints)
        within = near_objective(latency, cost, feasible, band, rule)
        axis = next(axis for axis in required if axis.key == QUALITY.key)
        merit = np.where(within, axis.merit(values[QUALITY.key]), -_LAST)
        tied = within & (merit >= merit.max(axis=0) - _TIE)
        if rule == "quality":
            best, columns = self._preferred(tied, merit, latency, band), np.arange(merit.shape[1])
            late = latency - latency[best, columns]
            neither = np.isnan(latency) & np.isnan(latency[best, columns])
            near = (late <= np.maximum(band[:, None], band[best]) + _TIE) | neither
            behind = merit[best, columns] - merit + width * self.held.reach[best].T
            shown = np.round(merit, DIGITS) == np.round(merit[best, columns], DIGITS)
            averages = self.held.averages[:, None] | self.held.averages[best]
            tied |= within & near & np.where(averages, shown, behind <= constraints.delta + _TIE)
            best = self._preferred(tied, merit, latency, band)
        else:
            best = self._first(_fastest(tied, latency, band) if rule == "cost" else self._cheapest(tied))
        return np.where(feasible.any(axis=0), best, -1)

    def _preferred(self, left: Mask, merit: Floats, latency: Floats, band: Floats) -> Rows:
        """Return the preferred of the remaining stacks in each world [W]; see `core.decide.ties`."""
        first, second = self._cheapest, self._smallest
        if self.held.answered:
            first, second = second, first
        left = _fastest(second(first(left)), latency, band)
        reached = np.where(left, merit, -_LAST)
        return self._first(left & (reached >= reached.max(axis=0) - _TIE))

    def _first(self, left: Mask) -> Rows:
        """Return the remaining stack with the first name in each world [W]."""
        first: Rows = np.where(left, self.held.names[:, None], len(left)).argmin(axis=0)
        return first

    def _cheapest(self, left: Mask) -> Mask:
        """Keep stacks that cost at most 1 % more than the cheapest [S, W]."""
        cost = np.where(left, self.sample.cost[:, None], np.nan)
        least = np.fmin.reduce(cost, axis=0)
        return np.asarray(left & ((cost <= least * (1 + CHEAPER)) | np.isnan(least)))

    def _smallest(self, left: Mask) -> Mask:
        """Keep the smallest prompts by the most telling size known for all remaining stacks [S, W]."""
        kept = left
        for size in reversed(self.held.prompt):
            sizes = np.where(left, size[:, None], -np.inf)
            known = ~np.isnan(sizes).any(axis=0)
            sizes = np.where(left, size[:, None], np.inf)
            kept = np.where(known, left & (sizes <= sizes.min(axis=0)), kept)
        return np.asarray(kept)


def _fastest(left: Mask, latency: Floats, band: Floats) -> Mask:
    """Keep stacks as fast as the fastest within the band of either [S, W]."""
    paid = np.where(left & ~np.isnan(latency), latency, np.inf)
    first = paid.argmin(axis=0)
    least = paid[first, np.arange(paid.shape[1])]
    slowest = least + np.maximum(band[:, None], band[first]) + _TIE
    return np.asarray(left & ((paid <= slowest) | np.isinf(least)))


@dataclass(frozen=True, slots=True)
class StudyBill:
    """Costs of evaluating one more query."""

    judging: float  # judgements × their price; $
    running: float | None  # one call of every stack under evaluation; $, None = none of their costs is known
    unpriced: int  # number of these stacks without a known cost; they are not in `running`

    @property
    def per_query(self) -> float:
        """$ per query, as far as known."""
        return self.judging + (self.running or 0.0)

    def affordable(self, usd: float) -> int | None:
        """Return how many queries an amount of money pays for, or None if a query costs nothing."""
        return int(usd / self.per_query + 1e-9) if self.per_query > 0 else None


def bill(costs: Floats, *, judgements: float, usd_per_judgement: float) -> StudyBill:
    """Price one more query.

    Args:
        costs: [S], $ per 1,000 queries of the stacks to evaluate; NaN = unknown.

    Raises:
        InputError: If an amount is negative.
    """
    if judgements < 0 or usd_per_judgement < 0:
        raise InputError("A judgement has a negative price or number.", do="Give numbers from 0.")
    known = costs[~np.isnan(costs)]
    running = float(known.sum()) / 1000 if len(known) else None
    return StudyBill(judgements * usd_per_judgement, running, int(np.isnan(costs).sum()))
