"""Which retrieval measure foretells the grade of the answer, and how the grades are spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from core.stats.correlation import BestAlpha, Kind, best_alpha, correlate
from core.views.measures.samples import MEASURES, Samples

ALL = "all answers"
ALPHAS = tuple(round(step / 20, 2) for step in range(21))
CURVES = ("F", "T")
SEGMENT_SIZE = 300
"""Samples that a segment of K / Np must have (Schwartz et al., §3.1)."""
LEVELS = 7
"""Distinct grades that are shown one by one; more are put into five ranges."""


_Row = tuple[str, float | None, float | None, float | None, int, int, str | None]


@dataclass(frozen=True)
class Curve:
    """The alpha curve of one measure."""

    name: str  # "F" or "T"
    best: BestAlpha  # the curve with its best alpha, in sample and cross-validated


def segments(rows: pl.DataFrame) -> dict[str, pl.Expr]:
    """The segments on offer by name: all, narrow (K < Np), wide, and one for every tag."""
    tags = rows["tags"].explode(empty_as_null=True).drop_nulls().unique().sort()
    return {
        ALL: pl.lit(True),
        "narrow (K < Np)": pl.col("width") == "narrow",
        "wide (K ≥ Np)": pl.col("width") == "wide",
        **{str(tag): pl.col("tags").list.contains(tag).fill_null(False) for tag in tags},
    }


def correlations(found: Samples, kind: Kind, keep: pl.Expr, tuned: Sequence[Curve] = ()) -> pl.DataFrame:
    """The coefficient of every measure with the answer's grade.

    Args:
        found: The samples.
        kind: Which coefficient.
        keep: The segment.
        tuned: Measures whose alpha was chosen; each is a row beside the one with alpha = 0.5, by its
            coefficient on queries that the choice did not see.

    Returns:
        measure, value, low, high (95 %, over queries), n (answers), queries, note; the best first.
    """
    rows = found.rows.filter(keep)
    made = []
    for name in MEASURES:
        values = rows[name].to_numpy()
        each = correlate(values, rows["grade"].to_numpy(), rows["query_id"].to_numpy(), kind=kind)
        queries = rows.filter(pl.col(name).is_not_null())["query_id"].n_unique()
        made.append((name, each.value, each.low, each.high, each.n, queries, each.reason or None))
    made += [_tuned_row(curve, rows) for curve in tuned]
    columns = {
        "measure": pl.String, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "n": pl.Int64,
        "queries": pl.Int64, "note": pl.String,
    }  # fmt: skip
    return pl.DataFrame(made, schema=columns, orient="row").sort("value", descending=True, nulls_last=True)


def _tuned_row(curve: Curve, rows: pl.DataFrame) -> _Row:
    """Return the row of a measure whose alpha was chosen."""
    best, known = curve.best, rows.filter(pl.col(curve.name).is_not_null())
    note = None
    if best.best is not None and best.in_sample is not None:
        note = f"alpha = {best.best:g}; across folds, {best.in_sample:.3f} on the same answers (optimistic)"
    name = f"{curve.name}, alpha chosen"
    return name, best.cross_validated, None, None, known.height, known["query_id"].n_unique(), note


def curves(found: Samples, kind: Kind, keep: pl.Expr) -> list[Curve]:
    """How the coefficients of F and T depend on alpha."""
    kept = found.rows.select("k", keep.alias("kept"))["kept"].to_numpy()
    rows = found.rows.filter(kept)
    return [
        Curve(
            name,
            best_alpha(
                found.curve(name, ALPHAS)[:, kept],
                ALPHAS,
                rows["grade"].to_numpy(),
                rows["query_id"].to_numpy(),
                kind=kind,
            ),
        )
        for name in CURVES
    ]


def differences(
    found: Samples, kind: Kind, keep: pl.Expr, measures: tuple[str, str], least: int
) -> pl.DataFrame:
    """A measure's coefficient minus that of another, by run and K / Np.

    Args:
        found: The samples.
        kind: Which coefficient.
        keep: The segment.
        measures: Two of `MEASURES`: the measure and its reference.
        least: Answers that a cell needs.

    Returns:
        name, ratio, n, value, reference, difference (null where one of the two is not defined), sorted.
    """
    known = pl.all_horizontal(pl.col("ratio", *set(measures)).is_not_null())
    made = []
    for (name, ratio), rows in found.rows.filter(keep & known).group_by("name", "ratio"):
        if rows.height >= least:
            grade = rows["grade"].to_numpy()
            value, reference = (
                correlate(rows[column].to_numpy(), grade, kind=kind, resamples=0).value for column in measures
            )
            made.append((name, ratio, rows.height, value, reference))
    columns = {"name": pl.String, "ratio": pl.Float64, "n": pl.Int64, "value": pl.Float64}
    return (
        pl.DataFrame(made, schema={**columns, "reference": pl.Float64}, orient="row")
        .with_columns((pl.col("value") - pl.col("reference")).alias("difference"))
        .sort("name", "ratio")
    )


def curve_table(found: Sequence[Curve]) -> pl.DataFrame:
    """The curves as a table: alpha and a column per measure, null where it is not defined."""
    columns = {"alpha": ALPHAS} | {curve.name: curve.best.values for curve in found}
    return pl.DataFrame(columns).fill_nan(None)


def distribution(found: Samples, keep: pl.Expr, least: int) -> pl.DataFrame:
    """How the grades of the answers are spread, by run and K / Np (Schwartz et al., Figures 2 to 4).

    Args:
        found: The samples.
        keep: The segment.
        least: Answers that a run needs at a K / Np.

    Returns:
        name, ratio, grade (a level in words), place (of the level, lowest first), n and share of the answers
        of the run at that ratio; sorted.
    """
    rows = found.rows.filter(keep & pl.col("ratio").is_not_null())
    place, words = _levels(rows["grade"].to_numpy())
    return (
        rows.with_columns(pl.Series("place", place, dtype=pl.Int64))
        .group_by("name", "ratio", "place")
        .agg(pl.len().alias("n"))
        .with_columns((pl.col("n") / pl.col("n").sum().over("name", "ratio")).alias("share"))
        .filter(pl.col("n").sum().over("name", "ratio") >= least)
        .with_columns(
            pl.col("place").replace_strict(dict(enumerate(words)), return_dtype=pl.String).alias("grade")
        )
        .select("name", "ratio", "grade", "place", "n", "share")
        .sort("name", "ratio", "place")
    )


def _levels(grades: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[np.ndarray, list[str]]:
    """Return the level of every grade, and the levels in words: its values, or five ranges of many."""
    values = np.unique(grades)
    if len(values) <= LEVELS:
        return np.searchsorted(values, grades), [f"{value:g}" for value in values]
    edges = np.linspace(values[0], values[-1], 6)
    words = [f"{low:.3g} to {high:.3g}" for low, high in pairwise(edges)]
    return np.clip(np.searchsorted(edges, grades, side="right") - 1, 0, 4), words
