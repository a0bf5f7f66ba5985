"""Would more evaluation change the decision: queries to judge, repeats to time (an extension of the paper).

Nobody knows the queries to come, so many plausible worlds are drawn: in each the queries seen so far have
other shares (Bayesian bootstrap; Rubin 1981, Ann. Stat. 9), m more queries are drawn by these shares, and the
rule is applied again to all queries together: stacks tie as in `core.decide.ties`, by the paired difference,
whose interval has shrunk to √(n / (n + m)) of today's. A world's shares themselves are what judging without
end would show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.decide.axes import LATENCY, QUALITY, Axis, floats
from core.decide.joint import JointSample, feasible_in, near_objective, qualities
from core.decide.rules import Constraints, Rule, objective
from core.decide.ties import Numbers, preferred
from core.errors import InputError, UnknownNameError
from core.stats.intervals import SEED, Floats, Sample, interval, paired_rows, resampled, weights

WORLDS = 1000
KINDS = ("queries", "timings")
Kind = Literal["queries", "timings"]
Rows = NDArray[np.intp]
_TIE = 1e-12
_LAST = np.finfo(np.float64).max  # What an unknown value counts as where the least one is looked for
_PAIRS = 256
_PARTS = 20_000  # Whole parts that the shares of a world are rounded to where a percentile needs counts


@dataclass(frozen=True, slots=True, eq=False)
class Stakes:
    """Figures of S stacks that the rule's tie-break needs besides quality, latency and cost."""

    below: (
        Floats  # [S, S], how far below the best (first axis) another may lie and tie; NaN = equal ones only
    )
    above: Floats  # [S, S], how far above
    shift: Floats  # [S, S], what the difference on the queries of both has over that of their means
    order: Rows  # [S], place in the order of preference among ties, the preferred first


def stakes(table: pl.DataFrame, per_query: Floats, quality: Axis = QUALITY, *, seed: int = SEED) -> Stakes:
    """Read them from a table of stacks.

    Args:
        table: As for `core.decide.rules.decide`; unknown bounds and sizes may be null or absent.
        per_query: [S, Q], their quality; NaN = not applicable. Of two stacks with queries in common the
            interval of the paired difference tells whether they tie, of others that of the better average.
    """
    numbers = quality.read(table)
    order = np.empty(table.height, dtype=np.intp)
    everything = Numbers.of(table, (quality,), None, None)
    order[preferred(everything, np.arange(table.height))] = np.arange(table.height)
    below, above = (
        np.repeat(reach[:, None], table.height, axis=1)
        for reach in (numbers - floats(table, "quality_low"), floats(table, "quality_high") - numbers)
    )
    shift = np.zeros((table.height, table.height))
    means = Sample.means(per_query).estimate()
    best, other = np.triu_indices(table.height, 1)
    one, two = paired_rows(Sample.means(per_query), other, best)
    drawn = weights(per_query.shape[1], seed=seed)
    for start in range(0, len(best), _PAIRS):
        part = slice(start, start + _PAIRS)
        gap = Sample(one.top[part] - two.top[part], one.bottom[part], one.applies[part])
        low, high = interval(gap.estimate(), resampled(gap, drawn))
        known = ~np.isnan(low)
        pairs = best[part][known], other[part][known]
        up, down = (gap.estimate() - low)[known], (high - gap.estimate())[known]
        above[pairs], below[pairs] = up, down
        above[pairs[::-1]], below[pairs[::-1]] = down, up
        shift[pairs] = gap.estimate()[known] - (means[pairs[1]] - means[pairs[0]])
        shift[pairs[::-1]] = -shift[pairs]
    return Stakes(below, above, shift, order)


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """Effects of more evaluation on the decision; shares of the worlds, 0..1."""

    more: tuple[int, ...]  # [M], queries (or timings per stack) added
    flip: Floats  # [M], how often another stack is chosen than today
    # [M], how often the choice is then still not the one that evaluation without end would make; the chance
    # that yet more evaluation would turn it
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
    kind: Kind = "queries",
    worlds: int = WORLDS,
    seed: int,
) -> Outlook:
    """Draw the worlds and decide in each, after each amount of further evaluation.

    Args:
        sample: Results per query of the stacks that may be chosen.
        held: Their intervals and order of preference.
        more: Amounts to add, in rising order, each at least 1; all in one line of drawing, so that the shares
            do not jump between them.
        kind: "queries" judges and times further queries; "timings" times the same ones again, so that quality
            and its interval stay.

    Returns:
        The shares. With nothing feasible today a flip is any choice at all.

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
    shares = random.dirichlet(np.ones(queries), size=worlds)
    now = stage.choose(np.ones((1, queries)), 1.0)[0]
    final = stage.choose(np.rint(shares * _PARTS), 0.0 if kind == "queries" else 1.0, exact=shares)
    drawn = np.ones((worlds, queries))
    choices = np.empty((len(amounts), worlds), dtype=np.intp)
    for place, extra in enumerate(np.diff(amounts, prepend=0)):
        drawn += random.multinomial(extra, shares)
        shrunk = float(np.sqrt(queries / (queries + amounts[place]))) if kind == "queries" else 1.0
        choices[place] = stage.choose(drawn, shrunk)
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
    """Return the sample with every quality kept at its mean."""
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
            width: How wide the intervals of quality are, beside today's.
            exact: [W, Q], the weights for the means where `drawn` are rounded ones.
        """
        constraints, rule = self.limits
        required = self.sample.required(constraints)
        rule = objective(rule, required)
        values = self.sample.drawn(drawn, required)
        if exact is not None:
            values[QUALITY.key] = qualities(self.sample, exact)
        quality, latency, cost = values[QUALITY.key], values[LATENCY.key], self.sample.cost
        feasible = feasible_in(values, constraints, (rule, required), known=self.sample.known())
        band = self.sample.bands(constraints)
        within = near_objective(latency, cost, feasible, band, rule)
        merit = next(axis for axis in required if axis.key == QUALITY.key).merit(quality)
        best = _reference(np.where(within, merit, -np.inf), latency, cost)
        columns = np.arange(quality.shape[1])
        top = quality[best, columns]
        apart = quality - top + self.held.shift[best].T
        low, high = -width * self.held.below[best].T, width * self.held.above[best].T
        gap = np.abs(latency - latency[best, columns])
        alike = (np.abs(apart) <= _TIE) | ((apart >= low - _TIE) & (apart <= high + _TIE))
        near = (gap < np.maximum(band[:, None], band[best])) | (gap == 0) | (LATENCY not in required)
        tied = within & alike & near
        tied[best, columns] = True
        chosen = np.where(tied, self.held.order[:, None], len(cost)).argmin(axis=0)
        return np.where(feasible.any(axis=0), chosen, -1)


def _reference(merit: Floats, latency: Floats, cost: Floats) -> Rows:
    """Return the best row of each world, of equal ones the fastest, then the cheapest [W]."""
    top = merit >= merit.max(axis=0) - _TIE
    waited = np.where(top, np.nan_to_num(latency, nan=_LAST), np.inf)
    top &= waited == waited.min(axis=0)
    cheapest: Rows = np.where(top, np.nan_to_num(cost, nan=_LAST)[:, None], np.inf).argmin(axis=0)
    return cheapest


@dataclass(frozen=True, slots=True)
class Bill:
    """Costs of evaluating one more query."""

    judging: float  # judgements × their price; $
    running: float | None  # one call of every stack that is evaluated; $, None = no cost of theirs is known
    unpriced: int  # how many of these stacks have no known cost; they are not in `running`

    @property
    def per_query(self) -> float:
        """$ per query, as far as it is known."""
        return self.judging + (self.running or 0.0)

    def affordable(self, usd: float) -> int | None:
        """Return how many queries an amount of money pays for; None where a query costs nothing."""
        return int(usd / self.per_query + 1e-9) if self.per_query > 0 else None


def bill(costs: Floats, *, judgements: float, usd_per_judgement: float) -> Bill:
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
    return Bill(judgements * usd_per_judgement, running, int(np.isnan(costs).sum()))
