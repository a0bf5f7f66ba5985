"""Sensitivity, the conclusions: which pairwise orders turn round in the grid, and whether that is chance."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import polars as pl

from core.stats.significance import Sample, Setup, compare
from core.views import text
from core.views.compare.page import LEVEL
from core.views.confidence.sensitivity import SAME, Grid
from core.views.workspace.scores import Floats

READINGS = {
    (False, False): "within chance either way",
    (True, False): "real as usual, not told apart there",
    (False, True): "not told apart as usual, real there",
    (True, True): "depends on the weights",
}
"""What a flip means: whether the order is more than chance (as usual, where it is reversed the most)."""


def flips(grid: Grid, names: dict[str, str], setup: Setup | None = None) -> pl.DataFrame:
    """The pairwise orders among the best stacks, and where they turn round.

    Args:
        grid: From `score_grid`.
        names: run_id to name.
        setup: How to test.

    Returns:
        One row per pair whose scores differ in the usual setting: better and worse (names, as usual),
        difference with low and high, p_holm (family: all pairs), flips (cells where the order is reversed),
        reversal (the largest difference the other way, or null), where (the cell of it), p_there (adjusted
        over the reversed pairs) and reading (`READINGS`; "holds" without a flip). Flipped pairs first.
    """
    said = [names[grid.run_ids[place]] for place in grid.best]
    first, second = np.triu_indices(len(said), 1)
    gaps = grid.means[:, grid.best][:, first] - grid.means[:, grid.best][:, second]  # [cells, pairs]
    apart = np.flatnonzero(gaps[grid.start] > SAME)
    first, second, gaps = first[apart], second[apart], gaps[:, apart]
    as_usual = compare(Sample.means(_or_one(grid.best_values[grid.start])), second, first, setup)
    worst = gaps.argmin(axis=0) if len(apart) else np.empty(0, dtype=np.intp)
    turned = np.flatnonzero((gaps < -SAME).any(axis=0))
    there = np.full(len(apart), np.nan)
    if len(turned):
        sides = [grid.best_values[worst[turned], each[turned]] for each in (first, second)]
        pairs = np.arange(len(turned))
        tested = compare(Sample.means(np.concatenate(sides)), pairs, pairs + len(turned), setup)
        there[turned] = tested["p_holm"].to_numpy()
    made = as_usual.select("difference", "low", "high", "p_holm").with_columns(
        pl.Series("better", [said[place] for place in first], dtype=pl.String),
        pl.Series("worse", [said[place] for place in second], dtype=pl.String),
        pl.Series("flips", (gaps < -SAME).sum(axis=0), dtype=pl.Int64),
        pl.Series("reversal", gaps.min(axis=0, initial=np.inf), dtype=pl.Float64),
        pl.Series("where", [str(grid.cells[cell]) for cell in worst], dtype=pl.String),
        pl.Series("p_there", there, dtype=pl.Float64).fill_nan(None),
    )
    return _read(made)


def _or_one(values: Floats) -> Floats:
    """A table that a comparison of no pairs accepts too."""
    return values if values.size else np.full((1, 1), np.nan)


def _read(rows: pl.DataFrame) -> pl.DataFrame:
    flipped = pl.col("flips") > 0
    usual_real = (pl.col("p_holm") < LEVEL).fill_null(value=False)
    there_real = (pl.col("p_there") < LEVEL).fill_null(value=False)
    reading = pl.lit("holds")
    for (one, other), words in READINGS.items():
        match = flipped & (usual_real == one) & (there_real == other)
        reading = pl.when(match).then(pl.lit(words)).otherwise(reading)
    order = (
        "better",
        "worse",
        "difference",
        "low",
        "high",
        "p_holm",
        "flips",
        "reversal",
        "where",
        "p_there",
    )
    return (
        rows.select(order)
        .with_columns(
            reading.alias("reading"),
            *(pl.when(flipped).then(pl.col(name)).alias(name) for name in ("reversal", "where")),
        )
        .sort("flips", "difference", descending=[True, False])
    )


@dataclass(frozen=True)
class Answer:
    """The head of the page.

    Attributes:
        sentence: Whether the choice and the order hold.
        details: Which pairwise orders turn round, and what the grid is.
    """

    sentence: str
    details: str


def answer(grid: Grid, chosen: list[str | None], turned: pl.DataFrame) -> Answer:
    """Say whether the conclusions hold.

    Args:
        grid: From `score_grid`.
        chosen: From `choices`.
        turned: From `flips`.
    """
    n = int(grid.n.max(initial=0))
    if not n:
        return Answer(f"{grid.measure} applies to no query of these stacks.", "Choose another cutoff.")
    ours, cells = chosen[grid.start], len(grid.cells)
    others = Counter(name for name in chosen if name != ours)
    sample = f"{grid.measure}, n = {n}"
    if ours is None:
        head = f"No stack is within the limits as usual ({sample})"
    elif not others:
        head = f"{ours} stays the choice in all {cells} settings of alpha, cap4 and cap3 ({sample})"
    else:
        rest = ", ".join(f"{name or 'no stack'} in {times}" for name, times in others.most_common(3))
        head = f"{ours} is the choice in {cells - others.total()} of {cells} settings, {rest} ({sample})"
    return Answer(f"{head}{_order(grid)}.", _turned(grid, turned))


def _order(grid: Grid) -> str:
    taus = grid.taus[~np.isnan(grid.taus)]
    if not len(taus):
        return ""
    stacks = int((grid.ranks[grid.start] > 0).sum())
    least = f"a Kendall tau-b of at least {taus.min():.2f}"
    return f"; the order of all {stacks} stacks agrees with the usual one to {least}"


def _turned(grid: Grid, turned: pl.DataFrame) -> str:
    pairs, flipped = turned.height, turned.filter(pl.col("flips") > 0)
    of = text.count(pairs, "pairwise order")
    turn = "turns" if flipped.height < 2 else "turn"
    best = f"the {len(grid.best)} best stacks of different scores"
    head = f"Among {best} {flipped.height or 'none'} of {of} {turn}"
    if flipped.is_empty():
        return f"{head} round anywhere in the grid. {_WHAT}"
    counts = flipped["reading"].value_counts(sort=True)
    said = "; ".join(f"{times} {words}" for words, times in counts.iter_rows())
    return f"{head} round somewhere in the grid: {said}. {_WHAT}"


_WHAT = (
    "Every cell scores the same rankings again; “real” as on the Compare page: Holm-adjusted p of a paired "
    f"randomisation test below {LEVEL}."
)
