"""Which stacks a rule cannot tell from its best (jitter, ties), and which it prefers (metrics.md §9).

Rows within the jitter band of the best one's latency, of which the paired difference in quality from it may
be 0, query by query, are ties: the smaller prompt wins, then the lower cost, latency, then better quality.

One set of resamples serves all stacks. Their resampled means are kept, so that telling the best from ten
thousand others is one comparison of two matrices and no resampling. Only those asked for are compared, which
are few (a tie lies within the jitter band), and what was found is kept by the best.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.decide.axes import QUALITY, Axis, Floats, floats
from core.stats.intervals import LEAST, SEED, Sample, interval, paired_rows, resampled, weights
from core.stats.latency import TOTAL

Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]

LEVEL = 0.95
DIGITS = 3  # Decimals that qualities are printed with: averages that print the same are the same
_NOISE = 1e-6  # Differences below it come from the order of adding up; a replicate holds seven digits
_NEAR = 1.5
"""Resamples by which a count may miss the border of the interval for the row to be looked at exactly."""
_BLOCK = 1024
_KEPT = 64  # Bests of which it is remembered who is alike: 1, who is not: 0, and who was not compared yet: -1


@dataclass(frozen=True, eq=False)
class Paired:
    """The quality of stacks, query by query."""

    run_ids: Sequence[str]  # [S], the stacks
    values: Floats  # [S, Q]; NaN = not applicable. A stack without any value has none.
    seed: int = SEED  # of the resampling
    _known: dict[int, NDArray[np.int8]] = field(default_factory=dict, init=False, repr=False)
    _placed: list[tuple[pl.Series, Rows]] = field(default_factory=list, init=False, repr=False)

    def places(self, run_ids: pl.Series) -> Rows:
        """Return where stacks stand here [n]; −1 = there are no values of theirs.

        The last answer is remembered, and may not be written to.
        """
        for asked, places in self._placed[-1:]:
            if asked.equals(run_ids):
                return places
        places = self._looked_up(run_ids)
        places.flags.writeable = False
        self._placed[:] = [(run_ids, places)]
        return places

    def _looked_up(self, run_ids: pl.Series) -> Rows:
        names = pl.Series(list(self.run_ids), dtype=pl.String)
        rows = run_ids.replace_strict(
            names, pl.int_range(len(names), eager=True), default=-1, return_dtype=pl.Int64
        )
        places = rows.to_numpy().astype(np.intp)
        empty = ~np.asarray(self._applies.any(axis=1))
        return np.where((places >= 0) & empty[places], -1, places)

    def alike(self, best: int, rows: Rows, shift: Floats) -> Mask:
        """Return which stacks do not differ significantly from the best of them.

        Args:
            rows: [m], their places.
            shift: [S], by how much the mean of a stack is taken to be another than that of its values.

        Returns:
            Mask [m]: whether the 95 % interval of the paired difference contains 0, over the queries that
            both have. On fewer than `LEAST` such queries nothing can be tested, and only equal means are
            alike; False where they have none in common.
        """
        others = (self._pattern[rows] != self._pattern[best]) | (shift[rows] != shift[best])
        few = self.common(best, rows) < LEAST
        mask = np.empty(len(rows), dtype=np.bool_)
        mask[~others & ~few] = self._like(best, rows[~others & ~few])
        mask[others & ~few] = self._exactly(best, rows[others & ~few], shift)
        mask[few] = self._equal(best, rows[few], shift)
        return mask

    def difference(self, of: int, best: int) -> tuple[float, float, float]:
        """Average the difference of a stack from another over the queries of both, with its 95 % interval."""
        one, other = paired_rows(self._sample, np.array([of]), np.array([best]))
        gap = Sample(one.top - other.top, one.bottom, one.applies)
        low, high = interval(gap.estimate(), resampled(gap, self._drawn), level=LEVEL)
        return float(gap.estimate()[0]), float(low[0]), float(high[0])

    def common(self, best: int, rows: Rows) -> Rows:
        """Return how many queries each of some stacks has in common with one [m]."""
        return np.asarray((self._applies[rows] & self._applies[best]).sum(axis=1))

    def _equal(self, best: int, rows: Rows, shift: Floats) -> Mask:
        """Return which stacks have the mean of one on the queries that both have."""
        one, other = paired_rows(self._sample, rows, np.full(len(rows), best))
        gap = one.estimate() - other.estimate() + shift[rows] - shift[best]
        return np.asarray(np.abs(gap) <= _NOISE)

    @cached_property
    def _applies(self) -> Mask:
        return np.asarray(~np.isnan(self.values))

    @cached_property
    def _pattern(self) -> Rows:
        """Which stacks have values for the same queries: a number for each set of queries [S]."""
        return np.asarray(np.unique(self._applies, axis=0, return_inverse=True)[1].reshape(-1))

    @cached_property
    def means(self) -> Floats:
        """The mean of every stack [S]; NaN where it has no values."""
        return self._sample.estimate()

    @cached_property
    def _sample(self) -> Sample:
        return Sample.means(self.values)

    @cached_property
    def _drawn(self) -> Floats:
        return weights(self.values.shape[1], seed=self.seed)

    @cached_property
    def _replicates(self) -> NDArray[np.float32]:
        """The mean of every stack in every resample [S, R]."""
        return resampled(self._sample, self._drawn).astype(np.float32)

    def _like(self, best: int, rows: Rows) -> Mask:
        """Return `alike` of rows that have values for the same queries.

        What was compared before is remembered.
        """
        if best not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[best] = np.full(len(self.values), -1, dtype=np.int8)
        known = self._known[best]
        fresh = rows[known[rows] < 0]
        for start in range(0, len(fresh), _BLOCK):
            part = fresh[start : start + _BLOCK]
            known[part] = self._counted(best, part)
        return known[rows] > 0

    def _counted(self, best: int, rows: Rows) -> Mask:
        """Decide by how many resamples lie beyond 0, seen from the difference; at the border exactly.

        On the side of the difference itself there always are enough: a third of the resamples or more.
        """
        top, beyond = self._replicates[best], np.empty(len(rows))
        lower = self.means[rows] <= self.means[best]
        beyond[lower] = np.count_nonzero(self._replicates[rows[lower]] >= top - _NOISE, axis=1)
        beyond[~lower] = np.count_nonzero(self._replicates[rows[~lower]] <= top + _NOISE, axis=1)
        place = (1 - LEVEL) / 2 * (len(top) - 1)
        alike = np.asarray(beyond > place + 1)
        border = np.abs(beyond - place) <= _NEAR
        alike[border] = self._exactly(best, rows[border], np.zeros(len(self.values)))
        return alike

    def _exactly(self, best: int, rows: Rows, shift: Floats) -> Mask:
        """Decide by the interval itself."""
        alike = np.zeros(len(rows), dtype=np.bool_)
        for start in range(0, len(rows), _BLOCK):
            part = rows[start : start + _BLOCK]
            one, other = paired_rows(self._sample, part, np.full(len(part), best))
            gap = Sample(one.top - other.top, one.bottom, one.applies)
            low, high = interval(gap.estimate(), resampled(gap, self._drawn), level=LEVEL)
            moved = shift[part] - shift[best]
            alike[start : start + _BLOCK] = (low + moved <= _NOISE) & (high + moved >= -_NOISE)
        return alike


class PairedReplicates(Paired):
    """Means of stacks in joint resamples, as `values` [S, R], where more is drawn than the queries."""

    def alike(self, best: int, rows: Rows, shift: Floats) -> Mask:
        """Return which stacks do not differ significantly from the best of them.

        Takes what `Paired.alike` does.
        """
        gap = self.values[rows] - self.values[best]
        low, high = interval(np.nanmean(gap, axis=1), gap, level=LEVEL)
        moved = shift[rows] - shift[best]
        return np.asarray((low + moved <= _NOISE) & (high + moved >= -_NOISE))


JITTER_MS = 75.0  # Differences under this are noise where nothing else is known (CLQ paper §3.2.2)
SHARE = 0.95  # Percentile of the differences between passes that is their jitter


def pass_differences(timings: pl.DataFrame) -> pl.DataFrame:
    """Return by how much the medians of two passes of the same stack differ.

    Args:
        timings: run_id, stage, query_id, repeat, ms, as `latency.per_repeat` returns them; only the
            totals are looked at. A query that a pass of its run lacks does not count.

    Returns:
        run_id, ms: the absolute difference of the p50 over queries, a row per pair of passes of a run; none
        for a run with one pass.
    """
    totals = timings.filter(pl.col("stage") == TOTAL)
    passes = totals.group_by("run_id").agg(pl.col("repeat").n_unique().alias("passes"))
    whole = totals.join(passes, on="run_id").filter(
        pl.col("repeat").n_unique().over("run_id", "query_id") == pl.col("passes")
    )
    medians = whole.group_by("run_id", "repeat").agg(pl.col("ms").median())
    return (
        medians.join(medians, on="run_id", suffix="_other")
        .filter(pl.col("repeat") < pl.col("repeat_other"))
        .select("run_id", (pl.col("ms") - pl.col("ms_other")).abs())
    )


def jitter(differences: pl.Series) -> float | None:
    """Return the 95th percentile of differences between passes; ms. None without any."""
    return differences.quantile(SHARE, interpolation="linear")


PROMPT = ("tokens_sent", "passages_sent", "candidates")
"""Columns that say how large a prompt is, the most telling first."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """The columns of a stack table as arrays [n]; NaN = unknown. Of merit, quality turned, more is better."""

    quality: Floats
    merit: Floats
    low: Floats
    high: Floats
    latency: Floats
    cost: Floats
    prompt: tuple[Floats, ...]
    band: Floats  # within which a latency is not told apart; ms
    places: Rows  # where the stacks stand in `paired`; −1 = not there
    paired: Paired | None  # quality per query; None = only averages are known

    @classmethod
    def of(
        cls, table: pl.DataFrame, among: tuple[Axis, ...], jitter_ms: float | None, paired: Paired | None
    ) -> Numbers:
        """Read them.

        Args:
            among: All axes, that of quality in its direction.
            jitter_ms: The band of all stacks; None = that of the table, or the paper's.
            paired: Quality per query, where it is known.
        """
        axis = next(axis for axis in among if axis.key == QUALITY.key)
        quality = axis.read(table)
        low, high, latency, cost = (
            floats(table, name) for name in ("quality_low", "quality_high", "latency_ms", "cost")
        )
        return cls(
            quality=quality,
            merit=axis.merit(quality),
            low=low,
            high=high,
            latency=latency,
            cost=cost,
            prompt=tuple(floats(table, name) for name in PROMPT),
            band=bands(table, jitter_ms),
            places=np.full(table.height, -1) if paired is None else paired.places(table["run_id"]),
            paired=paired,
        )


def bands(table: pl.DataFrame, jitter_ms: float | None) -> Floats:
    """Return the bands within which the latency of each stack is not told apart [n]; ms."""
    if jitter_ms is not None:
        return np.full(table.height, jitter_ms)
    known = floats(table, "jitter_ms")
    return np.where(np.isnan(known), JITTER_MS, known)


def tied(values: Numbers, rows: Rows) -> tuple[Rows, str]:
    """Order the rows that tie with the best."""
    best = int(rows[np.lexsort((values.cost[rows], values.latency[rows], -values.merit[rows]))[0]])
    # where no latency is known at all, none is asked for
    near = rows[within_jitter(values, rows, best) | np.isnan(values.latency[best])]
    alike = near[_alike(values, near, best) | (near == best)]
    ordered = preferred(values, alike)
    return ordered, _note(values, ordered, best)


def preferred(values: Numbers, rows: Rows) -> Rows:
    """Return rows that tie, in order of preference."""
    return rows[np.lexsort([key for _, key in reversed(_keys(values, rows))])]


def within_jitter(values: Numbers, rows: Rows, of: int) -> Mask:
    """Return which rows differ in latency from one by less than the noise of either."""
    gap = np.abs(values.latency[rows] - values.latency[of])
    return np.asarray((gap < np.maximum(values.band[rows], values.band[of])) | (gap == 0))


def _printed_alike(quality: Floats, interval_of_best: tuple[float, float], best: float) -> Mask:
    """Return which averages do not differ from the best.

    Within its interval, or printed alike without one [m].
    """
    low, high = interval_of_best
    if np.isnan(low) or np.isnan(high):
        return np.asarray(np.round(quality, DIGITS) == np.round(best, DIGITS))
    return np.asarray((quality >= low) & (quality <= high))


def _alike(values: Numbers, rows: Rows, best: int) -> Mask:
    """Return which rows are alike in quality with the best."""
    bounds = float(values.low[best]), float(values.high[best])
    alike = _printed_alike(values.quality[rows], bounds, float(values.quality[best]))
    places = values.places[rows]
    if values.paired is not None and values.places[best] >= 0:
        there = places >= 0
        shift = np.zeros(len(values.paired.values))
        all_rows = values.places >= 0
        moved = values.quality[all_rows] - values.paired.means[values.places[all_rows]]
        shift[values.places[all_rows]] = np.where(np.abs(moved) > 1e-9, moved, 0.0)
        alike[there] = values.paired.alike(int(values.places[best]), places[there], shift)
    return alike


def _keys(values: Numbers, rows: Rows) -> list[tuple[str, Floats]]:
    """List what is preferred among rows that tie, in words and as keys [m], less is better.

    A size of the prompt counts where it is known of all of them.
    """
    words = ("fewer tokens sent", "fewer passages sent", "fewer candidates")
    prompt = [(said, size[rows]) for said, size in zip(words, values.prompt, strict=True)]
    sent = [(said, size) for said, size in prompt[:-1] if not np.isnan(size).any()]
    return [
        *sent,
        prompt[-1],
        ("lower cost", values.cost[rows]),
        ("lower latency", values.latency[rows]),
        ("better quality", -values.merit[rows]),
    ]


def _note(values: Numbers, ordered: Rows, best: int) -> str:
    if len(ordered) < 2:
        return ""
    by = ", then ".join(_deciding(_keys(values, ordered))) or "table order"
    near = "" if np.isnan(values.latency[best]) else f"within {values.band[best]:.3g} ms and "
    return f"{len(ordered)} stacks tie with the best: {near}{_how(values, best)}. Chosen by {by}."


def _deciding(keys: list[tuple[str, Floats]]) -> Iterator[str]:
    """Yield what sets the first of ordered rows apart from the others, until it stands alone."""
    left = np.ones(len(keys[0][1]), dtype=np.bool_)
    for words, key in keys:
        level = left & ((key == key[0]) | (np.isnan(key) & np.isnan(key[0])))
        if level.sum() < left.sum():
            yield words
        left = level


def _how(values: Numbers, best: int) -> str:
    if values.paired is not None and values.places[best] >= 0:
        place = int(values.places[best])
        n = int(values.paired.common(place, np.array([place]))[0])
        if n < LEAST:
            return f"equal in quality on {n} queries, too few for a test (it takes {LEAST})"
        return "not significantly worse query by query"
    known = not np.isnan(values.low[best])
    return "within its interval" if known else "of equal quality as printed (no interval known)"
