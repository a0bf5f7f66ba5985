"""Families of statements: kinds of question, and settings of an index that are surely good enough."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from bench.calibration import SEED, Row
from core.stats.significance import ALPHA, holm
from core.views.confidence import kinds
from core.views.latency import index_loss

TRIALS = 1000
QUERIES, STACKS, KINDS = 88, 40, 11
EFFORTS, LOSS, BEARABLE = 6, 0.03, 2.0


def named(trials: int, sizes: int = QUERIES // KINDS) -> tuple[float, float]:
    """Return how often a given kind, and any of `KINDS`, wants another stack where all are alike; percent."""
    random, found = np.random.default_rng(SEED), []
    for _ in range(trials):
        values = np.clip(random.normal(0.5, 0.2, (STACKS, QUERIES)), 0, 1)
        gaps = values - values[values.mean(axis=1).argmax()]
        tag = np.arange(QUERIES) // sizes
        found.append(holm([kinds.chance(gaps, tag == kind) for kind in range(tag[-1] + 1)]) < ALPHA)
    return float(100 * np.mean(found)), float(100 * np.mean(np.any(found, axis=1)))


def indexes(trials: int, queries: int = 64) -> float:
    """Return how often any of `EFFORTS` settings that truly lose `LOSS` is surely good enough; percent."""
    random, wrong = np.random.default_rng(SEED), 0
    for trial in range(trials):
        flat = random.beta(2, 1.5, queries)
        rows = []
        for effort in range(EFFORTS):
            own = flat * (1 - LOSS) + random.normal(0, 0.1, queries)
            share, low, high, n = index_loss.percent(own, flat, SEED + trial)
            rows.append({
                "family": "flat", "name": f"ef {effort}", "index": "hnsw", "options": None, "effort": effort,
                "percent": share, "low": low, "high": high, "n": n,
            })  # fmt: skip
        marked = index_loss.passing(pl.DataFrame(rows, schema=index_loss.ROWS), BEARABLE)
        wrong += bool(marked["passes"].any())
    return 100 * wrong / trials


def rows(trials: int | None = None) -> Iterator[Row]:
    """Yield the errors of both families."""
    often = trials or TRIALS
    one, either = named(often)
    yield Row(f"a kind of question wants another stack, {STACKS} alike", 100 * ALPHA, one, often)
    yield Row(f"any of {KINDS} kinds does", 100 * ALPHA, either, often)
    yield Row(
        f"any of {EFFORTS} efforts that lose {LOSS:.0%} surely loses at most 2 %", 2.5, indexes(often), often
    )
