"""Stacks that tie with the best, and which of them is preferred (metrics.md §9).

A stack ties only if it is surely no more than the indifference zone δ worse: the upper end of the
one-sided 95 % interval of the paired difference (Student's t over queries) is at most δ, and it is not slower
than the best by more than the jitter band. A difference that is merely not significant is never a tie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import polars as pl

from core.arrays import Floats, Mask, Rows
from core.decide.axes import Axis, floats
from core.stats.intervals import CLUSTERS, SEED, Labels, Sample, paired_rows
from core.stats.latency import TOTAL
from core.stats.significance import Setup, bounds, compare, student_ends
from core.tables import remembered

LEVEL = 0.95
DIGITS = 3  # Decimals of printed qualities: averages that print the same count as equal
CHEAPER = 0.01  # Share of a cost within which another one counts as equal
ROUNDING = 1e-9  # Differences below it come from the order of summation
_PLACED = 4
JITTER_MS = 75.0  # Differences below this are noise if nothing else is known (CLQ paper §3.2.2)
SHARE = 0.95  # Percentile of the differences between passes that serves as jitter
PROMPT = ("tokens_sent", "passages_sent")
"""Columns with the size of a prompt, the most telling first."""


@dataclass(frozen=True, eq=False)
class Paired:
    """The quality of stacks, query by query."""

    run_ids: Sequence[str]  # [S], the stacks
    values: Floats  # [S, Q]; NaN = not applicable. A stack without any value is unknown.
    seed: int = SEED  # seed of the resampling
    clusters: Labels | None = None  # [Q], a number per query, equal within a group; None = independent
    _placed: list[tuple[pl.Series, Rows]] = field(default_factory=list, init=False, repr=False)

    def places(self, run_ids: pl.Series) -> Rows:
        """Return the positions of stacks here [n]; −1 = they have no values.

        The last few results are cached and read-only: a page asks for all stacks and for those of its table.
        """
        for asked, places in self._placed:
            if asked.equals(run_ids):
                return places
        places = self._looked_up(run_ids)
        places.flags.writeable = False
        self._placed[:] = [(run_ids, places), *self._placed[: _PLACED - 1]]
        return places

    def _looked_up(self, run_ids: pl.Series) -> Rows:
        names = pl.Series(list(self.run_ids), dtype=pl.String)
        rows = run_ids.replace_strict(
            names, pl.int_range(len(names), eager=True), default=-1, return_dtype=pl.Int64
        )
        places = rows.to_numpy().astype(np.intp)
        empty = ~np.asarray(self._applies.any(axis=1))
        return np.where((places >= 0) & empty[places], -1, places)

    def ends(
        self, best: int, rows: Rows, shift: Floats, *, sign: float, tail: float
    ) -> tuple[Floats, Floats]:
        """Return the least and the greatest amount by which one stack is better than others [m].

        Args:
            best: Its position.
            rows: [m], the positions of the others.
            shift: [S], assumed shift of each stack's mean from that of its values.
            sign: −1 if lower values are better.
            tail: The chance beyond either end.

        Returns:
            The ends of Student's interval of the paired difference over the queries that both have, or their
            clusters; infinite on fewer than `CLUSTERS` of these, unless both have the same value on each.
        """
        gaps = sign * (self.values[best] - self.values[rows])
        moved = sign * (shift[best] - shift[rows])
        equal = self.equal(best, rows) & (np.abs(moved) <= ROUNDING)
        few = Sample.means(gaps, self.clusters).units < CLUSTERS
        low, high = (end + moved for end in student_ends(gaps, tail, self.clusters))
        return (
            np.where(equal, 0.0, np.where(few, -np.inf, low)),
            np.where(equal, 0.0, np.where(few, np.inf, high)),
        )

    def equal(self, best: int, rows: Rows) -> Mask:
        """Return which stacks have the same values as the given one, query by query [m]."""
        there = self._applies[rows] == self._applies[best]
        gap = np.abs(np.nan_to_num(self.values[rows]) - np.nan_to_num(self.values[best]))
        return np.asarray((there & (gap <= ROUNDING)).all(axis=1))

    def differences(self, rows: Rows, best: int) -> tuple[Floats, Floats, Floats]:
        """Average the differences of stacks from another, with 95 % intervals [m], on the queries of both."""
        one, other = paired_rows(self._sample, np.full(len(rows), best), rows)
        low, high = bounds(one, other, Setup(level=LEVEL, seed=self.seed))
        return other.estimate() - one.estimate(), low, high

    def compared(self, first: int, second: int) -> pl.DataFrame:
        """Compare two stacks, the first with the second: a row of `core.stats.significance.compare`."""
        return compare(self._sample, [second], [first], Setup(level=LEVEL, seed=self.seed))

    def common(self, best: int, rows: Rows) -> Rows:
        """Return how many queries each of some stacks has in common with another [m]."""
        return np.asarray((self._applies[rows] & self._applies[best]).sum(axis=1))

    @cached_property
    def _applies(self) -> Mask:
        return np.asarray(~np.isnan(self.values))

    @cached_property
    def means(self) -> Floats:
        """The mean of every stack [S]; NaN if it has no values."""
        return self._sample.estimate()

    @cached_property
    def _sample(self) -> Sample:
        return Sample.means(self.values, self.clusters)

    @property
    def units(self) -> int:
        """How many queries have a value for any stack, or how many clusters of them."""
        return units_of(np.asarray(self._applies.any(axis=0)), self.clusters)


def units_of(counted: Mask, clusters: Labels | None) -> int:
    """Return how many queries count [Q], or how many clusters they form."""
    return int(counted.sum()) if clusters is None else len(np.unique(clusters[counted]))


def pass_differences(timings: pl.DataFrame, percentile: str = "p50") -> pl.DataFrame:
    """Return the difference between the medians of two passes of a stack, for every pair.

    Args:
        timings: run_id, stage, query_id, repeat, ms, as returned by `latency.per_repeat`; only the
            totals are used. A query that a pass of its run lacks does not count.
        percentile: What is compared instead of the median: p95, p99 or mean.

    Returns:
        run_id, ms: the absolute difference over queries, a row per pair of passes of a run; none
        for a run with one pass.
    """
    totals = timings.filter(pl.col("stage") == TOTAL)
    passes = totals.group_by("run_id").agg(pl.col("repeat").n_unique().alias("passes"))
    whole = totals.join(passes, on="run_id").filter(
        pl.col("repeat").n_unique().over("run_id", "query_id") == pl.col("passes")
    )
    ms = pl.col("ms")
    middle = ms.mean() if percentile == "mean" else ms.quantile(float(percentile[1:]) / 100, "linear")
    medians = whole.group_by("run_id", "repeat").agg(middle)
    return (
        medians.join(medians, on="run_id", suffix="_other")
        .filter(pl.col("repeat") < pl.col("repeat_other"))
        .select("run_id", (pl.col("ms") - pl.col("ms_other")).abs())
    )


def jitter(differences: pl.Series) -> float | None:
    """Return the 95th percentile of differences between passes; ms. None if there are none."""
    return differences.quantile(SHARE, interpolation="linear")


@dataclass(frozen=True, slots=True)
class Numbers:
    """The columns of a stack table as arrays [n]; NaN = unknown. Merit is quality with more being better."""

    quality: Floats
    merit: Floats
    sign: float  # sign of the merit relative to the quality: 1, or −1 if lower is better
    latency: Floats
    cost: Floats
    prompt: tuple[Floats, ...]
    names: Sequence[str]
    band: Floats  # band within which a latency counts as equal; ms
    alike: Floats  # share of a cost within which another one counts as equal
    delta: float  # difference in quality that does not matter, 0 or more
    answered: bool  # whether the cost includes the generator, which reads the prompt
    places: Rows  # positions of the stacks in `paired`; −1 = not there
    paired: Paired | None  # quality per query; None = only averages are known

    @classmethod
    def of(
        cls,
        table: pl.DataFrame,
        axis: Axis,
        jitter_ms: float | None = None,
        paired: Paired | None = None,
        *,
        delta: float = 0.0,
    ) -> Numbers:
        """Read the columns of a stack table.

        Args:
            axis: The quality axis, in its direction.
            jitter_ms: The band of all stacks; None = the table's, or the paper's.
            paired: Quality per query, if known.
            delta: The indifference zone.
        """
        return _numbers(table, axis, jitter_ms, paired, delta)

    def singly(self, rows: Rows) -> Mask:
        """Return which rows have a quality per query [m]."""
        return np.asarray(self.places[rows] >= 0)

    @property
    def shift(self) -> Floats:
        """The difference of each stack's quality from the mean of its values in `paired` [S]."""
        if self.paired is None:
            return np.zeros(0)
        shift, there = np.zeros(len(self.paired.values)), self.places >= 0
        moved = self.quality[there] - self.paired.means[self.places[there]]
        shift[self.places[there]] = np.where(np.abs(moved) > ROUNDING, moved, 0.0)
        return shift

    def better_by(self, best: int, rows: Rows, tail: float) -> tuple[Floats, Floats]:
        """Return the least and the greatest lead of a row over others [m]; see `Paired.ends`."""
        if self.paired is None:
            return np.full(len(rows), -np.inf), np.full(len(rows), np.inf)
        places = self.places[rows]
        return self.paired.ends(int(self.places[best]), places, self.shift, sign=self.sign, tail=tail)


@remembered
def _numbers(
    table: pl.DataFrame, axis: Axis, jitter_ms: float | None, paired: Paired | None, delta: float
) -> Numbers:
    quality = axis.read(table)
    latency, cost = (floats(table, name) for name in ("latency_ms", "cost"))
    per = table["cost_per"].first() if "cost_per" in table.columns and table.height else None
    return Numbers(
        quality=quality,
        merit=axis.merit(quality),
        sign=1.0 if axis.higher_is_better else -1.0,
        latency=latency,
        cost=cost,
        prompt=tuple(floats(table, name) for name in PROMPT),
        names=table["name" if "name" in table.columns else "run_id"].to_list(),
        band=bands(table, jitter_ms),
        alike=costs_alike(table),
        delta=delta,
        answered=per not in (None, "query"),
        places=np.full(table.height, -1) if paired is None else paired.places(table["run_id"]),
        paired=paired,
    )


def bands(table: pl.DataFrame, jitter_ms: float | None) -> Floats:
    """Return the band within which each stack's latency counts as equal [n]; ms."""
    if jitter_ms is not None:
        return np.full(table.height, jitter_ms)
    known = floats(table, "jitter_ms")
    return np.where(np.isnan(known), JITTER_MS, known)


def costs_alike(table: pl.DataFrame) -> Floats:
    """Return the share within which each stack's cost counts as equal [n]: 1 %, more for timed ones."""
    return np.fmax(CHEAPER, floats(table, "cost_noise"))


def highest(values: Numbers, rows: Rows) -> int:
    """Return the row of the best estimate; among equal ones the cheapest, then the fastest, then by name."""
    top = rows[values.merit[rows] >= np.nanmax(values.merit[rows]) - ROUNDING]
    return int(ordered(values, top)[0])


def same_results(values: Numbers, row: int, rows: Rows) -> Mask:
    """Return which rows have the same results as a given one, query by query [m]; averages never do."""
    same = np.asarray(rows == row)
    singly = values.singly(rows)
    if values.paired is None or values.places[row] < 0 or not singly.any():
        return same
    of = rows[singly]
    equal = values.paired.equal(int(values.places[row]), values.places[of])
    same[singly] |= equal & (np.abs(values.merit[of] - values.merit[row]) <= ROUNDING)
    return same


def lightest(values: Numbers, row: int, rows: Rows) -> int:
    """Return the preferred row with the same results as a given one: the cheapest, then the fastest."""
    same = rows[same_results(values, row, rows)]
    return int(ordered(values, same)[0]) if len(same) else row


def best_within(values: Numbers, rows: Rows, rule: str) -> Rows:
    """Return the row that rule "cost" or "latency" takes from some rows [1].

    For "cost" it is the best of those within 1 % of the cheapest, then the fastest; for "latency" the best of
    those within the jitter band of the fastest, then the cheapest; then by name.
    """
    paid: tuple[Callable[[Rows], Mask], ...] = (
        partial(_least, values.cost),
        lambda rows: _fastest(values, rows),
    )
    first, then = paid if rule == "cost" else reversed(paid)
    keeping: tuple[Callable[[Rows], Mask], ...] = (
        first,
        partial(_best, values.merit),
        then,
        partial(_by_name, values.names),
    )
    for keep in keeping:
        rows = rows[keep(rows)]
    return rows


def tied(values: Numbers, rows: Rows) -> tuple[Rows, str]:
    """Return the rows that tie with the best estimate, the preferred first, and how the tie was broken.

    Args:
        rows: [m], the feasible ones, at least one.
    """
    best = highest(values, rows)
    alike = rows[_alike(values, rows, best) & not_slower(values, rows, best) | (rows == best)]
    preferred = ordered(values, alike)
    return preferred, _note(values, preferred)


def not_slower(values: Numbers, rows: Rows, than: int) -> Mask:
    """Return which rows are not slower than a given one by more than the noise of either [m].

    If one latency is unknown, the answer is no; if both are, it is yes.
    """
    late = values.latency[rows] - values.latency[than]
    both_unknown = np.isnan(values.latency[rows]) & np.isnan(values.latency[than])
    return np.asarray((late <= np.maximum(values.band[rows], values.band[than]) + ROUNDING) | both_unknown)


def _alike(values: Numbers, rows: Rows, best: int) -> Mask:
    """Return the rows surely no more than δ worse than the best; averages tie if they print the same."""
    quality = values.quality
    alike = np.asarray(np.round(quality[rows], DIGITS) == np.round(quality[best], DIGITS))
    singly = values.singly(rows)
    if values.paired is None or values.places[best] < 0:
        return alike
    near = singly & (values.merit[best] - values.merit[rows] <= values.delta + ROUNDING)
    alike[singly] = False
    alike[near] = values.better_by(best, rows[near], 1 - LEVEL)[1] <= values.delta + ROUNDING
    return alike


def ordered(values: Numbers, rows: Rows) -> Rows:
    """Return rows with the preferred one first, the others by quality, the best first."""
    first = rows
    for _, keep in _steps(values):
        if len(first) > 1:
            first = first[keep(first)]
    others = rows[rows != first[0]]
    return np.concatenate([first[:1], others[np.argsort(-values.merit[others], kind="stable")]])


def _steps(values: Numbers) -> list[tuple[str, Callable[[Rows], Mask]]]:
    """List the preferences among tied rows, in words, each with its filter.

    A smaller prompt never makes up for a dearer stack, unless the cost includes the generator that reads it.
    """
    prompt: tuple[str, Callable[[Rows], Mask]] = ("a smaller prompt", partial(_smallest, values.prompt))
    cost: tuple[str, Callable[[Rows], Mask]] = ("lower cost", partial(_least, values.cost))
    return [
        *((prompt, cost) if values.answered else (cost, prompt)),
        ("lower latency", lambda rows: _fastest(values, rows)),
        ("better quality", partial(_best, values.merit)),
        ("name", partial(_by_name, values.names)),
    ]


def _best(merit: Floats, rows: Rows) -> Mask:
    return np.asarray(merit[rows] >= np.max(merit[rows]) - ROUNDING)


def _by_name(names: Sequence[str], rows: Rows) -> Mask:
    return np.asarray(np.arange(len(rows)) == min(range(len(rows)), key=lambda at: names[int(rows[at])]))


def _smallest(sizes: Sequence[Floats], rows: Rows) -> Mask:
    """Keep the rows with the least value of the first size known for all rows; all rows if there is none."""
    known = next((size[rows] for size in sizes if not np.isnan(size[rows]).any()), np.zeros(len(rows)))
    return np.asarray(known <= known.min())


def _least(costs: Floats, rows: Rows) -> Mask:
    """Keep rows that cost at most 1 % more than the cheapest; drop unknown costs if one is known."""
    cost = costs[rows]
    if np.isnan(cost).all():
        return np.ones(len(rows), dtype=np.bool_)
    return np.asarray(cost <= np.nanmin(cost) * (1 + CHEAPER))


def _fastest(values: Numbers, rows: Rows) -> Mask:
    """Keep rows as fast as the fastest within the band of either; all if nothing was timed."""
    latency = values.latency[rows]
    if np.isnan(latency).all():
        return np.ones(len(rows), dtype=np.bool_)
    return not_slower(values, rows, int(rows[np.nanargmin(latency)]))


def _note(values: Numbers, preferred: Rows) -> str:
    if len(preferred) < 2:
        return ""
    by = ", then ".join(_deciding(values, preferred)) or "table order"
    singly = values.singly(preferred).all()
    how = (
        f"surely within {values.delta:.3g} of the highest estimate"
        if singly
        else "that averages show as equal"
    )
    return f"{len(preferred)} stacks tie: {how}. Chosen by {by}."


def _deciding(values: Numbers, preferred: Rows) -> Iterator[str]:
    """Yield the criteria that set the first row apart from the others, until it was the only one."""
    left = preferred
    for words, keep in _steps(values):
        kept = left[keep(left)]
        if len(kept) < len(left):
            yield words
        left = kept
