"""Tables of results, one row per stack: measures at a cutoff, latency quantiles, cost, and stack axes."""

from __future__ import annotations

from typing import Any

import polars as pl

from core.errors import InputError
from core.importers.base import Import, LeftOut, Options, imported_run, run_labels
from core.importers.columns import WHOLE_AXES, Meaning
from core.importers.fields import numbers
from core.importers.piece import Piece
from core.importers.tabular import Table
from core.importers.text import place, quoted, shown
from core.records import Run
from core.tables import frame


def stack_results(piece: Piece, table: Table, means: Meaning, options: Options) -> Import:
    """Make a run with aggregates of every row.

    Args:
        piece: The file.
        table: Its rows.
        means: What its columns mean; at least one is a result.
        options: Collection and label.

    Raises:
        InputError: A result is no number, two rows describe the same stack, or a row names none.
    """
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
    collections = {"aggregates": rows} if rows.height else {}
    notes = [
        f"{table.name}: `{shown(value.column)}` converted from seconds to milliseconds."
        for value in means.aggregates
        if value.factor != 1.0
    ]
    return Import(runs=tuple(runs), frames=collections, left_out=tuple(left), notes=tuple(notes))


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
    parts, left = [], []
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
        if filled.height < given.height:
            count = given.height - filled.height
            left.append(LeftOut(count, f"empty cells of `{shown(value.column)}`: missing, not 0", table.name))
        parts.append(
            filled.with_columns(
                pl.lit(value.measure).alias("measure"),
                pl.lit(value.k, pl.Int32).alias("k"),
                pl.lit(value.stage, pl.String).alias("stage"),
                pl.lit("imported").alias("source"),
            )
        )
    return frame("aggregates", pl.concat(parts).to_dict()), left
