"""What an evaluation has spent, call by call, in a file that survives a killed process.

A call is written down with the most that it can cost before it is sent, and with what it did cost afterwards.
A call of a killed process has no outcome: it may have been billed, so the most that it can have cost stays
spent.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core.providers.base import Amount
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


@dataclass(frozen=True, slots=True)
class Spent:
    """One kind of usage that was paid for, added up.

    Attributes:
        stage: What it was for.
        amount: What was used; its amount is None when any part of it is not known.
        usd: Its cost; None when the price or the amount is not known.
        calls: How many calls.
    """

    stage: str
    amount: Amount
    usd: float | None
    calls: int


class Ledger:
    """The calls of one evaluation; safe for threads, for one process at a time.

    Args:
        path: The SQLite file; made on first use.

    Attributes:
        settled: Dollars of calls whose outcome is known, as far as their prices are.
        lost: The most dollars that calls with unknown outcome can have cost.
        open: The most dollars that the calls under way can cost.
        again: Calls of unknown outcome that were sent again; they may have been paid twice.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(_SCHEMA)
        self._db.execute("UPDATE calls SET state = ? WHERE state = ?", (_LOST, _OPEN))
        self.settled = self._sum("SELECT total(usd) FROM amounts")
        self.lost = self._sum("SELECT total(reserved) FROM calls WHERE state = 'lost'")
        self.open = 0.0
        self.again = int(self._sum("SELECT total(calls) FROM again"))

    def begin(self, stage: str, reserved: float) -> int:
        """Write down a call before it is sent.

        Args:
            stage: What it is for.
            reserved: The most dollars that it can cost.

        Returns:
            Its number.
        """
        with self._lock:
            made = self._db.execute(
                "INSERT INTO calls (stage, reserved, state) VALUES (?, ?, ?)", (stage, reserved, _OPEN)
            ).lastrowid
            self.open += reserved
        return int(made or 0)

    def end(self, call: int, reserved: float, used: Sequence[tuple[Amount, float | None]]) -> None:
        """Write down what a call used and what each part cost in dollars (None = not known)."""
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

    def sent_again(self, calls: int) -> None:
        """Write down that so many calls of unknown outcome are sent again."""
        with self._lock:
            self._db.execute("INSERT INTO again VALUES (?)", (calls,))
            self.again += calls

    def spent(self) -> list[Spent]:
        """What was used and paid, by stage, item and unit."""
        with self._lock:
            rows = self._db.execute(
                "SELECT stage, item, unit, CASE WHEN count(amount) = count(*) THEN sum(amount) END,"
                " min(basis), max(basis), CASE WHEN count(usd) = count(*) THEN sum(usd) END,"
                " count(DISTINCT call) FROM calls JOIN amounts USING (call)"
                " GROUP BY stage, item, unit ORDER BY stage, item, unit"
            ).fetchall()
        return [
            Spent(
                stage, Amount(item, unit, amount, Basis.MODELLED if low != high else Basis(low)), usd, calls
            )
            for stage, item, unit, amount, low, high, usd, calls in rows
        ]

    def close(self) -> None:
        """Release the file."""
        self._db.close()

    def _sum(self, query: str) -> float:
        return float(self._db.execute(query).fetchone()[0])
