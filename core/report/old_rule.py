"""The rule until release 0.2, only for gates on records of that time: ties by significance.

Stacks within the jitter band of the best whose paired 95 % interval contained 0 tied, and among these the
smaller prompt won, then the lower cost, the lower latency, and the better quality. A stack had to be known on
cost and latency as soon as any was. A decision no longer held if another stack dominated the recorded one or
was the best in more than a stated share of plain resamples.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from core.analysis.workspace.noise import with_noise
from core.analysis.workspace.sure import drawn, sample
from core.analysis.workspace.view import View
from core.decide.pareto import undominated
from core.decide.ties import Numbers
from core.stats.intervals import LEAST
from core.views.confidence.hold import shares

NAMED = "by the rule until 0.2: ties by significance"


def feasible(view: View) -> np.ndarray:
    """Return which rows that rule kept: known on every axis that it compared [n]."""
    known = np.ones(view.table.height, dtype=np.bool_)
    for axis in view.decision.compared:
        known &= ~np.isnan(axis.read(view.table))
    return np.asarray(view.decision.feasible & known)


def frontier_rows(view: View) -> list[int]:
    """Return the undominated feasible rows, the best quality first."""
    rows = np.flatnonzero(feasible(view))
    merits = [axis.merit(axis.read(view.table))[rows] for axis in view.decision.compared]
    on = rows[undominated([-merit for merit in merits], weak=view.weak)]
    best = -view.decision.quality.merit(view.decision.quality.read(view.table))[on]
    return [int(row) for row in on[best.argsort(kind="stable")]]


def chosen(view: View) -> int | None:
    """Return the row that the rule chose, or None if none was left."""
    rows = np.flatnonzero(feasible(view))
    if not len(rows):
        return None
    values = Numbers.of(view.table, view.decision.quality, view.constraints.jitter_ms, view.paired)
    if view.rule == "latency":
        rows = rows[_as_fast(values, rows, int(rows[values.latency[rows].argmin()]))]
    elif view.rule == "cost":
        rows = rows[np.isclose(values.cost[rows], values.cost[rows].min(), rtol=1e-9, atol=1e-12)]
    best = int(rows[np.lexsort((values.cost[rows], values.latency[rows], -values.merit[rows]))[0]])
    rows = rows[_as_fast(values, rows, best) | np.isnan(values.latency[best])]
    tied = rows[_alike(view, values, rows, best) | (rows == best)]
    sizes = next(
        (size[tied] for size in values.prompt if not np.isnan(size[tied]).any()), np.zeros(len(tied))
    )
    keys = (-values.merit[tied], values.latency[tied], values.cost[tied], sizes)
    return int(tied[np.lexsort(keys)[0]])


def _as_fast(values: Numbers, rows: np.ndarray, as_row: int) -> np.ndarray:
    gap = np.abs(values.latency[rows] - values.latency[as_row])
    return np.asarray((gap < np.maximum(values.band[rows], values.band[as_row])) | (gap == 0))


def _alike(view: View, values: Numbers, rows: np.ndarray, best: int) -> np.ndarray:
    """Return which rows did not differ significantly from the best."""
    low, high = (view.table[name][best] for name in ("quality_low", "quality_high"))
    if low is None or high is None:
        alike = np.round(values.quality[rows], 3) == np.round(values.quality[best], 3)
    else:
        alike = (values.quality[rows] >= low) & (values.quality[rows] <= high)
    singly = values.places[rows] >= 0
    if view.paired is not None and values.places[best] >= 0 and singly.any():
        paired = replace(view.paired, clusters=None)  # that rule knew no clusters
        places, place = values.places[rows[singly]], int(values.places[best])
        gap, least, most = paired.differences(places, place)
        inside = (least <= 1e-6) & (most >= -1e-6)
        few = paired.common(place, places) < LEAST
        alike[singly] = np.where(few, np.abs(gap) <= 1e-6, inside)
    return np.asarray(alike)


def best_shares(view: View) -> pl.Series:
    """Return the share of plain resamples in which each row is the best; null = unknown."""
    known = with_noise(view.table, sample(view), drawn(view, view.noise))
    return shares(view.table, known, (view.constraints, view.rule), seed=view.seed)["p_best"]
