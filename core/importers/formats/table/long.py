"""Long tables, with a row per measure of a stack or query, turned into tables with a column per measure.

Other figures on a row, such as a latency or a price, belong to the stack and query: they are the same
on all of their rows, and count once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from core.errors import InputError
from core.importers.meaning import OF_STACKS, SAME, Meaning
from core.importers.read.rows import refuse
from core.importers.read.tabular import Table, as_text
from core.importers.read.text import place, quoted
from core.importers.report import TAKEN, UNKNOWN

_MOST_MEASURES = 200
_PASSES = "or number the passes in a column `pass`."


@dataclass(frozen=True, slots=True)
class Widened:
    """A long table that was given a column for each of its measures."""

    table: Table
    # measures that were rows, each with the reason why it isn't a column of the table, if so
    measures: Mapping[str, str]
    counts: Mapping[str, str]  # measure → its column with the number of queries of that measure
    # columns of the file that the table no longer has, each with the reason it is left out, if it is
    gone: Mapping[str, str]


def widened(table: Table, means: Meaning) -> Widened:
    """Return a long table with a column for each of its measures.

    Rows belong together if all naming columns agree or, if none names the stack, all columns of
    words.

    Raises:
        InputError: A measure occurs twice for the same stack and query, a figure beside the measures differs
            on their rows, or there are too many measures.
    """
    name, value, n = means.roles["measure"], means.roles["value"], means.roles.get("n")
    cells, keys = {column: as_text(table.rows[column]) for column in table.rows.columns}, _keys(means)
    rows = pl.DataFrame({"group": _groups(cells, keys), "name": cells[name], "line": table.lines})
    found = _measures(rows, name, table.name)
    figures = _figures(means)
    first = rows["group"].is_first_distinct()
    columns = {key: cells[key].filter(first) for key in keys}
    counts: dict[str, str] = {}
    for measure in (measure for measure in found if measure not in keys):
        of = rows["name"] == measure
        columns[measure] = _of_groups(rows["group"], cells[value], of)
        if n:
            counts[measure] = _free(f"{n} of {measure}", (*cells, *found))
            columns[counts[measure]] = _of_groups(rows["group"], cells[n], of)
    for column in (figure for figure in figures if figure not in found):
        beside = rows.with_columns(cell=cells[column])
        _refuse_differing(beside, column, table.name, "query_id" in means.roles)
        columns[column] = _of_groups(rows["group"], cells[column])
    gone = dict.fromkeys((name, value, *filter(None, [n])), TAKEN)
    gone |= {column: SAME.format(f"measure {column}") for column in figures if column in found}
    measures = {measure: "a column has this name" if measure in keys else TAKEN for measure in found}
    return Widened(
        Table(table.name, pl.DataFrame(columns), table.lines.filter(first)), measures, counts, gone
    )


def _keys(means: Meaning) -> list[str]:
    keys = [column for role, column in means.roles.items() if role not in ("measure", "value", "n")]
    keys += list(means.axes.values())
    if "run" not in means.roles:
        keys += [column for column, why in means.ignored.items() if why in (UNKNOWN, OF_STACKS)]
    return keys


def _groups(cells: Mapping[str, pl.Series], keys: Sequence[str]) -> pl.Series:
    """Return the number of the group that each row belongs to, in order of first appearance."""
    rows = pl.DataFrame([cells[key].alias(f"{number}") for number, key in enumerate(keys)])
    if not keys:
        return pl.Series([0] * len(next(iter(cells.values()))), dtype=pl.UInt32)
    numbered = rows.unique(maintain_order=True).with_row_index("group")
    return rows.join(numbered, on=rows.columns, how="left", nulls_equal=True, maintain_order="left")["group"]


def _of_groups(group: pl.Series, cells: pl.Series, among: pl.Series | None = None) -> pl.Series:
    """Return the first non-empty cell of each group, among the rows that count."""
    rows = pl.DataFrame({"group": group, "cell": cells})
    known = (
        (rows if among is None else rows.filter(among))
        .drop_nulls("cell")
        .unique("group", keep="first", maintain_order=True)
    )
    return (
        group.unique(maintain_order=True)
        .to_frame()
        .join(known, on="group", how="left", maintain_order="left")["cell"]
    )


def _free(name: str, names: Sequence[str]) -> str:
    while name in names:
        name += " "
    return name


def _figures(means: Meaning) -> list[str]:
    """Return the columns that hold figures beside the measure of a row, and the keys of these figures."""
    values = (*means.timings, *means.usage, *means.aggregates, *means.scores)
    return list(dict.fromkeys([*(value.column for value in values), *means.items.values()]))


def _measures(rows: pl.DataFrame, column: str, file: str) -> list[str]:
    """Return the distinct names of the measures; refuse names that cannot be told apart."""
    refuse(rows.filter(pl.col("name").is_null()), "The row names no measure.", file, column)
    again = rows.filter(~pl.struct("group", "name").is_first_distinct())
    problem = "The measure {name} stands twice for the same stack and query."
    refuse(again, problem, file, column, do=f"Leave out what is repeated, {_PASSES}")
    measures: list[str] = rows["name"].unique(maintain_order=True).to_list()
    if len(measures) > _MOST_MEASURES:
        problem = f"{len(measures):,} measures; the most that are read is {_MOST_MEASURES}."
        raise InputError(problem, where=place(file, None, column))
    return measures


def _refuse_differing(rows: pl.DataFrame, column: str, file: str, of_query: bool) -> None:
    """Refuse a figure beside the measures that differs between rows of one stack, or of one query."""
    number = pl.col("cell").cast(pl.Float64, strict=False)
    known = rows.drop_nulls("cell").with_columns(key=pl.coalesce(number.cast(pl.String), "cell"))
    known = known.with_columns(pl.col("key", "cell", "line").first().over("group").name.prefix("first_"))
    for row in known.filter(pl.col("key") != pl.col("first_key")).head(1).iter_rows(named=True):
        whose = "query of a stack" if of_query else "stack"
        raise InputError(
            f"The same {whose} has {quoted(row['first_cell'])} on line {row['first_line']} and "
            f"{quoted(row['cell'])} on line {row['line']}.",
            where=place(file, row["line"], column),
            do=f"Give one value for all rows of a {whose}, {_PASSES} Or leave the column out (--without).",
        )
