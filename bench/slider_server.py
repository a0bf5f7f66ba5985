"""What a slider move costs the server at 10,000 stacks: decision, chances, words, the chart and its JSON.

The stack table and the draws are cached by the store's revision and are not part of a move.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from core.analysis.workspace.scope import Latency, Quality, Scope
from core.analysis.workspace.stacks import stack_table
from core.analysis.workspace.view import View
from core.decide.beliefs import beliefs
from core.decide.joint import JointSample
from core.decide.rules import Constraints
from core.decide.selection import assess
from core.decide.ties import Paired
from core.prices import DEFAULT_BOOK, load_books
from core.store import Store
from core.views.decision.charts import pareto
from core.views.decision.words import answer
from tests import many_stacks

STACKS, QUERIES, DELTA = 10_000, 64, 0.01
MOVES = 20
BOUND_MS = 50.0


def _median_ms(action: Callable[[float], object]) -> float:
    taken = []
    for move in range(MOVES):
        start = time.perf_counter()
        action(400.0 + 5 * move)
        taken.append(1000 * (time.perf_counter() - start))
    return statistics.median(taken)


def _workspace(folder: Path, quality: Quality, latency: Latency) -> View:
    many_stacks.seed(folder / "store", STACKS)
    snapshot, scope = Store.open(folder / "store").read(), Scope(many_stacks.COLLECTION)
    book = load_books()[DEFAULT_BOOK]
    table = stack_table(snapshot, scope, quality, latency, book)
    return View(snapshot, scope, quality=quality, latency=latency, book=book, given=table)


def _asked(whole: View) -> tuple[View, JointSample]:
    """Give each stack a result per query around its average; latency and cost stay averages."""
    random, table = np.random.default_rng(11), whole.table
    noise = random.normal(0, 0.2, (table.height, QUERIES)) + random.normal(0, 0.15, QUERIES)
    values = table["quality"].to_numpy()[:, None] + noise
    unknown = np.full(table.height, np.nan)
    cost, ms = table["cost"].to_numpy(), table["latency_ms"].to_numpy()
    sample = JointSample(values, np.full(values.shape, np.nan), cost, unknown, ms)
    return replace(whole, given=table.with_columns(quality=pl.Series(values.mean(axis=1)))), sample


def run() -> list[dict[str, Any]]:
    """Measure.

    Returns:
        Rows of {name, value, unit, peer, peer_value, ratio}; ms; the peer is the bound of 50 ms.
    """
    quality, latency = Quality("RA-nWG", 10), Latency()
    with tempfile.TemporaryDirectory() as name:
        whole, sample = _asked(_workspace(Path(name), quality, latency))
        table = whole.table
        paired, believed = Paired(table["run_id"].to_list(), sample.quality), beliefs(sample, seed=11)

        def move(sla: float) -> None:
            limits = Constraints(sla_ms=sla, delta=DELTA)
            asked = replace(whole, constraints=limits)
            asked.__dict__["paired"] = paired
            asked.__dict__["sure"] = assess(table, asked.decision, limits, believed, paired)
            answer(asked)
            pareto(table, asked.decision, limits, quality=quality, latency=latency).figure.to_json()

        move(500.0)
        value = _median_ms(move)
    return [
        {
            "name": f"decision, chances, chart and its JSON at {STACKS:,} stacks, median of {MOVES} moves",
            "value": value,
            "unit": "ms",
            "peer": "the bound for a slider move",
            "peer_value": BOUND_MS,
            "ratio": BOUND_MS / value,
        }
    ]
