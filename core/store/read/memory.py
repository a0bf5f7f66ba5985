"""A bounded memory for what was computed from files that never change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar

Made = TypeVar("Made")


class Memory:
    """Keeps the most recently used values, up to a number of bytes; thread-safe.

    Args:
        most: Bytes to keep; something larger is made every time.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._held = 0
        self._kept: OrderedDict[Hashable, tuple[object, int, Hashable]] = OrderedDict()
        self._guard = threading.Lock()

    def once(
        self, key: Hashable, make: Callable[[], Made], size: Callable[[Made], int], *, of: Hashable = None
    ) -> Made:
        """Return the value cached under a key, making it if necessary.

        Args:
            key: Says all that the result depends on.
            make: Makes it; two threads that ask at the same time may both make it.
            of: The whole that it is a piece of; pieces of one whole do not take each other's place, or asking
                for more of them in turn than there is room for would find none.
        """
        with self._guard:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]  # type: ignore[return-value]
        value = make()
        taken = size(value)
        with self._guard:
            if key not in self._kept and taken <= self.most:
                self._make_room(taken, of)
                if self._held + taken <= self.most:
                    self._kept[key] = (value, taken, of)
                    self._held += taken
        return value

    def _make_room(self, taken: int, of: Hashable) -> None:
        """Let go of what was used longest ago, pieces of one whole aside."""
        for key, (_, size, whole) in list(self._kept.items()):
            if self._held + taken <= self.most:
                return
            if of is None or whole != of:
                del self._kept[key]
                self._held -= size

    def clear(self) -> None:
        """Forget everything."""
        with self._guard:
            self._kept.clear()
            self._held = 0
