"""How far an import is, for whoever wants to know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_CURRENT: ContextVar[Progress | None] = ContextVar("progress", default=None)


class Progress:
    """How far an import is; told whenever it got further.

    Args:
        tell: Called with this; often, so that it should take no time.

    Attributes:
        stage: What is being done, in a few words.
        read: Stored bytes that were read.
        total: Stored bytes that were offered; 0 while that is unknown.
        rows: Rows that were read of rankings.
    """

    def __init__(self, tell: Callable[[Progress], None]) -> None:
        self._tell = tell
        self._at: dict[str, int] = {}
        self.stage = "reading"
        self.total = self.rows = 0

    @property
    def read(self) -> int:
        """Stored bytes that were read, of all files; what is read twice counts once."""
        return min(self.total, sum(self._at.values())) if self.total else sum(self._at.values())

    def at(self, name: str, position: int) -> None:
        """A file was read up to a position."""
        if position > self._at.get(name, 0):
            self._at[name] = position
            self._tell(self)

    def more(self, rows: int) -> None:
        """Rows were read."""
        self.rows += rows
        self._tell(self)

    def step(self, stage: str) -> None:
        """Something else is being done now."""
        self.stage = stage
        self._tell(self)


@contextmanager
def watched(progress: Progress | None) -> Iterator[None]:
    """Whatever is read here tells its progress."""
    token = _CURRENT.set(progress)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current() -> Progress | None:
    """Whom to tell, if anybody."""
    return _CURRENT.get()
