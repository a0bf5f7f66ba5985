"""Keeps the budget, the paid replies and the pace of calls of a cluster, all in one place.

It never waits: a worker that has to wait asks again. Whatever a lost machine held is released here.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.errors import ClqError
from core.jobs import Stopped
from core.pipeline.evaluate.budget import Budget, Receipts, Reservation
from core.prices import PriceBook
from core.providers.base import Amount, Reply
from core.providers.calls import Journal, Pacer

Within = tuple[str, int, int, str]
"""A worker's activity: what it does, how much is done, of how much, and of what."""


class Coordinator:
    """Answers the workers of one evaluation, one question after another."""

    def __init__(
        self, receipts: Path, journals: Mapping[str, Path], book: PriceBook, limit: float | None
    ) -> None:
        self._receipts = Receipts(receipts)
        self._budget = Budget(book, limit, self._receipts)
        self._paths = journals
        self._open: dict[tuple[str, str], Journal] = {}  # by worker, which tells its own calls from lost ones
        self._under_way: dict[str, dict[int, Reservation]] = defaultdict(dict)
        self._asked_by: dict[tuple[str, str], str] = {}  # the worker that gets the reply, by journal and key
        self._pacers: dict[str, Pacer] = {}
        self._calling: dict[str, Counter[str]] = defaultdict(Counter)
        self._at: dict[str, str] = {}  # node of a worker
        self._within: Within | None = None
        self._stopping = False
        self._broken: ClqError | None = None

    def tell(self, method: str, worker: str, *given: Any) -> None:
        """Do something without an answer; the next call with an answer reports any failure."""
        try:
            getattr(self, method)(worker, *given)
        except ClqError as error:
            self._broken = error

    def ask(self, method: str, worker: str, *asked: Any) -> Any:
        """Answer a question, unless an earlier call failed."""
        if self._broken is not None:
            raise self._broken
        return getattr(self, method)(worker, *asked)

    def begin(self, worker: str, node: str) -> None:
        """Note that a worker begins a task."""
        self._at[worker] = node
        self.go_on(worker)

    def go_on(self, _worker: str) -> None:
        """Raise an error if the evaluation is to stop."""
        if self._stopping:
            raise Stopped

    def within(self, _worker: str, doing: str, done: int, whole: int, unit: str) -> None:
        """Record the progress of a task."""
        self._within = (doing, done, whole, unit)

    def attempt(self, worker: str, stage: str, amounts: Sequence[Amount]) -> Reservation | None:
        """Reserve the maximum cost of a call, or return None if it depends on calls under way."""
        self.go_on(worker)
        reservation = self._budget.attempt(amounts, stage)
        if reservation is not None:
            self._under_way[worker][reservation.call] = reservation
        return reservation

    def settle(self, worker: str, held: Reservation, amounts: Sequence[Amount]) -> None:
        """Replace a reservation by the actual usage."""
        if self._under_way[worker].pop(held.call, None) is not None:  # otherwise it was given up as lost
            self._budget.settle(held, amounts)

    def release(self, worker: str, held: Reservation) -> None:
        """Release a reservation."""
        if self._under_way[worker].pop(held.call, None) is not None:
            self._budget.release(held)

    def replies(self, worker: str, journal: str, keys: Sequence[str]) -> dict[str, Reply[Any]] | None:
        """Return the known replies and leave the rest to the worker, or None if another worker gets one."""
        self.go_on(worker)
        if any(self._asked_by.get((journal, key), worker) != worker for key in keys):
            return None
        known = self._journal(worker, journal).get_many(keys)
        self._asked_by.update({(journal, key): worker for key in keys if key not in known})
        return known

    def keep(self, worker: str, journal: str, replies: Mapping[str, Reply[Any]]) -> None:
        """Keep replies."""
        self._journal(worker, journal).put_many(replies)
        for key in replies:
            self._asked_by.pop((journal, key), None)

    def sent(self, worker: str, journal: str, keys: Sequence[str], call: str) -> None:
        """Record that a call is sent."""
        self._journal(worker, journal).begin(keys, call)

    def refused(self, worker: str, journal: str, call: str) -> None:
        """Record that a call cost nothing."""
        self._journal(worker, journal).forget(call)

    def enter(self, worker: str, line: str, limits: Mapping[str, float], most: int) -> float | None:
        """Take a free slot of a line and return for how many seconds it is held, or None if none is free."""
        self.go_on(worker)
        if self._calling[line].total() >= most:
            return None
        self._calling[line][worker] += 1
        return 0.0 if limits else self.book(worker, line, limits, {})

    def leave(self, worker: str, line: str) -> None:
        """Release a slot."""
        self._calling[line][worker] -= 1

    def book(self, _worker: str, line: str, limits: Mapping[str, float], costs: Mapping[str, float]) -> float:
        """Return the number of seconds after which a call may be sent."""
        now = time.monotonic()
        return self._pacers.setdefault(line, Pacer(limits)).book(costs, now) - now

    def hold(self, _worker: str, line: str, limits: Mapping[str, float], seconds: float) -> None:
        """Block all calls of a line for this many seconds."""
        self._pacers.setdefault(line, Pacer(limits)).hold(time.monotonic() + seconds)

    def stop(self) -> None:
        """Let every task end at its next question."""
        self._stopping = True

    def lose_nodes(self, nodes: Sequence[str]) -> None:
        """Release everything held by workers on lost machines."""
        for worker in [name for name, node in self._at.items() if node in nodes]:
            self.lose(worker)

    def lose(self, worker: str) -> None:
        """Release everything held by a worker that is gone."""
        for held in self._under_way.pop(worker, {}).values():
            self._budget.lose(held)
        for places in self._calling.values():
            places.pop(worker, None)
        self.end(worker)
        self._at.pop(worker, None)
        for key in [key for key in self._open if key[0] == worker]:
            self._open.pop(key).close()

    def progress(self) -> tuple[dict[str, Any], Within | None]:
        """Return the spending, as part of a status, and the progress of a task."""
        within, self._within = self._within, None
        return self._receipts.sums(), within

    def close(self) -> None:
        """Release the files."""
        for journal in self._open.values():
            journal.close()
        self._receipts.close()

    def end(self, worker: str) -> None:
        """Note that a worker has ended its task and no longer waits for any reply."""
        for claim in [claim for claim, by in self._asked_by.items() if by == worker]:
            del self._asked_by[claim]

    def _journal(self, worker: str, name: str) -> Journal:
        key = (worker, name)
        if key not in self._open:
            self._open[key] = Journal(self._paths[name], self._receipts.sent_again)
        return self._open[key]
