"""Pure functions whose results are worth keeping, by whoever draws often; others keep the last result."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
Keeping = Callable[[str | bool, int], Callable[[Callable[..., Any]], Callable[..., Any]]]
_KEEPING: list[Keeping] = []


def cache_by(keeping: Keeping) -> None:
    """Have results kept from now on; `keeping(words, entries)` returns a decorator."""
    _KEEPING[:] = [keeping]


class Cached(Generic[P, R]):
    """A pure function of hashable arguments, whose results may be kept."""

    def __init__(self, compute: Callable[P, R], words: str | bool, entries: int) -> None:
        self._compute, self._options = compute, (words, entries)
        self._keeping: Callable[P, R] | None = None
        self._last: tuple[tuple[object, ...], R] | None = None
        update_wrapper(self, compute)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Compute, or return what was kept."""
        if self._keeping is None and _KEEPING:
            self._keeping = _KEEPING[0](*self._options)(self._compute)
        if self._keeping is not None:
            return self._keeping(*args, **kwargs)
        given = (*args, *(part for pair in kwargs.items() for part in pair))
        if self._last is None or not _same(self._last[0], given):  # a section asks for the same twice
            self._last = given, self._compute(*args, **kwargs)
        return self._last[1]


def _same(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    """Tell whether arguments are the very same objects: frames have no equality that is one value."""
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def cached(words: str | bool = False, *, entries: int = 32) -> Callable[[Callable[P, R]], Cached[P, R]]:
    """Declare a function whose results are worth keeping.

    Args:
        words: What is said while it runs; nothing by default.
        entries: How many results are kept at most.
    """
    return lambda compute: Cached(compute, words, entries)
