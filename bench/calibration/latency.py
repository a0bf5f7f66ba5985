"""Whether intervals of p50 and p95 hold where queries that follow one another are alike."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from scipy.special import ndtri

from bench.calibration import SEED, Row
from core.stats.latency import SHARES, TOTAL, serial, summary

TRIALS = 4000
_AT_ONCE = 1000
WORLDS = tuple((n, alike) for n in (60, 200) for alike in (0.0, 0.3, 0.6, 0.9))


def rows(trials: int | None = None) -> Iterator[Row]:
    """Count per world how often an interval is shown, and how often one that is shown holds the truth."""
    many = trials or TRIALS
    for n, alike in WORLDS:
        found = seen(n, alike, many)
        for name, (shown, held, wrong) in found.items():
            where = f"{name}, n = {n}, autocorrelation {alike:g}"
            yield Row(f"{where}: holds where shown (in {100 * shown:.0f} of 100)", 95, 100 * held, many)
            yield Row(f"{where}: shown and wrong", 5, 100 * wrong, many)


def seen(n: int, alike: float, trials: int, *, ordered: bool = True) -> dict[str, tuple[float, float, float]]:
    """Simulate runs of queries whose latencies are lognormal and first-order alike.

    Args:
        ordered: Whether the order of measuring is known.

    Returns:
        By percentile: the share of intervals shown, of these the share that holds the true percentile (NaN
        where none is shown), and the share of all that is shown and does not hold it.
    """
    random = np.random.default_rng([SEED, n, round(10 * alike)])
    sizes = [min(_AT_ONCE, trials - start) for start in range(0, trials, _AT_ONCE)]
    table = pl.concat(summarised(series(random, size, n, alike), ordered=ordered) for size in sizes)
    found = {}
    for name in ("p50", "p95"):
        true = float(np.exp(ndtri(SHARES[name])))
        low, high = (table[f"{name}_{end}"].to_numpy() for end in ("low", "high"))
        shown, held = np.isfinite(low), (low <= true) & (true <= high)
        share = float(held[shown].mean()) if shown.any() else float("nan")
        found[name] = (float(shown.mean()), share, float((shown & ~held).mean()))
    return found


def series(random: np.random.Generator, many: int, n: int, alike: float) -> np.ndarray:
    """Draw latencies in the order of measuring [many, n]; ms."""
    fresh = random.standard_normal((many, n))
    for place in range(1, n):
        fresh[:, place] = alike * fresh[:, place - 1] + np.sqrt(1 - alike**2) * fresh[:, place]
    return np.asarray(np.exp(fresh))


def summarised(ms: np.ndarray, *, ordered: bool) -> pl.DataFrame:
    """Return `summary` of runs, a row of latencies each."""
    many, n = ms.shape
    place = np.tile(np.arange(1, n + 1), many)
    repeats = pl.DataFrame({
        "run_id": np.repeat([f"r{run:05d}" for run in range(many)], n), "stage": TOTAL, "repeat": 1,
        "query_id": place.astype(str), "ms": ms.ravel(),
        "place": pl.Series(place if ordered else [None] * place.size, dtype=pl.Int32),
    })  # fmt: skip
    return summary(repeats.join(serial(repeats), on=["run_id", "stage"], how="left"))
