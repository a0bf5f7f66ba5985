"""The machine and conditions under which time is measured; they decide whether two latencies compare."""

from __future__ import annotations

import gc
import os
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.extras import installed, later
from core.jobs import cores

if TYPE_CHECKING:
    import faiss
else:  # not needed for stored results
    faiss = later("faiss")

PACKAGES = ("bm25s", "faiss-cpu", "numpy", "polars", "PyStemmer", "wordllama")
_EVERY_S = 5.0


def describe(packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """Describe the machine and the software, except for what changes from minute to minute."""
    return {
        "cpu": _cpu_model(),
        "cores": cores(),
        "memory_gib": _memory_gib(),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "packages": {name: installed for name in packages if (installed := _version(name))},
    }


def load_average() -> list[float] | None:
    """Return the load over the last 1, 5 and 15 minutes, or None if the system does not tell."""
    try:
        return [round(value, 2) for value in os.getloadavg()]
    except (AttributeError, OSError):
        return None


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, OSError, ValueError):
        return None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let faiss, if installed, use this many threads; one is what a server under load has."""
    if not installed("faiss"):
        yield
        return
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


class Collector:
    """Defers garbage collection during the block, as it would otherwise slow a few queries at random."""

    def __init__(self) -> None:
        self._last, self._was_on = 0.0, True

    def __enter__(self) -> Collector:
        self._was_on = gc.isenabled()
        gc.collect()
        gc.disable()
        self._last = time.monotonic()
        return self

    def pause(self) -> None:
        """Collect garbage between measurements, if the last collection was long ago."""
        if time.monotonic() - self._last >= _EVERY_S:
            gc.collect()
            self._last = time.monotonic()

    def __exit__(self, *args: object) -> None:
        if self._was_on:
            gc.enable()
