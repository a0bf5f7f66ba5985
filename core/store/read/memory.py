"""A bounded cache for results computed from files that never change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar

Made = TypeVar("Made")


class Memory:
    """A cache of the most recently used values, up to a number of bytes; thread-safe.

    Args:
        most: Bytes to keep; a larger value is never cached.
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
            key: Everything that the result depends on.
            make: Makes the value; two threads that ask at the same time may both call it.
            of: The whole that the value is a piece of. Pieces of one whole do not evict each other; else,
                asking in turn for more of them than fit would find none.
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
        """Evict the values that were used longest ago, except pieces of the same whole."""
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
