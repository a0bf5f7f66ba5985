"""Tables of results with one row per stack, and tables of queries: answers, latency and usage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from core.answers import GRADE, KEY, MODES
from core.errors import InputError
from core.importers.base import Import, LeftOut, Options, counted, frames_of, merged, placed
from core.importers.meaning import Meaning
from core.importers.naming import USD_PER_1K, WHOLE_AXES, NamedValue
from core.importers.read.member import Member
from core.importers.read.rows import again, numbers, refuse
from core.importers.read.tabular import Table
from core.importers.read.text import place, quoted, shown
from core.importers.runs import imported_run, run_labels
from core.importers.samples import UNNAMED
from core.importers.settings import axes_of
from core.records import Basis, Run
from core.tables import FIRST_TOKEN, GENERATE, TABLES

_MOST_K = (1 << 31) - 1
_MOST_PASSES = (1 << 15) - 1
ANSWER_ROLES = ("answer", "k", "grade", "score", "scale", "judge", "reader", "prompt", "temperature",
                "answer_mode", "pass")  # fmt: skip

_QUERY = ["run_id", "query_id"]


def stack_results(member: Member, table: Table, means: Meaning, options: Options) -> Import:
    """Make a run with aggregates from every row."""
    stacks = _stacks(table, means)
    labels = run_labels(
        [(name, f"{member.stem} row {index}") for index, (name, _) in enumerate(stacks, 1)], options
    )
    runs = [
        imported_run(
            options, label, member.digest, importer="table", decided={"row": index}, spec=spec or None
        )
        for index, (label, (_, spec)) in enumerate(zip(labels, stacks, strict=True), 1)
    ]
    rows, left = _values(table, means, runs)
    ids = pl.Series("run_id", [run.run_id for run in runs])
    keys = pl.DataFrame([ids, table.lines.alias("line")]).with_columns(query_id=pl.lit(None, pl.String))
    notes = [f"{table.name}: {said}" for value in means.aggregates for said in said_of(value)]
    frames = frames_of(aggregates=rows)
    figures = Import(runs=tuple(runs), frames=frames, left_out=tuple(left), notes=tuple(notes))
    return merged((figures, usage(table, means, keys, per_row=True)))


def unit_of(value: NamedValue) -> str:
    """Return the unit of a time that is not in milliseconds."""
    return "seconds" if value.factor > 1 else "microseconds"


def said_of(value: NamedValue) -> Iterator[str]:
    """Yield notes on a column: the assumptions and conversions made."""
    name = f"`{shown(value.column)}`"
    if value.assumed:
        yield f"{name} {value.assumed}."
    if value.factor == 1.0:
        return
    if value.measure.startswith("latency_"):
        yield f"{name} converted from {unit_of(value)} to milliseconds."
    elif value.measure == USD_PER_1K:
        yield f"{name} converted to dollars per 1,000 queries."
    else:
        yield f"{name} is taken as percent: divided by 100."


def _stacks(table: Table, means: Meaning) -> list[tuple[str, dict[str, Any]]]:
    """Return, for every row, the stack's name and the axes that the row sets."""
    named = {"run": means.roles["run"]} if "run" in means.roles else {}
    settings = {f"set {column}": column for column in means.settings}
    if not named and not means.axes and not settings:
        do = "Add a column `stack`, or say which column it is (--column run=…)."
        raise InputError("No column names the stacks.", where=table.name, do=do)
    also = {f"run {place_}": column for place_, column in enumerate(means.also)}
    rows = table.taking(means.axes | named | also | settings)
    if also:
        rows = rows.with_columns(run=pl.concat_str("run", *also, separator=" · ", ignore_nulls=True))
    for axis in WHOLE_AXES & means.axes.keys():
        rows = rows.with_columns(numbers(rows, axis, table.name, whole=True).alias(axis))
    stacks: list[tuple[str, dict[str, Any]]] = []
    seen: set[str] = set()
    for row in rows.iter_rows(named=True):
        axes = {axis: row[axis] for axis in means.axes if row[axis] is not None}
        set_up = {column: row[f"set {column}"] for column in means.settings}
        name, spec = _named(row.get("run") or "", axes, set_up)
        key, where = repr((name, spec)), place(table.name, row["line"])
        if not name:
            raise InputError("The row names no stack.", where=where)
        if key in seen:
            do = "Keep one of its rows, or name in a column what sets them apart."
            raise InputError(f"The stack {quoted(name)} occurs twice.", where=where, do=do)
        seen.add(key)
        stacks.append((name, spec))
    return stacks


def _named(name: str, axes: Mapping[str, Any], settings: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a stack's name, made from axes and parameters if it has none, and its axes."""
    parts = {**({} if name else axes), **settings}
    told = ", ".join(f"{shown(part)} {value}" for part, value in parts.items())
    whole = " · ".join(filter(None, (name, told)))
    return whole, {**({"name": whole, **axes_of(settings)} if settings else {}), **axes}


def _values(table: Table, means: Meaning, runs: list[Run]) -> tuple[pl.DataFrame, list[LeftOut]]:
    """Return the numbers of all measure columns, row by row; there may be thousands of columns."""
    values = means.aggregates
    cells = numbers_of(table, values)
    counts = {value.column: means.counts.get(value.column, means.roles.get("n")) for value in values}
    known = {column: _counted(table, column) for column in {*counts.values()}}
    about = pl.DataFrame(
        [(value.measure, value.k, value.stage) for value in values],
        schema={"measure": pl.String, "k": pl.Int32, "stage": pl.String},
        orient="row",
    )
    rows = about[np.repeat(np.arange(len(values)), len(runs))].with_columns(
        pl.Series("run_id", [run.run_id for run in runs] * len(values), dtype=pl.String),
        pl.concat([known[counts[value.column]] for value in values]).alias("n"),
        pl.concat(cells).alias("value"),
        source=pl.lit("imported"),
    )
    order = ("run_id", "n", "value", "measure", "k", "stage", "source")
    left = [
        each
        for value, column in zip(values, cells, strict=True)
        if column.null_count()
        for each in counted(_empty(value, column.null_count()), table.name)
    ]
    return rows.filter(pl.col("value").is_not_null()).select(order), left


def numbers_of(table: Table, values: Sequence[NamedValue]) -> list[pl.Series]:
    """Return the numbers of columns, in the units of their measures; null if a cell is empty.

    Raises:
        InputError: A cell is not a finite number.
    """
    if not values:
        return []
    height, names = table.rows.height, {f"{number}": value.column for number, value in enumerate(values)}
    cells = pl.concat(table.taking(names).select(list(names)).get_columns()).cast(pl.Float64, strict=False)
    finite = cells.is_finite().fill_null(value=False).to_numpy().reshape(len(values), height)
    whole = np.asarray(finite.all(axis=1))
    return [
        (
            cells.slice(at * height, height)
            if good
            else numbers(table.taking({column: column}), column, table.name)
        )
        * value.factor
        for at, (value, column, good) in enumerate(zip(values, names.values(), whole, strict=True))
    ]


def _counted(table: Table, column: str | None) -> pl.Series:
    """Return the number of queries behind each row, from a column; null without one."""
    if column is None:
        return pl.repeat(None, table.rows.height, dtype=pl.Int64, eager=True)
    rows = table.taking({"n": column})
    rows = rows.with_columns(n=numbers(rows, "n", table.name, whole=True))
    refuse(rows.filter(pl.col("n") < 0), "{n} is not a number of queries.", table.name, column)
    return rows["n"]


def filled(table: Table, value: NamedValue, rows: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return rows with a column's numbers as `value`, without empty cells, and the counts of these."""
    (cells,) = numbers_of(table, [value])
    known = rows.with_columns(cells.alias("value")).filter(pl.col("value").is_not_null())
    return known, _empty(value, rows.height - known.height)


def _empty(value: NamedValue, cells: int) -> dict[str, int]:
    return {f"empty cells of `{shown(value.column)}`: missing, not 0": cells}


def answers(rows: pl.DataFrame, name: str) -> Import:
    """Return answers with their grades; a missing scale follows from the grades if they make it plain.

    The rows have the columns of `ANSWER_ROLES`, run_id, and whatever else is known about the answer.
    """
    rows = _identified(rows, name)
    column = grade_column(rows)
    whole = numbers(rows, "k", name, whole=True)
    rows = rows.with_columns(numbers(rows, column, name).alias("grade"), whole.alias("k"))
    refuse(rows.filter(~pl.col("k").is_between(0, _MOST_K)), "k counts passages, from 0.", name, "k")
    problem = "The query {query_id} has two answers at k = {k}."
    refuse(again(rows, *KEY), problem, name)
    grades = rows["grade"].drop_nulls()
    unscaled, scale = rows["scale"].null_count() == rows.height, None
    if unscaled and len(grades):
        fits = {"0-1": grades.is_between(0, 1), "1-5": grades.is_between(1, 5)}
        scale = next((name for name, within in fits.items() if within.all()), None)
    kept = rows.filter(pl.col("answer").is_not_null() | pl.col("grade").is_not_null()).with_columns(
        pl.col("answer").alias("text"), pl.coalesce("scale", pl.lit(scale, pl.String)).alias("scale")
    )
    graded = kept.filter(pl.col("grade").is_not_null()).with_columns(
        value="grade", scorer=pl.lit("grade"), source=pl.lit(GRADE)
    )
    notes = []
    if len(grades) and column == "score":
        notes.append(f"{name}: `score` is taken as the grade of answers.")
    if len(grades) and unscaled:
        said = f"taken as {scale}" if scale else "not known: add a column `scale`, such as 0-10"
        notes.append(f"{name}: the scale of the answers' grades is {said}.")
    left = {
        "rows without an answer": rows.height - kept.height,
        "answers without a grade (kept, but not correlated)": kept["grade"].null_count(),
    }
    frames = frames_of(answers=kept.drop("grade"), answer_scores=graded)
    return Import(frames=frames, notes=tuple(notes), left_out=counted(left, name))


def grade_column(rows: pl.DataFrame) -> str:
    """Return the column that holds the grades of answers: `grade`, or `score` if that is empty."""
    return "grade" if rows["grade"].null_count() < rows.height else "score"


def _identified(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the rows with the columns that identify a stored answer."""
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
    """Return tokens and times of each answer by line, and the columns that they come from."""
    timed = {GENERATE: "ms", FIRST_TOKEN: "first_token_ms"}
    named = [(timing, timed[timing.stage]) for timing in means.timings if timing.stage in timed]
    named += [(usage, usage.measure) for usage in means.usage if usage.stage == GENERATE]
    rows, taken = pl.DataFrame([table.lines.alias("line")]), set()
    for value, column in named:
        if column in TABLES["answers"] and column not in rows.columns:
            cells = numbers(table.taking({column: value.column}), column, table.name) * value.factor
            refuse(rows.filter(cells < 0), "The number is negative.", table.name, value.column)
            rows = rows.with_columns(cells.alias(column))
            taken.add(value.column)
    return rows, taken


def timings(table: Table, means: Meaning, keys: pl.DataFrame, *, per_row: bool) -> Import:
    """Return timings in milliseconds."""
    parts = [keys.clear().with_columns(stage=pl.lit(None, pl.String), ms=pl.lit(None, pl.Float64))]
    notes: list[str] = []
    empty: list[LeftOut] = []
    for value in means.timings:
        rows, missing = _costs_of(table, value, keys, per_row=per_row)
        empty += missing
        parts.append(rows.rename({"value": "ms"}).with_columns(stage=pl.lit(value.stage)))
        if value.factor != 1.0:
            said = f"converted from {unit_of(value)} to milliseconds"
            notes.append(f"{table.name}: `{shown(value.column)}` {said}.")
    rows = _as_measured(pl.concat(parts, how="diagonal"))
    order = pl.int_range(1, pl.len() + 1).over(*_QUERY, "stage")
    rows = rows.with_columns(pl.coalesce("repeat", order).alias("repeat"))
    twice = again(rows, *_QUERY, "stage", "repeat")
    refuse(twice, "Repeat {repeat} of query {query_id} occurs twice.", table.name, "repeat")
    wrong = rows.filter(~pl.col("repeat").is_between(1, 32_767))
    refuse(wrong, "A repeat counts from 1.", table.name, "repeat")
    # The order of rows means nothing unless a column states it: tables are mostly sorted by their ids.
    rows = placed(rows) if rows["measured_at"].is_not_null().any() else rows
    return Import(frames=frames_of(timings=rows), notes=tuple(notes), left_out=tuple(empty))


def _as_measured(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort rows by measurement time, a number or an ISO 8601 date; keep their order if they have none."""
    at = rows["measured_at"]
    number = at.cast(pl.Float64, strict=False)
    when = number if number.null_count() == at.null_count() else at
    return rows.with_columns(measured_at=when).sort("measured_at", nulls_last=True, maintain_order=True)


def usage(table: Table, means: Meaning, keys: pl.DataFrame, *, per_row: bool) -> Import:
    """Return usage per query, as the mean over a query's repeats if each row is one."""
    parts: list[pl.DataFrame] = []
    notes: list[str] = []
    empty: list[LeftOut] = []
    for value in means.usage:
        rows, missing = _costs_of(table, value, keys, per_row=per_row)
        empty += missing
        stage = value.stage or "total"
        if named := means.items.get(stage) or means.items.get("total"):
            item = table.taking({"item": named}).select("line", pl.col("item").fill_null(UNNAMED))
            rows = rows.join(item, on="line", how="left")
        else:
            said = f"`{shown(value.column)}` does not say what was used; it has no price."
            notes.append(f"{table.name}: {said}")
            rows = rows.with_columns(item=pl.lit(UNNAMED))
        fixed = {"stage": stage, "unit": value.measure, "basis": Basis.IMPORTED.value}
        amounts = rows.group_by(*_QUERY, "item").agg(pl.col("value").mean().alias("amount"))
        parts.append(amounts.with_columns(pl.lit(text).alias(name) for name, text in fixed.items()))
    rows = pl.concat(parts) if parts else pl.DataFrame()
    return Import(frames=frames_of(usage=rows), notes=tuple(notes), left_out=tuple(empty))


def _costs_of(
    table: Table, value: NamedValue, keys: pl.DataFrame, *, per_row: bool
) -> tuple[pl.DataFrame, tuple[LeftOut, ...]]:
    """Return the numbers of a column with their keys, without empty cells.

    There is one per query, unless each row is a separate measurement.
    """
    known, missing = filled(table, value, keys)
    refuse(known.filter(pl.col("value") < 0), "The number is negative.", table.name, value.column)
    left = counted(missing)
    if per_row:
        return known, left
    other = known.filter(pl.col("value") != pl.col("value").first().over(*_QUERY))
    problem = "The value differs within a query: it belongs to the query and is the same on its rows."
    refuse(other, problem, table.name, value.column)
    return known.unique(_QUERY, keep="first", maintain_order=True), left
