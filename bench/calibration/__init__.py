"""Whether what the product states is seen: each chance and level it prints, simulated with its own functions.

A module here is a topic. Its `rows` draws worlds of known truth, asks the product's function, and counts.
docs/statistics.md holds the table, before and after; tests/stats/calibration pins each row at fewer trials.

    python -m bench calibration                 # all topics; minutes
    python -m bench calibration --only latency  # one
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

SEED = 20251112


@dataclass(frozen=True)
class Row:
    """What the product states, and how often it was so."""

    what: str
    stated: float  # percent
    seen: float  # percent
    trials: int
    seed: int = SEED


def topics() -> tuple[str, ...]:
    """Name the modules of this package."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def run(only: str | None = None) -> list[dict[str, Any]]:
    """Simulate every topic, or one, at its full number of trials."""
    return [_shown(row) for topic in topics() if only in (None, topic) for row in _rows(topic)]


def _rows(topic: str) -> Iterator[Row]:
    yield from importlib.import_module(f"bench.calibration.{topic}").rows()


def _shown(row: Row) -> dict[str, Any]:
    """Lay a row out as benchmarks print theirs."""
    shown = {"name": row.what, "value": row.seen, "unit": "%", "peer": "stated", "peer_value": row.stated}
    return shown | {"ratio": None} | {key: asdict(row)[key] for key in ("trials", "seed")}
