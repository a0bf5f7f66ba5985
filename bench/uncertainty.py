"""Uncertainty of many stacks: products of one resampling matrix, against loops on the same data.

1,000 stacks on 500 queries with 2,000 resamples each, all stacks on the same resamples. Every time is the
median of three repeats after one warm-up; the sides take turns. A peer that would take minutes runs on the
first stacks only and is scaled up, which its name says.

* scipy: `scipy.stats.bootstrap`, percentile and BCa, one stack after the other.
* NumPy: a loop over the resamples that draws queries and averages the columns drawn.
* Pairs: difference, interval, randomisation test with 10,000 swaps and all the rest of every stack against
  the first, against `scipy.stats.bootstrap` and `permutation_test` of the differences.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import bootstrap, permutation_test

from bench.metrics_speed import median_seconds
from core.arrays import Floats
from core.stats.intervals import Sample, interval, resampled, weights, without_one
from core.stats.significance import Setup, compare

STACKS, QUERIES, RESAMPLES, SWAPS = 1_000, 500, 2_000, 10_000
SCIPY_STACKS, SCIPY_PAIRS, LOOPED = 20, 5, 100


def synthesise(seed: int = 7) -> Floats:
    """Scores [STACKS, QUERIES] of stacks that differ a little on queries that differ a lot."""
    rng = np.random.default_rng(seed)
    skill = rng.normal(0, 0.05, (STACKS, 1))
    return np.clip(rng.beta(2, 1, QUERIES) + skill + rng.normal(0, 0.15, (STACKS, QUERIES)), 0, 1)


def ours(values: Floats, method: Any) -> tuple[Floats, Floats]:
    """Intervals of every stack's mean; the weights are drawn anew."""
    weights.cache_clear()
    sample = Sample.means(values)
    left_out = without_one(sample) if method == "BCa" else None
    drawn = weights(values.shape[1], RESAMPLES)
    return interval(sample.estimate(), resampled(sample, drawn), left_out=left_out, method=method)


def scipys(values: Floats, method: str) -> list[Any]:
    """The same, a stack at a time."""
    return [
        bootstrap((row,), np.mean, n_resamples=RESAMPLES, method=method, rng=np.random.default_rng(0))
        for row in values
    ]


def looped(values: Floats, resamples: int) -> Floats:
    """Means [resamples, S] by drawing queries in a loop; all stacks share each resample."""
    rng = np.random.default_rng(0)
    return np.stack(
        [
            values[:, rng.integers(values.shape[1], size=values.shape[1])].mean(axis=1)
            for _ in range(resamples)
        ]
    )


def pairs(values: Floats) -> object:
    """Every stack against the first."""
    return compare(
        Sample.means(values),
        np.zeros(len(values) - 1, dtype=np.intp),
        np.arange(1, len(values)),
        Setup(resamples=RESAMPLES, permutations=SWAPS),
    )


def scipy_pairs(values: Floats) -> list[Any]:
    """Interval and test of the first stacks against the first one."""
    made = []
    for row in values[1:]:
        deltas = row - values[0]
        made.append(bootstrap((deltas,), np.mean, n_resamples=RESAMPLES, method="percentile"))
        made.append(
            permutation_test(
                (deltas,), np.mean, permutation_type="samples", n_resamples=SWAPS, vectorized=True
            )
        )
    return made


def check(values: Floats) -> None:
    """Refuse to compare speeds of different results."""
    low, high = ours(values[:3], "BCa")
    for row, theirs in enumerate(scipys(values[:3], "BCa")):
        bounds = theirs.confidence_interval
        near = 0.15 * (bounds.high - bounds.low)  # both have 2,000 resamples of their own
        if abs(low[row] - bounds.low) > near or abs(high[row] - bounds.high) > near:
            raise RuntimeError(f"stack {row}: [{low[row]}, {high[row]}] is not {bounds}")


def run() -> list[dict[str, Any]]:
    """One row per question, as `bench` shows them."""
    values = synthesise()
    check(values)
    few = values[:SCIPY_STACKS]
    seconds = median_seconds(
        [
            lambda: ours(values, "percentile"),
            lambda: ours(values, "BCa"),
            lambda: pairs(values),
            lambda: scipys(few, "percentile"),
            lambda: scipys(few, "BCa"),
            lambda: looped(values, LOOPED),
            lambda: scipy_pairs(values[: SCIPY_PAIRS + 1]),
        ]
    )
    scale = STACKS / SCIPY_STACKS
    asked = f"{STACKS:,} stacks × {QUERIES} queries × {RESAMPLES:,} resamples"
    timed = f"{SCIPY_STACKS} stacks timed, scaled"
    rows = (
        (
            f"percentile intervals, {asked}",
            seconds[0],
            f"scipy.stats.bootstrap ({timed})",
            seconds[3] * scale,
        ),
        (
            f"percentile intervals, {asked}",
            seconds[0],
            f"NumPy loop over resamples ({LOOPED} timed, scaled; means only)",
            seconds[5] * RESAMPLES / LOOPED,
        ),
        (f"BCa intervals, {asked}", seconds[1], f"scipy.stats.bootstrap ({timed})", seconds[4] * scale),
        (
            f"{STACKS - 1} paired comparisons, {SWAPS:,} swaps",
            seconds[2],
            f"scipy bootstrap + permutation_test ({SCIPY_PAIRS} timed, scaled)",
            seconds[6] * (STACKS - 1) / SCIPY_PAIRS,
        ),
    )
    return [
        {"name": name, "value": value, "unit": "s", "peer": peer, "peer_value": taken, "ratio": taken / value}
        for name, value, peer, taken in rows
    ]
