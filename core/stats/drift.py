"""Drift of a number that each query has, window by window against the first one.

A window is compared with the queries of the first one that were asked at the same hours of the day, so that a
daily cycle does not look like drift; given enough days, two harmonics of the day are removed first. Whole
sessions are resampled, not queries: sessions of an hour are dealt to the two windows at random, to each as
many as it has, and the distance of the distributions (Kolmogorov and Smirnov, hours weighted alike on both
sides) is compared with the result. The p values are corrected for the number of windows (Holm 1979). If
sessions are unknown, runs of queries take their place; they are longer than the stretches over which
neighbouring queries are alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

from core.arrays import Floats, Mask, Rows
from core.stats.intervals import SEED
from core.stats.latency import autocorrelation, inflation, summed_up
from core.stats.means import mean_interval
from core.stats.significance import holm

DEALT = 999  # How often sessions are dealt anew
LEAST = 20  # Fewest queries at shared hours that a window and the reference each need for a comparison
LEAST_SESSIONS = 8  # The same for sessions
SURE = 0.05
HOUR_S, DAY_S = 3600.0, 86_400.0
CYCLE_DAYS, HOURS = 2, 3  # Days from which on the cycle is fitted, and hours that are then merged into one
_LONGER = 3  # How many times longer a run of queries is than the stretch over which queries are alike
_CELLS = 1 << 21  # Queries × deals of one block; bounds the memory
_NUMBERS = ("mean", "low", "high", "shift", "shift_low", "shift_high", "distance", "p")
DRIFT = pl.Schema({
    "window": pl.Int32(), "begin": pl.Float64(), "end": pl.Float64(), "n": pl.Int32(),
    "sessions": pl.Int32(), "compared": pl.Int32(),
    **dict.fromkeys(_NUMBERS, pl.Float64()), "drifted": pl.Boolean(),
})  # fmt: skip
"""Columns of `drift`: window counts from 1, which is the reference; begin and end are seconds since 1970 of
its first and last query; compared: how many of its n queries were asked at hours of the reference; shift is
the mean minus the reference's at the same hours; distance 0..1; p is corrected; drifted: p < `SURE`. Null
where there are too few queries or sessions, and in the reference."""


def without_cycle(values: Floats, at: Floats, of: Rows) -> tuple[Floats, Floats]:
    """Remove two harmonics of the day, fitted together with window means; keep all below `CYCLE_DAYS` days.

    Args:
        of: [n], each query's window.

    Returns:
        The values, and what is left of them after removing the means of windows too: twice [n].
    """
    angle = 2 * np.pi * at / DAY_S
    level = (of[:, None] == np.unique(of)).astype(np.float64)
    cycle = np.column_stack([wave(turns * angle) for turns in (1, 2) for wave in (np.sin, np.cos)])
    if _days(at) < CYCLE_DAYS:
        cycle = cycle[:, :0]
    fitted = np.linalg.lstsq(np.column_stack([level, cycle]), values, rcond=None)[0]
    plain = values - cycle @ fitted[level.shape[1] :]
    return plain, plain - level @ fitted[: level.shape[1]]


def _days(at: Floats) -> float:
    return float(at.max() - at.min()) / DAY_S if len(at) else 0.0


def sessions_of(values: Floats, at: Floats, session: ArrayLike | None = None) -> Rows:
    """Return the session number of each query, from 0.

    Args:
        values: [n], which may be alike for neighbouring queries; common effects of the time are removed.
        at: [n], when each query was asked.
        session: [n], session labels; None = unknown.

    Returns:
        [n]: by label; without labels by runs of queries, which are single queries if neighbours differ.
    """
    if session is not None:
        return np.unique(np.asarray(session), return_inverse=True)[1].astype(np.intp)
    n, order = len(values), np.argsort(at, kind="stable")
    length = 1
    if n >= 2 * LEAST:
        ranks = values[order].argsort(kind="stable").argsort(kind="stable")
        lags = autocorrelation(ndtri((ranks[None] + 0.5) / n))
        alike = summed_up(lags, n)
        if lags[0, 0] > 2 / np.sqrt(n):
            length = int(np.ceil(_LONGER * inflation(alike, None)[0]))
    placed = np.empty(n, dtype=np.intp)
    placed[order] = np.arange(n) // min(length, max(n // (4 * LEAST_SESSIONS), 1))
    return placed


def windows(at: Floats, count: int, session: Rows | None = None) -> Rows:
    """Divide queries into consecutive windows of sizes as equal as possible.

    Args:
        at: [n], when each was asked; queries of one moment may be separated.
        count: Number of windows, from 1.
        session: [n], sessions counted from 0, never split; None = each query is its own.

    Returns:
        [n], each query's window, from 0.
    """
    n = len(at)
    of = np.arange(n) if session is None else session
    began = np.full(of.max(initial=-1) + 1, np.inf)
    np.minimum.at(began, of, at)
    order = np.lexsort((at, of, began[of]))
    place = np.empty(n, dtype=np.intp)
    place[order] = np.arange(n) * count // max(n, 1)
    first = np.full(len(began), count, dtype=np.intp)
    np.minimum.at(first, of, place)
    return np.asarray(first[of])


def drift(
    values: Floats, at: Floats, count: int, *, session: ArrayLike | None = None, seed: int = SEED
) -> pl.DataFrame:
    """Compare every window with the first.

    Args:
        values: [n]; NaN = unknown, left out.
        at: [n], seconds since 1970; NaN = unknown, left out.
        count: Number of windows.
        session: [n], labels of sessions; see `sessions_of`.

    Returns:
        `DRIFT`, a row per window that holds a query.
    """
    known = np.isfinite(values) & np.isfinite(at)
    values, at = values[known], at[known]
    plain, left = without_cycle(values, at, windows(at, count))
    told = None if session is None else np.asarray(session)[known]
    asked = _Asked(plain, at, sessions_of(left, at, told))
    of = windows(at, count, asked.session)
    reference = of == 0
    rows = [
        {
            "window": window + 1, "begin": float(at[part].min()), "end": float(at[part].max()),
            "n": int(part.sum()), "sessions": len(np.unique(asked.session[part])),
            **clustered_mean(values[part], asked.session[part]),
            **(asked.against(part, reference, seed) if window else {}),
        }
        for window in range(count)
        if (part := of == window).any()
    ]  # fmt: skip
    table = pl.DataFrame(rows, schema=DRIFT)
    corrected = pl.Series("p", holm(table["p"].fill_null(np.nan).to_numpy()), dtype=pl.Float64).fill_nan(None)
    return table.with_columns(corrected).with_columns(drifted=pl.col("p") < SURE)


def clustered_mean(values: Floats, session: Rows) -> dict[str, float | None]:
    """Return the mean over queries with its 95 % interval, by Student over sessions if they have several.

    The ends are null below `LEAST_SESSIONS` sessions.
    """
    of = np.unique(session, return_inverse=True)[1]
    low, high = (float(end[0]) for end in mean_interval(values, "amounts", clusters=of))
    ends = (None if np.isnan(end) else end for end in (low, high))
    return {"mean": float(values.mean()), **dict(zip(("low", "high"), ends, strict=True))}


@dataclass(frozen=True, eq=False)
class _Asked:
    """Queries, when they were asked and in which session: [n]."""

    values: Floats
    at: Floats
    session: Rows

    def against(self, part: Mask, reference: Mask, seed: int) -> dict[str, float]:
        """Return shift and its interval, distance and p; only `compared` if there are too few queries."""
        either = np.flatnonzero(part | reference)
        either = either[np.argsort(self.values[either], kind="stable")]
        firsts, session = np.unique(self.session[either], return_inverse=True)
        began = np.full(len(firsts), np.inf)
        np.minimum.at(began, session, self.at[either])
        many = HOURS if _days(self.at) >= CYCLE_DAYS else 1
        hour = (began % DAY_S // (many * HOUR_S)).astype(np.intp)
        late = np.zeros(len(firsts), dtype=np.bool_)
        late[session] = part[either]
        both = np.isin(hour, np.intersect1d(hour[late], hour[~late]))
        kept = both[session]
        late_queries = late[session] & kept
        n, other = int(late_queries.sum()), int((kept & ~late[session]).sum())
        fewest = min(int(late[both].sum()), int((~late[both]).sum()))
        if min(n, other) < LEAST or fewest < LEAST_SESSIONS:
            return {"compared": n}
        numbers, groups = np.unique(session[kept], return_inverse=True)
        hours = np.unique(hour[numbers], return_inverse=True)[1]
        pair = _Pair(self.values[either][kept], groups, hours, late[numbers])
        return {"compared": n, **pair.shift(), **pair.distance(seed)}


@dataclass(frozen=True, eq=False)
class _Pair:
    """Two windows at the hours of both."""

    values: Floats  # [n], ascending
    session: Rows  # [n]
    hour: Rows  # [G], of each session
    late: NDArray[np.bool_]  # [G], whether a session is of the later window

    def weights(self, late: Mask) -> Floats:
        """Weigh queries [B, n] so that both windows have each hour alike; reference weights are negative.

        Args:
            late: [B, G], which sessions are of the later window.
        """
        hour = self.hour[self.session]
        held = np.eye(int(self.hour.max()) + 1)[hour]  # [n, H]
        mine = late[:, self.session]
        n_late, n_all = mine @ held, held.sum(axis=0)
        weight = n_late * (n_all - n_late) / n_all
        weight /= weight.sum(axis=1, keepdims=True)
        above, below = weight / n_late, weight / (n_all - n_late)
        return np.asarray(np.where(mine, above[:, hour], -below[:, hour]))

    def shift(self) -> dict[str, float]:
        """Return the difference of means at the same hours, with Student's interval over sessions."""
        weights = self.weights(self.late[None])[0]
        side = 2 * self.hour[self.session] + self.late[self.session]
        means = np.bincount(side, self.values) / np.maximum(np.bincount(side), 1)
        sums = np.bincount(self.session, weights * (self.values - means[side]))
        groups, strata = len(self.hour), len(np.unique(2 * self.hour + self.late))
        free = max(groups - strata, 1)
        reach = float(stdtrit(free, 0.975) * np.sqrt((sums**2).sum() * groups / free))
        shift = float((weights * self.values).sum())
        return {"shift": shift, "shift_low": shift - reach, "shift_high": shift + reach}

    def distance(self, seed: int) -> dict[str, float]:
        """Return the largest distance of the two distributions, and how often redealing gives as much."""
        random = np.random.default_rng(seed)
        by_hour = np.argsort(self.hour, kind="stable")
        places = np.arange(len(by_hour)) - np.searchsorted(self.hour[by_hour], self.hour[by_hour])
        template = places < np.bincount(self.hour, self.late)[self.hour[by_hour]]
        ends = np.append(np.flatnonzero(np.diff(self.values)), len(self.values) - 1)  # the last of equal ones
        seen = self._largest(self.late[None], ends)[0]
        as_far, block = 0, max(1, _CELLS // len(self.values))
        for start in range(0, DEALT, block):
            keys = random.random((min(block, DEALT - start), len(self.hour))) + self.hour
            late = np.empty(keys.shape, dtype=np.bool_)
            np.put_along_axis(late, np.argsort(keys, axis=1), template[None], axis=1)
            as_far += int((self._largest(late, ends) >= seen - 1e-12).sum())
        return {"distance": float(seen), "p": (as_far + 1) / (DEALT + 1)}

    def _largest(self, late: Mask, ends: Rows) -> Floats:
        return np.asarray(np.abs(self.weights(late).cumsum(axis=1)[:, ends]).max(axis=1))
