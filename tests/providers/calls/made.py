"""Stand-ins for time and for a budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.errors import BudgetError
from core.providers.base import Amount
from core.providers.calls import Caller, Limits


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.slept.append(seconds)
        self.now += seconds


def caller(time: Time, *, jitter: float = 0.5, **limits: Any) -> Caller:
    return Caller(
        Limits(**limits),
        name="vendor model",
        key_env="SOME_KEY",
        clock=time.clock,
        sleep=time.sleep,
        rng=lambda: jitter,
        wall=lambda: time.now,
    )


class Ledger:
    """A meter that refuses beyond a number of units, and remembers what happened."""

    def __init__(self, most: float = float("inf")) -> None:
        self.most = most
        self.reserved = 0.0
        self.spent = 0.0
        self.events: list[str] = []

    def reserve(self, amounts: Sequence[Amount]) -> float:
        wanted = sum(each.amount or 0 for each in amounts)
        if self.reserved + self.spent + wanted > self.most:
            raise BudgetError("The budget is spent.")
        self.events.append("reserve")
        self.reserved += wanted
        return wanted

    def settle(self, reservation: Any, amounts: Sequence[Amount]) -> None:
        self.events.append("settle")
        self.reserved -= reservation
        self.spent += sum(each.amount or 0 for each in amounts)

    def release(self, reservation: Any) -> None:
        self.events.append("release")
        self.reserved -= reservation
