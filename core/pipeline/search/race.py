"""A search: stacks are proposed and asked more queries, round by round, until another is shown to beat them.

A stack is dropped when one that is no slower and no dearer, asked the same queries, is so much better that
the upper bound of a paired bootstrap on the stack's lead over it does not exceed the margin (after Maron &
Moore, NIPS 1993, with bounds of a bootstrap). Each round takes a prefix of one order of the queries, so that
any two stacks share the queries of the one that was asked fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from core.arrays import Floats, Mask
from core.decide.pareto import undominated
from core.metrics.rates import HOLES
from core.pipeline.search.propose import Space, StackTrial, tell
from core.pipeline.sweep.fields import Search
from core.stats.intervals import Sample, resampled, weights

FIRST_SHARE = 0.25
"""Share of the stacks to start that are spread over the space before anything is known about it."""
BATCH = 16
_BEGIN_SHARE = 0.6
"""Share of the queries to ask after which no further stack is started."""
RESAMPLES = 500
ALIKE = 0.02
"""Latencies and costs that differ by less than this share count as equal."""
USUAL_GAP = 0.1
"""Assumed difference of stacks on a query if nothing is known."""
_TINY = 1e-9
_RIVALS = 8
"""Number of possible rivals compared, the best on a stack's queries; the others hardly ever beat it."""
Propose = Callable[[Sequence[StackTrial], int, Sequence[bool]], Sequence[int]]
"""Proposes this many unknown stacks, given the direction of each objective."""


@dataclass(slots=True, eq=False)
class Entry:
    """A stack in the race."""

    row: int  # its place in the space
    quality: Floats  # [n], of the queries so far; NaN = not applicable
    ms: Floats  # [n]; NaN = not measured
    usd: Floats  # [n]; NaN = unknown
    harm: Floats  # [2, n], Harm and its upper bound; without queries where harm has no limit
    by: int | None = None  # place of the stack that beats it, so that it was dropped
    bound: float | None = None  # upper bound of its lead over that one

    @property
    def n(self) -> int:
        """Number of queries it was asked."""
        return len(self.quality)

    @property
    def dropped(self) -> bool:
        """Whether it was dropped."""
        return self.by is not None


class Race:
    """The started stacks of a search over this many queries, and their standing."""

    def __init__(self, queries: int, how: Search, *, higher_is_better: bool = True) -> None:
        self.queries, self.how, self.higher_is_better = queries, how, higher_is_better
        self.rounds = (*(n for n in sorted(how.rounds) if n < queries), queries)
        self.entries: dict[int, Entry] = {}
        self._compared: dict[int, list[int]] = {}

    def add(self, row: int, quality: Floats, ms: Floats, usd: Floats, *harm: Floats) -> None:
        """Add a stack's results on its next queries."""
        none = np.empty(0)
        entry = self.entries.setdefault(row, Entry(row, none, none, none, np.empty((2, 0))))
        if harm:
            entry.harm = np.concatenate([entry.harm, np.stack(harm)], axis=1)
        entry.quality = np.concatenate([entry.quality, quality])
        entry.ms, entry.usd = np.concatenate([entry.ms, ms]), np.concatenate([entry.usd, usd])

    @property
    def asked(self) -> int:
        """Number of queries asked, over all stacks."""
        return sum(entry.n for entry in self.entries.values())

    @property
    def whole(self) -> list[Entry]:
        """Stacks that were asked every query."""
        return [entry for entry in self.entries.values() if entry.n == self.queries]

    @property
    def racing(self) -> list[Entry]:
        """Stacks that are neither dropped nor finished."""
        return [entry for entry in self.entries.values() if not entry.dropped and entry.n < self.queries]

    def figures(self, entries: Sequence[Entry] | None = None) -> tuple[Floats, Floats, Floats]:
        """Return the quality to expect on all queries, the median time and the mean cost of stacks.

        Stacks asked few queries had easier or harder ones than others, so each is assumed to differ from
        those asked all (or most) by the difference on their common queries.
        """
        entries = list(self.entries.values()) if entries is None else entries
        quality = np.array([_mean(entry.quality) for entry in entries])
        most = max(entry.n for entry in self.entries.values())
        guides = [entry for entry in self.entries.values() if entry.n == most]
        table = np.stack([guide.quality for guide in guides])
        known = np.array([_mean(row) for row in table])
        for at, entry in enumerate(entries):
            if entry.n < most:
                quality[at] += _mean(known - _means(table[:, : entry.n]))
        ms = np.array([_median(entry.ms) for entry in entries])
        return quality, ms, np.array([1000 * _mean(entry.usd) for entry in entries])

    def harm(self, entries: Sequence[Entry], n: int | None = None) -> Floats | None:
        """Return the mean harm of stacks on their first n queries, or all, or None if it has no limit.

        It is the upper bound for all if more than a trifle of any stack's ranking is unjudged.
        """
        if self.how.limits.max_harm is None:
            return None
        every = self.entries.values()
        upper = max(_mean(entry.harm[1] - entry.harm[0]) for entry in every) > HOLES + _TINY
        return np.array([_mean(entry.harm[int(upper), :n]) for entry in entries])

    @property
    def leaders(self) -> list[Entry]:
        """Stacks with queries left to ask that no other seems to beat."""
        entries = [entry for entry in self.entries.values() if not entry.dropped]
        quality, ms, usd = self.figures(entries)
        merit = quality if self.higher_is_better else -quality
        axes = [axis for axis in (-merit, ms, usd) if not np.isnan(axis).any()]
        merit = np.nan_to_num(merit, nan=-np.inf)
        best = undominated(axes) if len(axes) > 1 else merit >= merit.max()
        return [entry for entry, leads in zip(entries, best, strict=True) if leads and entry.n < self.queries]

    def drop(self) -> list[Entry]:
        """Drop the beaten entries, and return them."""
        dropped: list[Entry] = []
        for n in sorted({entry.n for entry in self.racing}):
            field = [
                entry
                for entry in self.entries.values()
                if entry.n > n or (entry.n == n and not entry.dropped)
            ]
            rows = [entry.row for entry in field]
            if self._compared.get(n) != rows:  # otherwise no new result could beat a stack
                self._compared[n] = rows
                dropped += self._drop_at(n, field)
        return dropped

    def _drop_at(self, n: int, field: Sequence[Entry]) -> list[Entry]:
        """Drop the entries beaten on the first n queries, the worst first; of equal ones the first stays."""
        quality = np.stack([rival.quality[:n] for rival in field]) * (1 if self.higher_is_better else -1)
        merit = np.nan_to_num(_means(quality), nan=-np.inf)
        ms = np.array([_median(rival.ms[:n]) for rival in field])
        usd = np.array([_mean(rival.usd[:n]) for rival in field])
        harm = self.harm(field, n)
        there, dropped = np.ones(len(field), dtype=np.bool_), []
        for at in np.lexsort((-np.arange(len(field)), merit)):
            entry = field[at]
            if entry.n > n or n == self.queries:
                continue
            able = np.flatnonzero(there & _no_worse(ms, ms[at]) & _no_worse(usd, usd[at]))
            if harm is not None:
                able = able[harm[able] <= max(harm[at], self.how.limits.max_harm or 0.0)]
            able = able[able != at]
            able = able[np.argsort(-merit[able], kind="stable")][:_RIVALS]
            if len(able):
                bounds = self._bounds(quality[at] - quality[able])
                best = int(bounds.argmin())
                if bounds[best] <= self.how.margin:
                    entry.by, entry.bound = field[able[best]].row, float(bounds[best])
                    there[at] = False
                    dropped.append(entry)
        return dropped

    def _bounds(self, gaps: Floats) -> Floats:
        """Return the upper bounds of the means of differences [P, n].

        A bootstrap never draws what was not seen: stacks alike on 16 queries would be alike on all. So one
        query is added, on which the stack leads by as much as it differs from rivals where it does.
        """
        apart = np.abs(gaps[np.nan_to_num(gaps) != 0])
        unseen = float(apart.mean()) if len(apart) else USUAL_GAP
        seen = np.column_stack([gaps, np.full(len(gaps), unseen)])
        drawn = resampled(Sample.means(seen), weights(seen.shape[1], RESAMPLES))
        quantile = np.nanquantile if np.isnan(drawn).any() else np.quantile  # many times as fast
        return np.nan_to_num(quantile(drawn, self.how.level, axis=1), nan=np.inf)


def _no_worse(values: Floats, than: float) -> Mask:
    """Return which values exceed one by no more than a trifle; unknown ones only if it is unknown."""
    if np.isnan(than):
        return np.ones(len(values), dtype=np.bool_)
    return np.asarray(values <= than * (1 + ALIKE))


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _means(table: Floats) -> Floats:
    return np.array([_mean(row) for row in table])


def _median(values: Floats) -> float:
    return float("nan") if np.isnan(values).any() or not len(values) else float(np.median(values))


class RaceAsk(Protocol):
    """Asks stacks some queries of the order."""

    def __call__(self, rows: Sequence[int], first: int, last: int) -> Sequence[tuple[Floats, ...]]:
        """Return each stack's quality, milliseconds, dollars and harm on the queries from first to last."""


def search(
    space: Space,
    race: Race,
    ask: RaceAsk,
    propose: Propose,
    *,
    start: Sequence[int] = (),
    more: Callable[[], bool] = lambda: True,
    on_round: Callable[[Sequence[Entry]], None] = lambda _: None,
) -> None:
    """Search a space, given stacks first; equal answers and seeds give the same search."""
    how = race.how
    most = min(how.trials, len(space))
    limit = np.inf if how.evaluations is None else how.evaluations

    def advance(rows: Sequence[int]) -> None:
        """Run the queries of the next round on stacks at the same round."""
        entry = race.entries.get(rows[0])
        first = entry.n if entry else 0
        last = next(end for end in race.rounds if end > first)
        for row, answers in zip(rows, ask(rows, first, last), strict=True):
            race.add(row, *answers)
        on_round(race.drop())

    spread = space.spread(max(1, round(FIRST_SHARE * most)), np.random.default_rng(how.seed))
    begin = list(dict.fromkeys([*start, *spread]))[:most]
    while begin:
        advance(begin)
        while race.asked < limit and (lead := _fewest(race.leaders)):
            advance(lead[:BATCH])
        left, begin = min(BATCH, most - len(race.entries)), []
        if left and more() and race.asked < _BEGIN_SHARE * limit:
            entries, up = list(race.entries.values()), race.higher_is_better
            harm = race.harm(entries)
            known, maximised = tell(
                [*race.entries], race.figures(), how.limits, harm=harm, higher_is_better=up
            )
            begin = list(propose(known, left, maximised))
    while race.asked < limit and (rest := _fewest(race.racing)):
        advance(rest)


def _fewest(entries: Sequence[Entry]) -> list[int]:
    """Return the places of the stacks that were asked the fewest queries."""
    least = min((entry.n for entry in entries), default=0)
    return [entry.row for entry in entries if entry.n == least]
