"""Pure functions with results worth caching, for frequent rendering; otherwise only the last one is kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
Keeping = Callable[[str | bool, int], Callable[[Callable[..., Any]], Callable[..., Any]]]
_KEEPING: list[Keeping] = []


def cache_by(keeping: Keeping) -> None:
    """Cache results from now on; `keeping(words, entries)` returns a decorator."""
    _KEEPING[:] = [keeping]


class Cached(Generic[P, R]):
    """A pure function of hashable arguments, whose results may be cached."""

    def __init__(self, compute: Callable[P, R], words: str | bool, entries: int) -> None:
        self._compute, self._options = compute, (words, entries)
        self._keeping: Callable[P, R] | None = None
        self._last: tuple[tuple[object, ...], R] | None = None
        update_wrapper(self, compute)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Compute the result, or return the cached one."""
        if self._keeping is None and _KEEPING:
            self._keeping = _KEEPING[0](*self._options)(self._compute)
        if self._keeping is not None:
            return self._keeping(*args, **kwargs)
        given = (*args, *(part for pair in kwargs.items() for part in pair))
        if self._last is None or not _same(self._last[0], given):  # a section asks for the same twice
            self._last = given, self._compute(*args, **kwargs)
        return self._last[1]


def _same(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    """Return whether arguments are the very same objects: comparing frames does not yield a single value."""
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def cached(words: str | bool = False, *, entries: int = 32) -> Callable[[Callable[P, R]], Cached[P, R]]:
    """Declare a function whose results are worth caching.

    Args:
        words: Text shown while it runs; none by default.
        entries: Maximum number of cached results.
    """
    return lambda compute: Cached(compute, words, entries)
