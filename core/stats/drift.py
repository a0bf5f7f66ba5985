"""Drift of a number that is known of every query, window by window against the first one.

Two statistics of a window and the reference: the difference of means with a bootstrap interval (both drawn
anew), and the Kolmogorov–Smirnov distance of the distributions, whose p values are corrected for the number
of windows (Holm 1979). Queries are taken to be independent of one another.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.stats.intervals import SEED, bootstrap_means
from core.stats.significance import holm

Floats = NDArray[np.float64]
RESAMPLES = 1000
LEAST = 20  # Fewer queries in a window, or in the reference, are compared with nothing
SURE = 0.05
_NUMBERS = ("mean", "low", "high", "shift", "shift_low", "shift_high", "distance", "p")
DRIFT = pl.Schema({
    "window": pl.Int32(), "begin": pl.Float64(), "end": pl.Float64(), "n": pl.Int32(),
    **dict.fromkeys(_NUMBERS, pl.Float64()), "drifted": pl.Boolean(),
})  # fmt: skip
"""Columns of `drift`: window counts from 1, which is the reference; begin and end are seconds since 1970 of
its first and last query; shift is the mean minus the reference's; distance 0..1; p is corrected; drifted:
p < `SURE`. Null where there are too few queries, and in the reference."""


def windows(at: Floats, count: int) -> NDArray[np.intp]:
    """Deal queries into windows that follow one another, as many in each as can be.

    Args:
        at: [n], when each was asked; those of one moment may be parted.
        count: Number of windows, from 1.

    Returns:
        [n], the window of each, from 0.
    """
    place = np.empty(len(at), dtype=np.intp)
    place[np.argsort(at, kind="stable")] = np.arange(len(at)) * count // max(len(at), 1)
    return place


def drift(values: Floats, at: Floats, count: int, *, seed: int = SEED) -> pl.DataFrame:
    """Compare every window with the first.

    Args:
        values: [n]; NaN = unknown, left out.
        at: [n], seconds since 1970; NaN = unknown, left out.
        count: Number of windows.

    Returns:
        `DRIFT`, a row per window that holds a query.
    """
    known = np.isfinite(values) & np.isfinite(at)
    values, at = values[known], at[known]
    of = windows(at, count)
    parts = [(values[of == window], at[of == window]) for window in range(count)]
    reference = parts[0][0] if parts else values
    rows = [
        {
            "window": window + 1, "begin": float(when.min()), "end": float(when.max()), "n": len(part),
            **_mean(part),
            **(_against(part, reference, seed) if window else {}),
        }
        for window, (part, when) in enumerate(parts)
        if len(part)
    ]  # fmt: skip
    table = pl.DataFrame(rows, schema=DRIFT)
    corrected = pl.Series("p", holm(table["p"].fill_null(np.nan).to_numpy()), dtype=pl.Float64).fill_nan(None)
    return table.with_columns(corrected).with_columns(drifted=pl.col("p") < SURE)


def _mean(part: Floats) -> dict[str, float | None]:
    low, high = (float(end[0]) for end in bootstrap_means(part[None], whole=None))
    ends = (None if np.isnan(end) else end for end in (low, high))
    return {"mean": float(part.mean()), **dict(zip(("low", "high"), ends, strict=True))}


def _against(part: Floats, reference: Floats, seed: int) -> dict[str, float]:
    """Return shift with its interval, distance and p; nothing where there are too few."""
    if min(len(part), len(reference)) < LEAST:
        return {}
    from scipy.stats import ks_2samp  # noqa: PLC0415 - takes as long to import as a page to draw

    random = np.random.default_rng(seed)
    means = [random.choice(some, (RESAMPLES, len(some))).mean(axis=1) for some in (part, reference)]
    low, high = np.quantile(means[0] - means[1], (0.025, 0.975))
    tested = ks_2samp(part, reference)
    shift = float(part.mean() - reference.mean())
    ends = {"shift": shift, "shift_low": float(low), "shift_high": float(high)}
    return {**ends, "distance": float(tested.statistic), "p": float(tested.pvalue)}
