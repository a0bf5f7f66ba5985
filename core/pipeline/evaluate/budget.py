"""The budget of an evaluation, and its receipts of what was spent, call by call.

No call is sent if its maximum cost would exceed the budget. The maximum follows the vendor's own rules; once
a service bills more, its last bill is reserved for each further call, so the budget can be exceeded only by
the calls under way at that moment.

A call is recorded with its maximum cost before it is sent, and with its actual cost afterwards, in a file
that survives a killed process. A call of a killed process has no outcome: it may have been billed, so its
maximum cost counts as spent.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import BudgetError
from core.prices import CURRENCY, PriceBook
from core.prices.cost import DOLLARS
from core.providers.base import Amount, scaled
from core.records import Basis

_SCHEMA = """
CREATE TABLE IF NOT EXISTS calls (
    call INTEGER PRIMARY KEY, stage TEXT NOT NULL, reserved REAL NOT NULL, state TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS amounts (
    call INTEGER NOT NULL, item TEXT NOT NULL, unit TEXT NOT NULL, amount REAL, basis TEXT NOT NULL,
    usd REAL);
CREATE TABLE IF NOT EXISTS again (calls INTEGER NOT NULL);
"""
_OPEN, _SETTLED, _LOST = "open", "settled", "lost"
FREE = ("cpu_ms",)
"""Units that nobody bills during an evaluation; they are priced when stacks are compared."""
_WAIT_S = 1.0
_CENT = 1e-9


@dataclass(frozen=True, slots=True)
class Spent:
    """The total of one kind of paid usage."""

    stage: str  # its purpose
    amount: Amount  # the usage; its amount is None if any part of it is unknown
    usd: float | None  # its cost; None if the price or the amount is unknown
    calls: int  # number of calls


class Receipts:
    """The calls of one evaluation; safe for threads, for one process at a time."""

    def __init__(self, path: Path) -> None:
        self._lock, self._path = threading.Lock(), path
        self.resume()

    def resume(self) -> None:
        """Open the file; any calls under way in it belong to a dead process."""
        self._db = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(_SCHEMA)
        self._db.execute("UPDATE calls SET state = ? WHERE state = ?", (_LOST, _OPEN))
        self.open = 0.0
        self.settled = self._sum("SELECT total(usd) FROM amounts")
        self.lost = self._sum("SELECT total(reserved) FROM calls WHERE state = 'lost'")
        self.again = int(self._sum("SELECT total(calls) FROM again"))

    def show(self, *, usd: float, usd_lost: float, calls_again: int) -> None:
        """Show the receipts that another process reports, which writes the file until this one resumes."""
        self.settled, self.lost, self.again = usd, usd_lost, calls_again

    def begin(self, stage: str, reserved: float) -> int:
        """Record a call before it is sent."""
        with self._lock:
            call = self._db.execute(
                "INSERT INTO calls (stage, reserved, state) VALUES (?, ?, ?)", (stage, reserved, _OPEN)
            ).lastrowid
            self.open += reserved
        return int(call or 0)

    def end(self, call: int, reserved: float, used: Sequence[tuple[Amount, float | None]]) -> None:
        """Record a call's usage, and the cost of each part in dollars (None = unknown)."""
        rows = [(call, a.item, a.unit, a.amount, str(a.basis), usd) for a, usd in used]
        with self._lock, self._db:
            self._db.execute("BEGIN")
            self._db.executemany("INSERT INTO amounts VALUES (?, ?, ?, ?, ?, ?)", rows)
            self._db.execute("UPDATE calls SET state = ? WHERE call = ?", (_SETTLED, call))
            self.open = max(0.0, self.open - reserved)
            self.settled += sum(usd or 0.0 for _, usd in used)

    def cancel(self, call: int, reserved: float) -> None:
        """Forget a call that costs nothing."""
        with self._lock:
            self._db.execute("DELETE FROM calls WHERE call = ?", (call,))
            self.open = max(0.0, self.open - reserved)

    def lose(self, call: int, reserved: float) -> None:
        """Record that a call's cost will remain unknown."""
        with self._lock:
            self._db.execute("UPDATE calls SET state = ? WHERE call = ?", (_LOST, call))
            self.open = max(0.0, self.open - reserved)
            self.lost += reserved

    def sent_again(self, calls: int) -> None:
        """Record that this many calls of unknown outcome are sent again."""
        with self._lock:
            self._db.execute("INSERT INTO again VALUES (?)", (calls,))
            self.again += calls

    def sums(self) -> dict[str, float | int]:
        """Return the sums that a status shows: dollars settled and lost, and calls sent again."""
        with self._lock:
            return {"usd": self.settled, "usd_lost": self.lost, "calls_again": self.again}

    def spent(self) -> list[Spent]:
        """Sum up usage and payment by stage, item and unit."""
        with self._lock:
            rows = self._db.execute(
                "SELECT stage, item, unit, CASE WHEN count(amount) = count(*) THEN sum(amount) END,"
                " min(basis), max(basis), CASE WHEN count(usd) = count(*) THEN sum(usd) END,"
                " count(DISTINCT call) FROM calls JOIN amounts USING (call)"
                " GROUP BY stage, item, unit ORDER BY stage, item, unit"
            ).fetchall()
        mixed = Basis.MODELLED
        return [
            Spent(stage, Amount(item, unit, amount, Basis(low) if low == high else mixed), usd, calls)
            for stage, item, unit, amount, low, high, usd, calls in rows
        ]

    def close(self) -> None:
        """Release the file."""
        self._db.close()

    def _sum(self, query: str) -> float:
        return float(self._db.execute(query).fetchone()[0])


@dataclass(frozen=True, slots=True)
class Reservation:
    """A call that may be sent."""

    call: int  # its number in the receipts
    usd: float  # its maximum cost, as far as prices are known
    amounts: tuple[Amount, ...]  # its maximum usage
    asked: tuple[Amount, ...] = ()  # the same by the vendor's rules, if it bills beyond them


class Budget:
    """Watches the calls of one evaluation (`core.providers.base.Meter`); safe for threads."""

    def __init__(self, book: PriceBook, limit: float | None, receipts: Receipts) -> None:
        self._book, self._limit, self._receipts = book, limit, receipts
        self._changed = threading.Condition()  # the thread that holds its lock may take it again
        self._beyond: dict[tuple[str, str], float] = {}  # last bill ÷ its maximum, by item and unit
        self.stage = ""

    @property
    def usd(self) -> float:
        """Dollars spent so far, as far as prices are known."""
        return self._receipts.settled

    def begin_stage(self, words: str) -> None:
        """Set the stage that the following calls belong to."""
        self.stage = words

    def price(self, amount: Amount) -> float | None:
        """Return the cost of an amount in dollars, or None if the amount or its price is unknown."""
        if amount.unit in FREE:
            return 0.0
        if amount.unit == DOLLARS:
            return amount.amount
        price = self._book.find(amount.item, amount.unit)
        if price is None or price.currency != CURRENCY or amount.amount is None:
            return None
        return price.each * amount.amount

    def require_prices(self, wanted: Iterable[tuple[str, str]]) -> None:
        """Refuse a budget that could not be enforced."""
        if self._limit is None:
            return
        for item, unit in wanted:
            if self.price(Amount(item, unit, 1.0, Basis.MODELLED)) is None:
                raise self._no_price(item, unit)

    def reserve(self, amounts: Sequence[Amount]) -> Reservation:
        """Reserve the maximum cost of a call, waiting for other calls if it depends on them."""
        with self._changed:
            while (reservation := self.attempt(amounts, self.stage)) is None:
                self._changed.wait(_WAIT_S)
            return reservation

    def attempt(self, amounts: Sequence[Amount], stage: str) -> Reservation | None:
        """Reserve the maximum cost of a call, or return None if it depends on calls under way."""
        with self._changed:
            most = tuple(
                scaled(amount, self._beyond.get((amount.item, amount.unit), 1.0)) for amount in amounts
            )
            usd = self._most(most)
            if self._limit is not None:
                left = self._limit + _CENT - self._receipts.settled - self._receipts.lost
                if usd > left:
                    raise self._used_up(usd, stage)
                if usd > left - self._receipts.open:
                    return None
            return Reservation(self._receipts.begin(stage, usd), usd, most, tuple(amounts))

    def settle(self, reservation: object, amounts: Sequence[Amount]) -> None:
        """Replace a reservation by the actual usage; unknown usage counts as reserved."""
        held = _own(reservation)
        most = {(amount.item, amount.unit): amount for amount in held.amounts}
        known = [
            most.get((amount.item, amount.unit), amount) if amount.amount is None else amount
            for amount in amounts
        ] or list(held.amounts)
        self._learn(held.asked, known)
        used = [(amount, self.price(amount)) for amount in known]
        self._end(held, lambda call, usd: self._receipts.end(call, usd, used))

    def _learn(self, asked: Sequence[Amount], used: Sequence[Amount]) -> None:
        """Note how far a bill exceeded the requested maximum, or that it no longer does."""
        billed = {(amount.item, amount.unit): amount.amount for amount in used}
        with self._changed:
            for most in asked:
                key = (most.item, most.unit)
                amount = billed.get(key)
                if most.amount and amount is not None:
                    self._beyond[key] = max(1.0, amount / most.amount)

    def release(self, reservation: object) -> None:
        """Release a reservation whose call costs nothing."""
        self._end(reservation, self._receipts.cancel)

    def lose(self, reservation: object) -> None:
        """Count a call of unknown outcome as paid."""
        self._end(reservation, self._receipts.lose)

    def _end(self, reservation: object, write: Callable[[int, float], None]) -> None:
        held = _own(reservation)
        with self._changed:
            write(held.call, held.usd)
            self._changed.notify_all()

    def _most(self, amounts: Sequence[Amount]) -> float:
        costs = [(amount, self.price(amount)) for amount in amounts]
        if self._limit is not None:
            for billed, usd in costs:
                if usd is None:
                    raise self._no_price(billed.item, billed.unit)
        return sum(usd or 0.0 for _, usd in costs)

    def _no_price(self, item: str, unit: str) -> BudgetError:
        return BudgetError(
            f"What {item} costs ({unit}) is not known, so that a budget of ${self._limit:g} cannot be kept.",
            where=f"price book {self._book.name}",
            do="Add the price to a file in data/prices, or run without a budget.",
        )

    def _used_up(self, usd: float, stage: str) -> BudgetError:
        lost = self._receipts.lost
        also = f", up to ${lost:.6g} for calls whose answers were lost" if lost else ""
        return BudgetError(
            f"The budget of ${self._limit:g} ends here: ${self._receipts.settled:.6g} spent{also},"
            f" and the next call can cost ${usd:.6g}.",
            where=stage,
            do="Everything so far is kept. To go on, resume with a larger budget.",
        )


def _own(reservation: object) -> Reservation:
    if not isinstance(reservation, Reservation):
        raise TypeError(f"not a reservation of this budget: {reservation!r}")
    return reservation


def paid(used: Sequence[Amount], price: Callable[[Amount], float | None]) -> dict[str, Any]:
    """Return the tokens and dollars of a call, or None if they are unknown."""
    costs = [price(amount) for amount in used]
    sums = {amount.unit: round(amount.amount) for amount in reversed(used) if amount.amount is not None}
    return {
        "input_tokens": sums.get("input_tokens"),
        "output_tokens": sums.get("output_tokens"),
        "usd": None if not costs or None in costs else sum(cost or 0.0 for cost in costs),
    }
