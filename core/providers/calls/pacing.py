"""Client-side pacing: never more in any minute than a vendor allows."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Mapping

WINDOW_S = 60.0


class Pacer:
    """Says when a call may be sent, first come, first served; thread-safe.

    What was promised in any window of a minute never adds up to more than the limits. A single call beyond a
    limit is let through alone: the vendor has the last word.

    Args:
        limits: The most of each thing in a minute, such as {"requests": 2000, "tokens": 3_000_000}.
    """

    def __init__(self, limits: Mapping[str, float]) -> None:
        self._limits = dict(limits)
        self._lock = threading.Lock()
        self._sent: deque[tuple[float, Mapping[str, float]]] = deque()
        self._sums: Counter[str] = Counter()
        self._latest = float("-inf")

    def book(self, costs: Mapping[str, float], now: float) -> float:
        """Book the next place for a call.

        Args:
            costs: What the call needs; things without a limit do not matter.
            now: Seconds on any monotonic clock.

        Returns:
            When it may be sent, on that clock, `now` or later.
        """
        with self._lock:
            moment = max(now, self._latest)
            if self._limits:
                while self._sent and (self._sent[0][0] <= moment - WINDOW_S or not self._fits(costs)):
                    moment = max(moment, self._drop() + WINDOW_S)
                self._sent.append((moment, costs))
                self._sums.update(costs)
            self._latest = moment
            return moment

    def hold(self, until: float) -> None:
        """Let nothing through before this moment: the vendor asked for a pause."""
        with self._lock:
            self._latest = max(self._latest, until)

    def _fits(self, costs: Mapping[str, float]) -> bool:
        return all(self._sums[name] + costs.get(name, 0) <= most for name, most in self._limits.items())

    def _drop(self) -> float:
        moment, costs = self._sent.popleft()
        self._sums.subtract(costs)
        return moment
