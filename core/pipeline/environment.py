"""Where a measurement was made; decides whether two latencies can be compared."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("bm25s", "faiss-cpu", "numpy", "polars", "PyStemmer", "wordllama")


def describe(packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """The machine and the software, without what changes from minute to minute.

    Args:
        packages: Distributions whose versions matter; those that are not installed are left out.

    Returns:
        cpu (model), cores (usable by this process), memory_gib (null where unknown), system, python and
        packages (versions by name).
    """
    return {
        "cpu": _cpu_model(),
        "cores": _usable_cores(),
        "memory_gib": _memory_gib(),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "packages": {name: found for name in packages if (found := _version(name))},
    }


def load_average() -> list[float] | None:
    """Load over the last 1, 5 and 15 minutes; None where the system does not tell."""
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


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
