"""A slider of a measure's parameter: 1,000 stacks on 200 queries scored anew, rankings untouched.

Processor seconds of all threads added (what a clock shows is less, unless the machine has other work), the
least of several tries with another alpha each: from graded rankings to the mean, n and values per query of
every stack, at one K as the tables show it, and at every K as the curves do.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.cpu import TRIES, faster
from core.analysis.workspace.scores import at_cutoff, mean, of_graded
from core.metrics import Measure
from core.store import Graded

STACKS, QUERIES, DEPTH, K = 1_000, 200, 100, 10
LIMIT_S = 0.3


def graded(seed: int = 7) -> Graded:
    """Rankings with a grade for about every second passage."""
    rng = np.random.default_rng(seed)
    grades = rng.choice(
        np.arange(6, dtype=np.int8), (STACKS, QUERIES, DEPTH), p=[0.5, 0.18, 0.12, 0.1, 0.06, 0.04]
    )
    return Graded(
        run_ids=tuple(f"run-{run}" for run in range(STACKS)),
        query_ids=tuple(f"q{query}" for query in range(QUERIES)),
        grades=grades,
        pool_counts=rng.integers(1, 40, (QUERIES, 5)).astype(np.int32),
        unjudged_queries=np.zeros(STACKS, dtype=np.int32),
    )


def least_seconds(action: Callable[[Measure], object]) -> float:
    """Least processor seconds of several tries, each with another alpha."""
    alphas = itertools.count(1)
    taken = []
    for _ in range(TRIES + 1):
        measure = Measure("RA-nWG", K, (("alpha", next(alphas) / 10),))
        start = time.process_time()
        action(measure)
        taken.append(time.process_time() - start)
    return min(taken[1:])


def run() -> list[dict[str, Any]]:
    """Measure.

    Returns:
        Rows of {name, value, unit, peer, peer_value, ratio}; processor seconds, ratio = limit / here.
    """
    made = graded()
    found = of_graded(made, made)
    cases = {
        f"at K = {K}": lambda measure: mean(at_cutoff(found, measure)),
        f"at every K ≤ {DEPTH}": lambda measure: mean(
            found.score([measure.at(None)])[measure.at(None)][..., -1]
        ),
    }
    what = f"another alpha, {STACKS:,} stacks × {QUERIES} queries"
    return [
        faster(f"{what}, {name}", least_seconds(action), "our limit", LIMIT_S)
        for name, action in cases.items()
    ]
