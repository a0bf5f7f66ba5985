"""A search: propose stacks, race them, and tell which were asked every query and why others were not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from core.pipeline.search.propose import NO_LIMITS, Limits, Told, tell
from core.pipeline.search.race import Entry, Race
from core.pipeline.search.space import Space

Floats = NDArray[np.float64]
FIRST_SHARE = 0.25
"""Of the stacks that may be begun, those that spread over the space before anything is known of it."""
BATCH = 16
_BEGIN_SHARE = 0.6
"""Of the queries that may be asked, those after which no further stack is begun."""


class Ask(Protocol):
    """Asks stacks some queries of the order."""

    def __call__(self, rows: Sequence[int], first: int, last: int) -> Sequence[tuple[Floats, ...]]:
        """Return of each stack quality, milliseconds, dollars and harm of the queries from first to last."""


Propose = Callable[[Sequence[Told], int, Sequence[bool]], Sequence[int]]
"""Names so many stacks of which nothing is known, given the direction of each objective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a search goes."""

    trials: int  # stacks that are begun at most
    evaluations: int | None = None  # queries that stacks are asked in all at most; None = no limit
    seed: int = 0  # of the stacks that spread over the space at first
    propose: Propose
    limits: Limits = NO_LIMITS


def search(
    space: Space,
    race: Race,
    ask: Ask,
    plan: Plan,
    *,
    start: Sequence[int] = (),
    more: Callable[[], bool] = lambda: True,
    told: Callable[[Sequence[Entry]], None] = lambda _: None,
) -> Race:
    """Search a space; the same way for the same answers and seed.

    Args:
        space: All stacks.
        race: Where answers are kept; it may hold some already.
        ask: Asks stacks.
        plan: How it goes.
        start: Stacks to begin with.
        more: Whether time and money are left to begin further stacks.
        told: Told of entries that changed.
    """
    rng = np.random.default_rng(plan.seed)
    most = min(plan.trials, len(space))
    first = max(1, round(FIRST_SHARE * most))
    begin = list(dict.fromkeys([*start, *space.spread(first, rng)]))[:most]
    while begin:
        _advance(race, ask, begin, race.rounds[0])
        told(race.drop())
        while lead := _leaders(race, plan):
            _advance(race, ask, lead, race.next_round(race.entries[lead[0]]))
            told(race.drop())
        left = most - len(race.entries)
        begin = _next(race, plan, min(BATCH, left)) if left and more() and _room(race, plan) else []
    while (rest := _rest(race)) and _may(race, plan):
        _advance(race, ask, rest, race.next_round(race.entries[rest[0]]))
        told(race.drop())
    return race


def _advance(race: Race, ask: Ask, rows: Sequence[int], to: int) -> None:
    """Ask stacks that stand at the same round their queries up to another."""
    rows = [row for row in rows if row not in race.entries or race.entries[row].n < to]
    if rows:
        entry = race.entries.get(rows[0])
        first = entry.n if entry else 0
        for row, answers in zip(rows, ask(rows, first, to), strict=True):
            race.add(row, *answers)


def _leaders(race: Race, plan: Plan) -> list[int]:
    """Return the stacks that seem the best so far and go on: those that were asked the fewest queries."""
    if not _may(race, plan):
        return []
    there = [each for each in race.entries.values() if not each.out]
    on = race.front(there)
    lead = [each for each, is_on in zip(there, on, strict=True) if is_on and each.n < race.queries]
    least = min((each.n for each in lead), default=0)
    return [each.row for each in lead if each.n == least][:BATCH]


def _rest(race: Race) -> list[int]:
    """Return the stacks that go on at the end: those that were asked the fewest queries."""
    least = min((each.n for each in race.racing), default=0)
    return [each.row for each in race.racing if each.n == least]


def _room(race: Race, plan: Plan) -> bool:
    """Whether queries are left to begin stacks with; a part is kept to end what was begun."""
    return plan.evaluations is None or race.asked < _BEGIN_SHARE * plan.evaluations


def _may(race: Race, plan: Plan) -> bool:
    return plan.evaluations is None or race.asked < plan.evaluations


def _next(race: Race, plan: Plan, count: int) -> list[int]:
    """Return stacks to begin, proposed from all that is known."""
    entries = list(race.entries.values())
    rows, up = [entry.row for entry in entries], race.rules.higher_is_better
    harm = race.harm(entries)
    known, maximised = tell(rows, race.figures(entries), plan.limits, harm=harm, higher_is_better=up)
    return list(plan.propose(known, count, maximised))
