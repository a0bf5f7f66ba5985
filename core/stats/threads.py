"""One thread for linear algebra on small matrices, where starting several costs far more than they save."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import RLock

from threadpoolctl import ThreadpoolController

_SOLVING = RLock()  # the limit is the whole process's, and several threads may ask


@cache
def _blas() -> ThreadpoolController:
    """Return the controller of the linear algebra libraries that are loaded at the first call."""
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit linear algebra to one thread for the duration; other callers wait."""
    with _SOLVING, _blas().limit(limits=1):
        yield
