"""Sensitivity: whether the order of the stacks and the choice hold when the weights of RA-nWG change.

The paper's robustness grid (arXiv:2511.09545 §2.4, metrics.md §1): alpha {0, 0.5, 1, 2}, cap4 {0.75, 1} and
cap3 {0.20, 0.25, 0.33}. Rankings are read once; every cell scores the same grades again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from itertools import product
from string import ascii_uppercase

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.analysis.paired import LEVEL
from core.analysis.workspace.clusters import EACH, Groups
from core.analysis.workspace.scope import Quality
from core.analysis.workspace.scores import Evidence, at_cutoff, mean
from core.arrays import Floats, Ints
from core.decide.rules import Constraints, decide
from core.decide.ties import Paired
from core.metrics import Measure
from core.stats.correlation import order_agreement, top_agreement
from core.stats.intervals import Labels, Sample
from core.stats.means import mean_interval
from core.stats.significance import Setup, compare

ALPHAS, CAPS4, CAPS3 = (0.0, 0.5, 1.0, 2.0), (0.75, 1.0), (0.20, 0.25, 0.33)
KNOBS = ("alpha", "cap4", "cap3")
_ROWS = 4096  # stacks times cells resampled per batch
BEST = 12  # Stacks whose pairwise orders are followed through the grid: the best in the usual setting
SAME = 1e-9  # Scores this close are equal: sums of the same weights in another order
READINGS = {
    (False, False): "not significant",
    (True, False): "significant with the usual weights alone",
    (False, True): "significant with the other weights alone",
    (True, True): "significant both ways",
}
"""Meaning of a flip, by whether the order is significant as usual, and where it is reversed the most."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting of the weights: the exponent of rarity, the largest weights of grades 4 and 3."""

    alpha: float
    cap4: float
    cap3: float

    def __str__(self) -> str:
        return f"alpha {self.alpha:g}, cap4 {self.cap4:g}, cap3 {self.cap3:.2f}"

    def of(self, measure: Measure) -> Measure:
        """Return the measure with these weights and its other parameters."""
        rest = tuple(pair for pair in measure.params if pair[0] not in KNOBS)
        return Measure(measure.name, measure.k, (*rest, *zip(KNOBS, astuple(self), strict=True)))


CELLS = tuple(Cell(*values) for values in product(ALPHAS, CAPS4, CAPS3))  # The grid, alpha outermost


def weighed(quality: Quality) -> tuple[Measure, bool]:
    """Return the measure whose weights the grid varies, and whether it is the workspace's.

    A measure without such weights is replaced by RA-nWG at its cutoff.
    """
    measure = quality.measure
    if measure is not None and all(measure.info.param(name) for name in KNOBS):
        return measure, True
    return Measure("RA-nWG", quality.k), False


def usual(measure: Measure) -> Cell:
    """Return a measure's current setting: the defaults, unless the workspace changes them."""
    return Cell(*(float(measure.values[name]) for name in KNOBS))


@dataclass(frozen=True)
class WeightGrid:
    """Every stack in every cell."""

    measure: Measure  # the measure in its usual setting
    cells: tuple[Cell, ...]  # the settings; the usual one is among them
    start: int  # position of the usual setting
    run_ids: tuple[str, ...]  # the stacks, in the order of the arrays
    means: Floats  # [cells, stacks]; NaN = not applicable
    low: Floats  # lower end of their 95 % interval
    high: Floats  # upper end of it
    n: NDArray[np.int64]  # [stacks], queries behind the means
    ranks: NDArray[np.int64]  # [cells, stacks], 1 = best, equal scores share a rank; 0 = not scored
    taus: Floats  # [cells], Kendall's tau-b between the orders in the usual setting and in the cell
    tops: Floats  # [cells], AP-correlation of its order with the usual one, in which the best count more
    # [stacks], position of the first stack with the same score on every query (its own for most)
    twins: NDArray[np.intp]
    # positions of the `BEST` stacks of the usual setting, best first; of twins only the first
    best: NDArray[np.intp]
    best_values: Floats  # [cells, best, queries], their scores
    clusters: Labels | None = None  # [queries], equal within a group of queries; None = each alone

    @property
    def leader(self) -> str:
        """run_id of the best stack in the usual setting, or the first one if nothing is scored."""
        return self.run_ids[int(self.best[0]) if len(self.best) else 0]


def score_grid(graded: Evidence, measure: Measure, alike: Groups = EACH) -> WeightGrid:
    """Score all stacks in all cells.

    Args:
        measure: The measure in its usual setting; it has the parameters `KNOBS`.
    """
    home, clusters = usual(measure), alike.labels(graded.query_ids)
    cells = CELLS if home in CELLS else (*CELLS, home)
    as_usual = at_cutoff(graded, home.of(measure))
    scores, n = mean(as_usual)
    twins = _twins(as_usual)
    alone = np.flatnonzero((twins == np.arange(len(twins))) & ~np.isnan(scores))
    best = alone[np.argsort(-scores[alone], kind="stable")][:BEST]
    parts, kept = [], []
    step = max(1, _ROWS // max(1, len(twins)))
    for first in range(0, len(cells), step):  # in batches, as the scores of all cells could need much memory
        values = np.stack([at_cutoff(graded, cell.of(measure)) for cell in cells[first : first + step]])
        parts.append(_means(values, clusters))
        kept.append(values[:, best])
    means, low, high = (np.concatenate(part) for part in zip(*parts, strict=True))
    start = cells.index(home)
    return WeightGrid(
        measure=measure,
        cells=cells,
        start=start,
        run_ids=graded.run_ids,
        means=means,
        low=low,
        high=high,
        n=n,
        ranks=np.stack([_ranks(mean) for mean in means]),
        taus=np.array([order_agreement(means[start], mean) for mean in means]),
        tops=np.array([top_agreement(means[start], mean) for mean in means]),
        twins=twins,
        best=best,
        best_values=np.concatenate(kept),
        clusters=clusters,
    )


def _means(values: Floats, clusters: Labels | None) -> tuple[Floats, Floats, Floats]:
    """Return the mean and the ends of its interval: [cells, stacks, queries] → three [cells, stacks]."""
    shape = values.shape[:-1]
    if not values.shape[-1]:  # no query is judged
        unknown = np.full(shape, np.nan)
        return unknown, unknown, unknown
    rows = values.reshape(-1, values.shape[-1])
    means, (low, high) = Sample.means(rows).estimate(), mean_interval(rows, "shares", clusters=clusters)
    return means.reshape(shape), low.reshape(shape), high.reshape(shape)


def _twins(values: Floats) -> NDArray[np.intp]:
    """Return, per stack, the position of the first stack with the same scores.

    Depths below the cutoff often make no difference to a score.
    """
    first: dict[bytes, int] = {}
    rounded = np.round(values, 9)
    return np.array(
        [first.setdefault(row.tobytes(), place) for place, row in enumerate(rounded)], dtype=np.intp
    )


def _ranks(scores: Floats) -> Ints:
    known = ~np.isnan(scores)
    rounded = np.round(scores, 9)  # sums of the same weights in another order
    better = known.sum() - np.searchsorted(np.sort(rounded[known]), rounded, side="right")
    return np.where(known, better + 1, 0)


def choices(grid: WeightGrid, table: pl.DataFrame, constraints: Constraints) -> list[str | None]:
    """Apply the limits in each cell; the leading stacks are compared query by query.

    Args:
        grid: From `score_grid`.
        table: The stack table: cost and latency come from it, quality from the cell.
        constraints: The limits; the quality floor applies to the measure of the cell.

    Returns:
        A name per cell, or None if no stack is left.
    """
    up = grid.measure.info.higher_is_better
    if up != constraints.higher_is_better:  # another measure is varied, which the floor doesn't apply to
        constraints = replace(constraints, higher_is_better=up, min_quality=None)
    scored = pl.DataFrame({"run_id": grid.run_ids}, schema={"run_id": pl.String})
    rows = scored.join(table, on="run_id", how="left", maintain_order="left")
    chosen_in: list[str | None] = []
    known = np.flatnonzero(np.isin(grid.twins, grid.best))
    ids = [grid.run_ids[row] for row in known]
    order = np.argsort(grid.best)
    place = order[np.searchsorted(grid.best, grid.twins[known], sorter=order)]
    for means, low, high, scores in zip(grid.means, grid.low, grid.high, grid.best_values, strict=True):
        named = {"quality": means, "quality_low": low, "quality_high": high}.items()
        cell = rows.with_columns(pl.Series(name, values).fill_nan(None) for name, values in named)
        pairs = Paired(ids, scores[place], clusters=grid.clusters) if scores.size else None
        chosen = decide(cell, constraints, paired=pairs).chosen
        chosen_in.append(None if chosen is None else str(rows["name"][chosen]))
    return chosen_in


def long_table(grid: WeightGrid, names: dict[str, str], chosen: list[str | None]) -> pl.DataFrame:
    """Return all stacks in all cells: name, alpha, cap4, cap3, usual, quality, low, high, n, rank, chosen."""
    stacks, cells = len(grid.run_ids), len(grid.cells)
    said = [names[run_id] for run_id in grid.run_ids]
    knobs = {knob: np.repeat([getattr(cell, knob) for cell in grid.cells], stacks) for knob in KNOBS}
    return pl.DataFrame(
        {
            "name": said * cells,
            **knobs,
            "usual": np.repeat(np.arange(cells) == grid.start, stacks),
            "quality": grid.means.ravel(),
            "low": grid.low.ravel(),
            "high": grid.high.ravel(),
            "n": np.tile(grid.n, cells),
            "rank": grid.ranks.ravel(),
            "chosen": [name == choice for choice in chosen for name in said],
        },
        schema_overrides={"name": pl.String, "chosen": pl.Boolean},
    ).with_columns(
        pl.col("quality", "low", "high").fill_nan(None),
        pl.when(pl.col("rank") > 0).then(pl.col("rank")).alias("rank"),
    )


def stack_ranges(grid: WeightGrid, names: dict[str, str]) -> pl.DataFrame:
    """Return how far each stack moves over the grid.

    Stacks not scored in the usual setting are left out.

    Returns:
        name, quality and rank (usual), lowest, highest, best_rank, worst_rank, twin (name of the first stack
        with the same score on every query; null if it is the first itself), twins (how many more have
        that score); by rank and name.
    """
    said = [names[run_id] for run_id in grid.run_ids]
    sizes = np.bincount(grid.twins, minlength=len(said))
    own = grid.twins == np.arange(len(said))
    rows = pl.DataFrame(
        {
            "name": said,
            "quality": grid.means[grid.start],
            "rank": grid.ranks[grid.start],
            "lowest": grid.means.min(axis=0),
            "highest": grid.means.max(axis=0),
            "best_rank": grid.ranks.min(axis=0),
            "worst_rank": grid.ranks.max(axis=0),
            "twin": [None if alone else said[first] for alone, first in zip(own, grid.twins, strict=True)],
            "twins": sizes[grid.twins] - 1,
        },
        schema_overrides={"name": pl.String, "twin": pl.String},
    )
    return rows.filter(pl.col("rank") > 0).sort("rank", "name")


def grouped(ranges: pl.DataFrame) -> pl.DataFrame:
    """Return `stack_ranges` with one row per group of twins, and stack (its name, and how many equal it)."""
    equal = pl.format("{} (+{} equal)", "name", "twins")
    named = pl.when(pl.col("twins") > 0).then(equal).otherwise("name")
    return ranges.filter(pl.col("twin").is_null()).with_columns(named.alias("stack"))


def flips(grid: WeightGrid, names: dict[str, str], setup: Setup | None = None) -> pl.DataFrame:
    """Return the pairwise orders among the best stacks, and where they reverse.

    Returns:
        One row per pair whose scores differ in the usual setting: better and worse (names, as usual),
        reversal (the largest difference the other way, or null), where (its cell), p_there (adjusted
        over the reversed pairs) and reading (`READINGS`; "holds" without a flip). Flipped pairs first.
    """
    said = [names[grid.run_ids[place]] for place in grid.best]
    first, second = np.triu_indices(len(said), 1)
    gaps = grid.means[:, grid.best][:, first] - grid.means[:, grid.best][:, second]  # [cells, pairs]
    apart = np.flatnonzero(gaps[grid.start] > SAME)
    first, second, gaps = first[apart], second[apart], gaps[:, apart]
    values = grid.best_values[grid.start]
    clusters = grid.clusters if values.size else None
    values = values if values.size else np.full((1, 1), np.nan)  # which a comparison of no pairs also accepts
    as_usual = compare(Sample.means(values, clusters), second, first, setup)
    worst = gaps.argmin(axis=0) if len(apart) else np.empty(0, dtype=np.intp)
    turned = np.flatnonzero((gaps < -SAME).any(axis=0))
    there = np.full(len(apart), np.nan)
    if len(turned):
        sides = [grid.best_values[worst[turned], positions[turned]] for positions in (first, second)]
        pairs = np.arange(len(turned))
        tested = compare(Sample.means(np.concatenate(sides), clusters), pairs, pairs + len(turned), setup)
        there[turned] = tested["p_holm"].to_numpy()
    flipped, real = pl.col("flips") > 0, pl.col("p_holm", "p_there") < LEVEL
    rows = as_usual.select(
        pl.Series("better", [said[place] for place in first], dtype=pl.String),
        pl.Series("worse", [said[place] for place in second], dtype=pl.String),
        *("difference", "low", "high", "p_holm"),
        pl.Series("flips", (gaps < -SAME).sum(axis=0), dtype=pl.Int64),
        pl.Series("reversal", gaps.min(axis=0, initial=np.inf), dtype=pl.Float64),
        pl.Series("where", [str(grid.cells[cell]) for cell in worst], dtype=pl.String),
        pl.Series("p_there", there, dtype=pl.Float64).fill_nan(None),
    ).sort("flips", "difference", descending=[True, False])
    certain = rows.select(real.fill_null(value=False)).iter_rows()
    readings = pl.Series("reading", [READINGS[pair] for pair in certain], dtype=pl.String)
    return rows.with_columns(
        pl.when(flipped).then(readings).otherwise(pl.lit("holds")).alias("reading"),
        *(pl.when(flipped).then(pl.col(name)).alias(name) for name in ("reversal", "where")),
    )


def letters(chosen: Sequence[str | None], start: int) -> dict[str | None, str]:
    """Return a letter per stack that is chosen in some cell: A is the usual choice, – is none."""
    names = dict.fromkeys(name for name in [chosen[start], *chosen] if name is not None)
    return {**dict(zip(names, ascii_uppercase, strict=False)), None: "–"}
