"""What a slider move costs the server at 10,000 stacks: the decision, its words, the chart and its JSON.

The stack table itself is cached by the store's revision and is not part of a move.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from core.decide.rules import Constraints, decide
from core.prices import DEFAULT_BOOK, load_books
from core.store import Store
from core.views.decision.chart import pareto
from core.views.decision.words import answer
from core.views.workspace.scope import Latency, Quality, Scope
from core.views.workspace.stacks import stack_table
from tests import many_stacks

STACKS = 10_000
MOVES = 20
BOUND_MS = 50.0


def _median_ms(action: Callable[[float], object]) -> float:
    taken = []
    for move in range(MOVES):
        start = time.perf_counter()
        action(400.0 + 5 * move)
        taken.append(1000 * (time.perf_counter() - start))
    return statistics.median(taken)


def _table(folder: Path, quality: Quality, latency: Latency) -> pl.DataFrame:
    many_stacks.seed(folder / "store", STACKS)
    snapshot = Store.open(folder / "store").read()
    return stack_table(snapshot, Scope(many_stacks.COLLECTION), quality, latency, load_books()[DEFAULT_BOOK])


def run() -> list[dict[str, Any]]:
    """Measure.

    Returns:
        Rows of {name, value, unit, peer, peer_value, ratio}; ms; the peer is the bound of 50 ms.
    """
    quality, latency = Quality("RA-nWG", 10), Latency()
    with tempfile.TemporaryDirectory() as name:
        table = _table(Path(name), quality, latency)

        def move(sla: float) -> None:
            limits = Constraints(sla_ms=sla)
            decision = decide(table, limits)
            answer(table, decision, limits, quality, latency)
            pareto(table, decision, limits, quality=quality, latency=latency).figure.to_json()

        move(500.0)
        value = _median_ms(move)
    return [
        {
            "name": f"decision, chart and its JSON at {STACKS:,} stacks, median of {MOVES} moves",
            "value": value,
            "unit": "ms",
            "peer": "the bound for a slider move",
            "peer_value": BOUND_MS,
            "ratio": BOUND_MS / value,
        }
    ]
