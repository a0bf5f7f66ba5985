"""Section Names: how much identity each embedder carries, beside what the paper published."""

from __future__ import annotations

from typing import Any

import polars as pl

from core.diagnostics.names.ablations import ABLATIONS, BASE
from core.diagnostics.names.margins import CHANGE, DELTA, MARGINS, RATIO, Check, checks, summary
from core.paths import PUBLISHED
from core.store import Snapshot
from core.views.diagnostics.landing import diagnosed

_PAPER = PUBLISHED / "clq_diagnostics.csv"
_OF = ("embedder", "dim", "language")
ORDER = (BASE, *ABLATIONS)


def published() -> pl.DataFrame:
    """Return the paper's figures (Tables 4.1, 4.2, 10, 11): embedder, language, condition, measure, value."""
    rows = pl.read_csv(_PAPER).filter(pl.col("measure").is_in([CHANGE, *MARGINS, RATIO]))
    return rows.select(
        pl.col("model").alias("embedder"),
        pl.col("language").str.to_lowercase(),
        "condition",
        "measure",
        "value",
    )


def figures(snapshot: Snapshot) -> tuple[pl.DataFrame, list[Check]]:
    """Return the averages of every diagnosis of names in the store, and its checks."""
    rows = diagnosed(snapshot, "names")
    return summary(rows), checks(rows)


def both(found: pl.DataFrame) -> pl.DataFrame:
    """Put what was measured here and what the paper published under one another.

    Returns:
        Columns of `summary`, label and basis ("measured", "published"); sd, runs and n null where published.
    """
    here = found.with_columns(label=label(), basis=pl.lit("measured"))
    paper = published().with_columns(label="embedder", basis=pl.lit("published"))
    return pl.concat([here, paper], how="diagonal_relaxed").with_columns(
        pl.col("condition").cast(pl.Enum(ORDER))
    )


def label() -> pl.Expr:
    """Embedder with its dimension."""
    return pl.format("{} {} d", "embedder", "dim")


def wide(rows: pl.DataFrame, language: str) -> pl.DataFrame:
    """Return a row per ablation and a column per embedder with DD%, of one language."""
    some = rows.filter(measure=CHANGE, language=language).sort("condition", "basis", "label")
    return some.pivot("label", index="condition", values="value") if some.height else some


def ranking(rows: pl.DataFrame, language: str) -> pl.DataFrame:
    """Rank embedders by the margin that names carry: label, basis, margins, ratio, sd, n and two drops.

    A larger D_name tells more identity; gibberish and near misses say how much of it is the look of a name.
    """
    some = rows.filter(pl.col("language") == language)
    base = some.filter(condition=BASE).pivot("measure", index=("label", "basis"), values="value")
    if base.is_empty():
        return base
    spread = some.filter(condition=BASE, measure="d_name").select("label", "sd", "runs", "n")
    drops = some.filter(
        pl.col("measure") == CHANGE, pl.col("condition").is_in(["gibberish_name", "edit_distance_near_miss"])
    ).pivot("condition", index="label", values="value")
    return (
        base.join(spread, on="label", how="left")
        .join(drops, on="label", how="left")
        .sort("d_name", descending=True, nulls_last=True)
        .with_row_index("rank", offset=1)
    )


def deltas(rows: pl.DataFrame, language: str) -> pl.DataFrame:
    """Return every figure of one language in long form: what stands behind the chart."""
    wanted = [CHANGE, DELTA, *MARGINS, RATIO]
    some = rows.filter(pl.col("measure").is_in(wanted), pl.col("language") == language)
    return some.select("label", "basis", "condition", "measure", "value", "sd", "runs", "n").sort(
        "condition", "basis", "label", "measure"
    )


def as_json(rows: pl.DataFrame) -> dict[str, Any]:
    """Return averages, checks and the paper's figures as JSON has them.

    Args:
        rows: Figures of single runs.
    """
    return {
        "summary": summary(rows).to_dicts(),
        "checks": [each._asdict() for each in checks(rows)],
        "published": published().to_dicts(),
    }
