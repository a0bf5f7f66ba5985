"""Racing: stacks are asked more queries, round by round, until another is shown to beat them.

A stack is dropped when one that is no slower and no dearer, asked the same queries, is so much better that
the upper bound of a paired bootstrap on what the stack has over it is not above the margin (after Maron &
Moore, NIPS 1993, with bounds of a bootstrap). Rounds are beginnings of one order of the queries, so that any
two stacks share the queries of the one that was asked fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.decide.pareto import undominated
from core.metrics.rates import HOLES
from core.stats.significance import Sample, resampled, weights

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
RESAMPLES = 500
ALIKE = 0.02
"""Latencies and costs that differ by less than this share count as equal."""
USUAL_GAP = 0.1
"""By how much stacks differ on a query where nothing is known of it."""
_TINY = 1e-9
_RIVALS = 8
"""The best on a stack's queries among those that could beat it; one of the others hardly does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How a race goes."""

    rounds: tuple[int, ...] = (32, 64, 128)  # queries asked in all after each round; then all of them
    level: float = 0.99  # of the one-sided upper bound
    margin: float = 0.005  # what a stack must possibly be better by to stay
    higher_is_better: bool = True  # the direction of the quality
    harm: float | None = None  # a stack is beaten only by what keeps this, or harms no more; None = no limit


@dataclass(slots=True, eq=False)
class Entry:
    """A stack in the race."""

    row: int  # its place in the space
    quality: Floats  # [n], of the queries so far; NaN = not applicable
    ms: Floats  # [n]; NaN = not measured
    usd: Floats  # [n]; NaN = unknown
    harm: Floats  # [2, n], Harm and its upper bound; without queries where harm has no limit
    out: str = ""  # why it was dropped; empty = it was not
    by: int | None = None  # place of the stack that beats it
    bound: float | None = None  # upper bound of what it has over that one
    at: int = 0  # queries after which it was dropped

    @property
    def n(self) -> int:
        """How many queries it was asked."""
        return len(self.quality)


class Race:
    """The stacks that were begun.

    Args:
        queries: How many there are.
        rules: How it goes.
    """

    def __init__(self, queries: int, rules: Rules) -> None:
        self.queries, self.rules = queries, rules
        self.rounds = (*(each for each in rules.rounds if each < queries), queries)
        self.entries: dict[int, Entry] = {}
        self._compared: dict[int, list[int]] = {}

    def add(self, row: int, quality: Floats, ms: Floats, usd: Floats, *harm: Floats) -> None:
        """Take what a stack made of its next queries."""
        none = np.empty(0)
        entry = self.entries.setdefault(row, Entry(row, none, none, none, np.empty((2, 0))))
        if harm:
            entry.harm = np.concatenate([entry.harm, np.stack(harm)], axis=1)
        entry.quality = np.concatenate([entry.quality, quality])
        entry.ms, entry.usd = np.concatenate([entry.ms, ms]), np.concatenate([entry.usd, usd])

    @property
    def asked(self) -> int:
        """How many queries stacks were asked in all."""
        return sum(entry.n for entry in self.entries.values())

    @property
    def whole(self) -> list[Entry]:
        """Stacks that were asked every query."""
        return [each for each in self.entries.values() if each.n == self.queries]

    @property
    def racing(self) -> list[Entry]:
        """Stacks that are neither dropped nor through."""
        return [each for each in self.entries.values() if not each.out and each.n < self.queries]

    def next_round(self, entry: Entry) -> int:
        """Return how many queries a stack is asked in all after its next round."""
        return next(each for each in self.rounds if each > entry.n)

    def figures(self, entries: Sequence[Entry] | None = None) -> tuple[Floats, Floats, Floats]:
        """Return the quality to expect on all queries, the median time and the mean cost of stacks.

        Stacks that were asked few queries had easier or harder ones than others: they are taken to differ
        from those that were asked all (or most) by as much as they do on the queries of both.
        """
        entries = list(self.entries.values()) if entries is None else entries
        quality = np.array([_mean(each.quality) for each in entries])
        most = max(each.n for each in self.entries.values())
        guides = [each for each in self.entries.values() if each.n == most]
        table = np.stack([each.quality for each in guides])
        known = np.array([_mean(each) for each in table])
        for at, entry in enumerate(entries):
            if entry.n < most:
                quality[at] += np.nanmean(known - _means(table[:, : entry.n]))
        ms = np.array([_median(each.ms) for each in entries])
        return quality, ms, np.array([1000 * _mean(each.usd) for each in entries])

    def harm(self, entries: Sequence[Entry], n: int | None = None) -> Floats | None:
        """Return the mean harm of stacks on their first n queries, or all; None where it has no limit.

        It is the upper bound for all where more than a trifle of what any stack ranks is unjudged.
        """
        if self.rules.harm is None:
            return None
        every = self.entries.values()
        upper = max(_mean(each.harm[1] - each.harm[0]) for each in every) > HOLES + _TINY
        return np.array([_mean(each.harm[int(upper), :n]) for each in entries])

    def front(self, entries: Sequence[Entry]) -> Mask:
        """Return which of some stacks no other of them seems to beat."""
        quality, ms, usd = self.figures(entries)
        merit = quality if self.rules.higher_is_better else -quality
        axes = [axis for axis in (-merit, ms, usd) if not np.isnan(axis).any()]
        return undominated(axes) if len(axes) > 1 else np.asarray(merit >= np.nanmax(merit))

    def drop(self) -> list[Entry]:
        """Drop what is beaten; return what was dropped now."""
        dropped: list[Entry] = []
        for n in sorted({each.n for each in self.racing}):
            field = [each for each in self.entries.values() if each.n > n or (each.n == n and not each.out)]
            rows = [each.row for each in field]
            if self._compared.get(n) != rows:  # else nothing has come that could beat another
                self._compared[n] = rows
                dropped += self._drop_at(n, field)
        return dropped

    def _drop_at(self, n: int, field: Sequence[Entry]) -> list[Entry]:
        """Drop what is beaten on the first n queries, the worst first; of equal ones the first stays."""
        quality = np.stack([each.quality[:n] for each in field]) * (1 if self.rules.higher_is_better else -1)
        merit = np.nan_to_num(_means(quality), nan=-np.inf)
        ms = np.array([_median(each.ms[:n]) for each in field])
        usd = np.array([_mean(each.usd[:n]) for each in field])
        harm = self.harm(field, n)
        there, dropped = np.ones(len(field), dtype=np.bool_), []
        for at in np.lexsort((-np.arange(len(field)), merit)):
            entry = field[at]
            if entry.n > n or n == self.queries:
                continue
            able = np.flatnonzero(there & _no_worse(ms, ms[at]) & _no_worse(usd, usd[at]))
            if harm is not None:
                able = able[harm[able] <= max(harm[at], self.rules.harm or 0.0)]
            able = able[able != at]
            able = able[np.argsort(-merit[able], kind="stable")][:_RIVALS]
            if len(able):
                bounds = self._bounds(quality[at] - quality[able])
                best = int(bounds.argmin())
                if bounds[best] <= self.rules.margin:
                    entry.by, entry.bound, entry.at = field[able[best]].row, float(bounds[best]), n
                    entry.out = "beaten"
                    there[at] = False
                    dropped.append(entry)
        return dropped

    def _bounds(self, gaps: Floats) -> Floats:
        """Return the upper bounds of the means of differences [P, n].

        What was never seen has no share in a bootstrap: stacks alike on 16 queries would be so on all. So one
        query more is drawn from, on which the stack is better by as much as it differs from its rivals where
        it does.
        """
        apart = np.abs(gaps[np.nan_to_num(gaps) != 0])
        unseen = float(apart.mean()) if len(apart) else USUAL_GAP
        seen = np.column_stack([gaps, np.full(len(gaps), unseen)])
        drawn = resampled(Sample.means(seen), weights(seen.shape[1], RESAMPLES))
        quantile = np.nanquantile if np.isnan(drawn).any() else np.quantile  # many times as fast
        return np.nan_to_num(quantile(drawn, self.rules.level, axis=1), nan=np.inf)


def _no_worse(values: Floats, than: float) -> Mask:
    """Return which values are not above one by more than a trifle; unknown ones only where it is unknown."""
    if np.isnan(than):
        return np.ones(len(values), dtype=np.bool_)
    return np.asarray(values <= than * (1 + ALIKE))


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _means(table: Floats) -> Floats:
    return np.array([_mean(each) for each in table])


def _median(values: Floats) -> float:
    return float("nan") if np.isnan(values).any() or not len(values) else float(np.median(values))
