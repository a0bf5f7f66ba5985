"""What a worker has instead of a budget, journals and pacers of its own: those of the desk."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from core.providers.base import Amount, Reply
from core.providers.calls import Journal, Limits
from core.providers.calls.caller import per_minute

_ASK_AGAIN_S = 0.02
_LOOK_S = 0.25


class Link:
    """One worker's way to the desk.

    Args:
        ask: Given a method of `Desk` and its arguments, brings the answer.
        tell: As `ask`, but nobody waits for it; what is told arrives before what is asked later.
    """

    def __init__(self, ask: Callable[..., Any], tell: Callable[..., None]) -> None:
        self.ask, self.tell = ask, tell
        self._looked = time.monotonic()

    def until(self, method: str, *asked: Any) -> Any:
        """Ask until the answer is one."""
        while (answer := self.ask(method, *asked)) is None:
            time.sleep(_ASK_AGAIN_S)
        return answer

    def check(self) -> None:
        """Raise `Stopped` if the evaluation is to stop; looks a few times a second."""
        if time.monotonic() - self._looked >= _LOOK_S:
            self._looked = time.monotonic()
            self.ask("go_on")


class FarBudget:
    """Watches the calls of a worker (`core.providers.base.Meter`)."""

    def __init__(self, link: Link) -> None:
        self._link, self._stage = link, ""

    def begin_stage(self, words: str) -> None:
        """Say what the calls from here on are for."""
        self._stage = words

    def reserve(self, amounts: Sequence[Amount]) -> object:
        """Set aside the most that a call can cost."""
        return self._link.until("attempt", self._stage, list(amounts))

    def settle(self, reservation: object, amounts: Sequence[Amount]) -> None:
        """Replace a reservation by what was used."""
        self._link.tell("settle", reservation, list(amounts))

    def release(self, reservation: object) -> None:
        """Give a reservation back: the call costs nothing."""
        self._link.tell("release", reservation)


class FarJournal(Journal):
    """A journal that the desk keeps.

    What one worker asks a vendor for, others wait for: a call that is under way is not made twice.
    """

    def __init__(self, link: Link, name: str) -> None:
        self.path, self._link, self._which = Path(name), link, name

    def get_many(self, keys: Sequence[str]) -> dict[str, Reply[Any]]:
        """The replies of those keys that are there."""
        known: dict[str, Reply[Any]] = self._link.until("replies", self._which, list(keys))
        return known

    def put_many(self, replies: Mapping[str, Reply[Any]]) -> None:
        """Keep replies; they are on their way when this returns."""
        self._link.tell("keep", self._which, dict(replies))

    def begin(self, keys: Sequence[str], call: str) -> None:
        """Write down that a call of this name is sent."""
        self._link.tell("sent", self._which, list(keys), call)

    def forget(self, call: str) -> None:
        """Write down that a call of this name cost nothing."""
        self._link.tell("refused", self._which, call)

    def close(self) -> None:
        """Do nothing: the desk closes its files."""


class FarTurns:
    """The places and the pace of one line, which the whole cluster shares."""

    def __init__(self, link: Link, line: str, limits: Limits) -> None:
        self._link, self._line, self._most = link, line, limits.concurrency
        self._limits, self._held = per_minute(limits), 0.0

    def __enter__(self) -> None:
        held_s = self._link.until("enter", self._line, self._limits, self._most)
        self._held = max(self._held, time.monotonic() + held_s)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._link.tell("leave", self._line)

    def book(self, costs: Mapping[str, float], now: float) -> float:
        """Book the next place for a call."""
        if not self._limits:
            return max(now, self._held)
        return now + float(self._link.ask("book", self._line, self._limits, dict(costs)))

    def hold(self, until: float) -> None:
        """Let nothing through before this moment."""
        self._link.tell("hold", self._line, self._limits, until - time.monotonic())
