"""Measures of answers as their scores, and which of them says how good an answer is."""

from __future__ import annotations

import re

import polars as pl

from core.answers import GRADE, IMPORTED, KEY
from core.importers.base import Import, counted, frames_of
from core.importers.read.text import shown
from core.tables import frame

VALUE = pl.Schema({"query_id": pl.String(), "signal": pl.String(), "value": pl.Float64()})
_CORRECTNESS = (
    r"answer_?correctness", r"correctness.*", r"factual_?correctness.*", r"(nv_?|answer_?)accuracy",
    r"sem_?score", r"g_?eval", r"(answer_|semantic_)similarity", r"exact_?match", r"f1", r"rouge.*",
    r"meteor", r"bleu.*",
)  # fmt: skip
"""Measures that compare an answer with a reference, the closest to correctness first."""


def grade_measure(names: list[str], wanted: str | None) -> str | None:
    """Which measure stands for how good an answer is; None if none compares it with a reference."""
    if wanted is not None:
        return wanted if wanted in names else None
    bare = {name: re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") for name in names}
    for pattern in _CORRECTNESS:
        found = next((name for name, short in bare.items() if re.fullmatch(pattern, short)), None)
        if found:
            return found
    return None


def graded_by(
    answers: pl.DataFrame,
    values: pl.DataFrame,
    run_id: str,
    where: str,
    *,
    wanted: str | None,
    judges: pl.DataFrame | None = None,
) -> Import:
    """Answers with the measures of each query as their scores.

    Args:
        answers: query_id, text, k, and what else is known of each.
        values: Columns of `VALUE`.
        wanted: The measure that the user calls the grade.
        judges: query_id, signal, judge: the model that measured, where one did.
    """
    values = values.with_columns(pl.col("signal").map_elements(lambda name: shown(name, 80), pl.String))
    known = values.filter(pl.col("value").is_finite())
    chosen = grade_measure(known["signal"].unique(maintain_order=True).to_list(), wanted)
    said = answers.filter(pl.col("text").is_not_null()).with_columns(run_id=pl.lit(run_id))
    keys = said.select(name for name in KEY if name in said.columns)
    measured = keys.join(known.drop("k", strict=False), on="query_id", maintain_order="left")
    if judges is not None:
        measured = measured.join(judges, on=["query_id", "signal"], how="left", maintain_order="left")
    signals = known.with_columns(run_id=pl.lit(run_id))
    lacking = {
        "measures without a value: missing, not 0": values.height - known.height,
        "queries without an answer": answers.height - said.height,
    }
    return Import(
        frames=frames_of(answers=said, answer_scores=scores_of(measured, chosen), signals=signals),
        notes=(_grade_note(chosen, where),) if said.height else (),
        left_out=counted(lacking, where),
    )


def scores_of(values: pl.DataFrame, chosen: str | None) -> pl.DataFrame:
    """Values (signal, value) as scores of their answers; `chosen` is the one that says how good these are."""
    share = pl.col("value").is_between(0, 1).all().over("signal")
    return values.with_columns(
        pl.col("signal").alias("scorer"),
        pl.when(share).then(pl.lit("0-1")).alias("scale"),
        pl.when(pl.col("signal") == (chosen or ""))
        .then(pl.lit(GRADE))
        .otherwise(pl.lit(IMPORTED))
        .alias("source"),
    )


def _grade_note(chosen: str | None, where: str) -> str:
    if chosen is None:
        return f"{where}: no measure compares answers with a reference, so that answers have no grade."
    return (
        f"{where}: `{chosen}` is taken as the grade of answers; --column grade=NAME of the command takes "
        "another."
    )


def means(values: pl.DataFrame, run_id: str, k: int | None) -> pl.DataFrame:
    """Means over the queries that have a value, as aggregates with their n."""
    found = (
        values.filter(pl.col("value").is_finite())
        .group_by("signal", maintain_order=True)
        .agg(pl.col("value").mean(), pl.len().alias("n"))
        .with_columns(
            pl.col("signal").map_elements(lambda name: shown(name, 80), pl.String).alias("measure"),
            run_id=pl.lit(run_id), k=pl.lit(k, pl.Int32), source=pl.lit("imported"),
        )
    )  # fmt: skip
    return frame("aggregates", found.to_dict())
