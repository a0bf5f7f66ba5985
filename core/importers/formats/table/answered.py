"""Answers in a table: text, the number of passages they were written from, grade with its scale."""

from __future__ import annotations

import polars as pl

from core.errors import InputError
from core.importers.base import Import
from core.importers.judgements import left_out
from core.importers.read.fields import numbers
from core.importers.read.text import place, quoted
from core.tables import frame

_MOST_K = (1 << 31) - 1


def answers(rows: pl.DataFrame, name: str) -> Import:
    """Answers with their grades; without a scale it follows from the grades where that is plain."""
    column = "grade" if rows["grade"].null_count() < rows.height else "score"
    whole = numbers(rows, "k", name, whole=True)
    rows = rows.with_columns(numbers(rows, column, name).alias("grade"), whole.alias("k"))
    _refuse(rows.filter(~pl.col("k").is_between(0, _MOST_K)), name, "k", "k counts passages, from 0.")
    again = rows.filter(~pl.struct("run_id", "query_id", "k").is_first_distinct())
    if again.height:
        row = again.row(0, named=True)
        found = f"The query {quoted(row['query_id'])} has two answers at k = {row['k']}."
        raise InputError(found, where=place(name, row["line"]))
    grades = rows["grade"].drop_nulls()
    scale = _scale(grades) if rows["scale"].null_count() == rows.height else None
    kept = rows.filter(pl.col("answer").is_not_null() | pl.col("grade").is_not_null()).with_columns(
        pl.col("answer").alias("text"),
        pl.when(pl.col("grade").is_not_null())
        .then(pl.coalesce("scale", pl.lit(scale, pl.String)))
        .alias("scale"),
    )
    notes = (
        [f"{name}: `score` is taken as the grade of answers."] if column == "score" and len(grades) else []
    )
    if len(grades) and rows["scale"].null_count() == rows.height:
        said = f"taken as {scale}" if scale else "not known: add a column `scale`, such as 0-10"
        notes.append(f"{name}: the scale of the answers' grades is {said}.")
    left = left_out(rows.height - kept.height, "rows without an answer", name)
    ungraded = left_out(
        kept["grade"].null_count(), "answers without a grade (kept, but not correlated)", name
    )
    return Import(
        frames={"answers": frame("answers", kept.to_dict())} if kept.height else {},
        notes=tuple(notes),
        left_out=left + ungraded,
    )


def _scale(grades: pl.Series) -> str | None:
    """The scale that grades plainly are of."""
    if not len(grades):
        return None
    if grades.is_between(0, 1).all():
        return "0-1"
    return "1-5" if grades.is_between(1, 5).all() else None


def _refuse(bad: pl.DataFrame, name: str, column: str, found: str) -> None:
    if bad.height:
        raise InputError(found, where=place(name, bad["line"][0], column))
