"""Tables of results, one row per stack, and of queries: answers, latency and usage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from core.answers import GRADE, KEY, MODES
from core.errors import InputError
from core.importers.base import Import, LeftOut, Options, counted, frames_of, merged
from core.importers.meaning import UNKNOWN, Meaning
from core.importers.naming import USD_PER_1K, WHOLE_AXES, Value, is_share
from core.importers.read.piece import Piece
from core.importers.read.rows import again, numbers, refuse
from core.importers.read.tabular import Table
from core.importers.read.text import place, quoted, shown
from core.importers.runs import imported_run, run_labels
from core.importers.samples import UNNAMED
from core.records import Basis, Run
from core.stats.latency import FIRST_TOKEN, GENERATE
from core.tables import TABLES

_LEAST_PERCENT = 5  # Numbers up to it may be of a scale such as 1 to 5

_MOST_K = (1 << 31) - 1
_MOST_PASSES = (1 << 15) - 1
ANSWER_ROLES = ("answer", "k", "grade", "score", "scale", "judge", "reader", "prompt", "temperature",
                "answer_mode", "pass")  # fmt: skip

_QUERY = ["run_id", "query_id"]


def stack_results(piece: Piece, table: Table, means: Meaning, options: Options) -> Import:
    """Make a run with aggregates of every row."""
    stacks = _stacks(table, means)
    labels = run_labels(
        [(name, f"{piece.stem} row {index}") for index, (name, _) in enumerate(stacks, 1)], options
    )
    runs = [
        imported_run(
            options, label, piece.digest, importer="table", decided={"row": index}, spec=spec or None
        )
        for index, (label, (_, spec)) in enumerate(zip(labels, stacks, strict=True), 1)
    ]
    rows, left = _values(table, means, runs)
    ids = pl.Series("run_id", [run.run_id for run in runs])
    keys = pl.DataFrame([ids, table.lines.alias("line")]).with_columns(query_id=pl.lit(None, pl.String))
    notes = [f"{table.name}: {said}" for value in means.aggregates for said in _said(value)]
    frames = frames_of(aggregates=rows)
    figures = Import(runs=tuple(runs), frames=frames, left_out=tuple(left), notes=tuple(notes))
    return merged((figures, usage(table, means, keys, per_row=True)))


def suited(means: Meaning, table: Table) -> Meaning:
    """Look at the cells where names of columns leave something open: percent, and what names the stacks."""
    if means.kind != "aggregates":
        return means
    if "run" not in means.roles and not means.axes and (name := _first_words(means, table)):
        means.roles["run"] = name
        del means.ignored[name]
    for place_, value in enumerate(means.aggregates):
        if value.k and value.factor == 1.0 and _is_percent(table, value):
            means.aggregates[place_] = replace(value, factor=0.01)
    return means


def _first_words(means: Meaning, table: Table) -> str | None:
    """The first column without a meaning that holds a word in every row."""
    for column in (column for column, why in means.ignored.items() if why == UNKNOWN):
        cells = table.taking({"cell": column})["cell"]
        if not cells.null_count() and cells.cast(pl.Float64, strict=False).is_null().all():
            return column
    return None


def _is_percent(table: Table, value: Value) -> bool:
    """Whether numbers that are shares by their measure are plainly of a hundred."""
    cells = table.taking({"cell": value.column})["cell"].cast(pl.Float64, strict=False).drop_nulls()
    return is_share(value) and bool(cells.is_between(0, 100).all() and (cells > _LEAST_PERCENT).any())


def _said(value: Value) -> Iterator[str]:
    """What was assumed of a column and converted."""
    name = f"`{shown(value.column)}`"
    if value.assumed:
        yield f"{name} {value.assumed}."
    if value.factor == 1.0:
        return
    if value.measure.startswith("latency_"):
        yield f"{name} converted from seconds to milliseconds."
    elif value.measure == USD_PER_1K:
        yield f"{name} converted to dollars per 1,000 queries."
    else:
        yield f"{name} is taken as percent: divided by 100."


def _stacks(table: Table, means: Meaning) -> list[tuple[str, dict[str, Any]]]:
    """For every row the name it carries and the axes it sets."""
    if "run" not in means.roles and not means.axes:
        raise InputError(
            "No column names the stacks.", where=table.name, do="Add a column `stack`, or map one to run."
        )
    chosen = dict(means.axes)
    if "run" in means.roles:
        chosen["run"] = means.roles["run"]
    rows = table.taking(chosen)
    for axis in WHOLE_AXES & chosen.keys():
        rows = rows.with_columns(numbers(rows, axis, table.name, whole=True).alias(axis))
    made: list[tuple[str, dict[str, Any]]] = []
    seen: set[str] = set()
    for row in rows.iter_rows(named=True):
        name = row.get("run") or ""
        spec = {axis: row[axis] for axis in means.axes if row[axis] is not None}
        key = repr((name, spec))
        if not name and not spec:
            raise InputError("The row names no stack.", where=place(table.name, row["line"]))
        if key in seen:
            raise InputError(
                f"The stack {quoted(name or spec)} occurs twice.", where=place(table.name, row["line"])
            )
        seen.add(key)
        made.append((name or ", ".join(f"{axis} {value}" for axis, value in spec.items()), spec))
    return made


def _values(table: Table, means: Meaning, runs: list[Run]) -> tuple[pl.DataFrame, list[LeftOut]]:
    parts: list[pl.DataFrame] = []
    left: list[LeftOut] = []
    counts = None
    if "n" in means.roles:
        counts = numbers(table.taking({"n": means.roles["n"]}), "n", table.name, whole=True)
    for value in means.aggregates:
        cells = table.taking({value.column: value.column})
        given = pl.DataFrame(
            {
                "run_id": [run.run_id for run in runs],
                "value": numbers(cells, value.column, table.name) * value.factor,
                "n": counts if counts is not None else pl.Series([None] * len(runs), dtype=pl.Int64),
            }
        )
        filled = given.filter(pl.col("value").is_not_null())
        why = f"empty cells of `{shown(value.column)}`: missing, not 0"
        left += counted({why: given.height - filled.height}, table.name)
        parts.append(
            filled.with_columns(
                pl.lit(value.measure).alias("measure"),
                pl.lit(value.k, pl.Int32).alias("k"),
                pl.lit(value.stage, pl.String).alias("stage"),
                pl.lit("imported").alias("source"),
            )
        )
    return pl.concat(parts), left


def answers(rows: pl.DataFrame, name: str) -> Import:
    """Answers with their grades; without a scale it follows from the grades where that is plain.

    The rows have the columns of `ANSWER_ROLES`, run_id, and of the answer what else is known.
    """
    rows = _named(rows, name)
    column = "grade" if rows["grade"].null_count() < rows.height else "score"
    whole = numbers(rows, "k", name, whole=True)
    rows = rows.with_columns(numbers(rows, column, name).alias("grade"), whole.alias("k"))
    refuse(rows.filter(~pl.col("k").is_between(0, _MOST_K)), "k counts passages, from 0.", name, "k")
    found = "The query {query_id} has two answers at k = {k}."
    refuse(again(rows, *KEY), found, name)
    grades = rows["grade"].drop_nulls()
    scale = _scale(grades) if rows["scale"].null_count() == rows.height else None
    kept = rows.filter(pl.col("answer").is_not_null() | pl.col("grade").is_not_null()).with_columns(
        pl.col("answer").alias("text"), pl.coalesce("scale", pl.lit(scale, pl.String)).alias("scale")
    )
    graded = kept.filter(pl.col("grade").is_not_null()).with_columns(
        value="grade", scorer=pl.lit("grade"), source=pl.lit(GRADE)
    )
    notes = (
        [f"{name}: `score` is taken as the grade of answers."] if column == "score" and len(grades) else []
    )
    if len(grades) and rows["scale"].null_count() == rows.height:
        said = f"taken as {scale}" if scale else "not known: add a column `scale`, such as 0-10"
        notes.append(f"{name}: the scale of the answers' grades is {said}.")
    left = {
        "rows without an answer": rows.height - kept.height,
        "answers without a grade (kept, but not correlated)": kept["grade"].null_count(),
    }
    frames = frames_of(answers=kept.drop("grade"), answer_scores=graded)
    return Import(frames=frames, notes=tuple(notes), left_out=counted(left, name))


def _named(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """The rows with what names an answer as it is stored."""
    rows = rows.with_columns(
        numbers(rows, "pass", name, whole=True).alias("pass"),
        numbers(rows, "temperature", name).alias("temperature"),
        pl.col("answer_mode").str.to_lowercase().alias("mode"),
    )
    refuse(rows.filter(pl.col("temperature") < 0), "A temperature is not negative.", name, "temperature")
    refuse(rows.filter(~pl.col("pass").is_between(1, _MOST_PASSES)), "A pass counts from 1.", name, "pass")
    strange = f"The mode {{mode}} is none of {', '.join(MODES)}."
    refuse(rows.filter(~pl.col("mode").is_in(MODES)), strange, name, "answer_mode")
    return rows


def own_costs(table: Table, means: Meaning) -> tuple[pl.DataFrame, set[str]]:
    """Tokens and times of each answer by line, and the columns that they are taken from."""
    timed = {GENERATE: "ms", FIRST_TOKEN: "first_token_ms"}
    named = [(each, timed[each.stage]) for each in means.timings if each.stage in timed]
    named += [(each, each.measure) for each in means.usage if each.stage == GENERATE]
    rows, taken = pl.DataFrame([table.lines.alias("line")]), set()
    for value, column in named:
        if column in TABLES["answers"] and column not in rows.columns:
            cells = numbers(table.taking({column: value.column}), column, table.name) * value.factor
            refuse(rows.filter(cells < 0), "The number is negative.", table.name, value.column)
            rows = rows.with_columns(cells.alias(column))
            taken.add(value.column)
    return rows, taken


def _scale(grades: pl.Series) -> str | None:
    """The scale that grades plainly are of."""
    if not len(grades):
        return None
    if grades.is_between(0, 1).all():
        return "0-1"
    return "1-5" if grades.is_between(1, 5).all() else None


def timings(table: Table, means: Meaning, keys: pl.DataFrame, *, per_row: bool) -> Import:
    """Timings in milliseconds."""
    parts: list[pl.DataFrame] = []
    notes: list[str] = []
    empty: list[LeftOut] = []
    for value in means.timings:
        rows, missing = _costs_of(table, value, keys, per_row=per_row)
        empty += missing
        parts.append(rows.with_columns(pl.lit(value.stage).alias("stage"), pl.col("value").alias("ms")))
        if value.factor != 1.0:
            notes.append(f"{table.name}: `{shown(value.column)}` converted from seconds to milliseconds.")
    if not any(part.height for part in parts):
        return Import(left_out=tuple(empty), notes=tuple(notes))
    rows = pl.concat(parts)
    order = pl.int_range(1, pl.len() + 1).over(*_QUERY, "stage")
    rows = rows.with_columns(pl.coalesce("repeat", order).alias("repeat"))
    twice = again(rows, *_QUERY, "stage", "repeat")
    refuse(twice, "Repeat {repeat} of query {query_id} occurs twice.", table.name, "repeat")
    wrong = rows.filter(~pl.col("repeat").is_between(1, 32_767))
    refuse(wrong, "A repeat counts from 1.", table.name, "repeat")
    return Import(frames=frames_of(timings=rows), notes=tuple(notes), left_out=tuple(empty))


def usage(table: Table, means: Meaning, keys: pl.DataFrame, *, per_row: bool) -> Import:
    """Usage per query; the mean over the repeats of a query where each row is one."""
    parts: list[pl.DataFrame] = []
    notes: list[str] = []
    empty: list[LeftOut] = []
    for value in means.usage:
        rows, missing = _costs_of(table, value, keys, per_row=per_row)
        empty += missing
        stage = value.stage or "total"
        named = means.items.get(stage) or means.items.get("total")
        if named is None:
            notes.append(
                f"{table.name}: `{shown(value.column)}` does not say what was used; it has no price."
            )
            rows = rows.with_columns(pl.lit(UNNAMED).alias("item"))
        else:
            item = table.taking({"item": named}).select("line", pl.col("item").fill_null(UNNAMED))
            rows = rows.join(item, on="line", how="left")
        amounts = rows.group_by(*_QUERY, "item").agg(pl.col("value").mean().alias("amount"))
        parts.append(
            amounts.with_columns(
                pl.lit(stage).alias("stage"),
                pl.lit(value.measure).alias("unit"),
                pl.lit(Basis.IMPORTED.value).alias("basis"),
            )
        )
    rows = pl.concat(parts) if parts else pl.DataFrame()
    return Import(frames=frames_of(usage=rows), notes=tuple(notes), left_out=tuple(empty))


def _costs_of(
    table: Table, value: Value, keys: pl.DataFrame, *, per_row: bool
) -> tuple[pl.DataFrame, tuple[LeftOut, ...]]:
    """Numbers of a column with their keys, without empty cells; one a query unless each row is its own."""
    cells = table.taking({value.column: value.column})
    given = numbers(cells, value.column, table.name) * value.factor
    rows = keys.with_columns(given.alias("value"))
    refuse(rows.filter(pl.col("value") < 0), "The number is negative.", table.name, value.column)
    filled = rows.filter(pl.col("value").is_not_null())
    left = counted({f"empty cells of `{shown(value.column)}`: missing, not 0": rows.height - filled.height})
    if per_row:
        return filled, left
    other = filled.filter(pl.col("value") != pl.col("value").first().over(*_QUERY))
    found = "The value differs within a query: it belongs to the query and is the same on its rows."
    refuse(other, found, table.name, value.column)
    return filled.unique(_QUERY, keep="first", maintain_order=True), left
