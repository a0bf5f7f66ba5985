"""Long tables, in which a column names the measure that a row holds, as tables with a column for each."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from core.errors import InputError
from core.importers.meaning import Meaning, TableAs
from core.importers.read.rows import refuse
from core.importers.read.tabular import Table
from core.importers.read.text import place
from core.importers.report import UNKNOWN

_MOST = 200  # Measures


def widened(table: Table, means: Meaning, said: TableAs) -> tuple[Table, TableAs]:
    """Return a long table with a column for each of its measures, and what the user said of its columns.

    Rows belong together where all columns that mean something do, or, where none names the stack, all of
    words.

    Raises:
        InputError: A measure stands twice for the same stack and query, or there are too many of them.
    """
    name, value = means.roles["measure"], means.roles["value"]
    keys = [column for role, column in means.roles.items() if role not in ("measure", "value")]
    keys += list(means.axes.values())
    if "run" not in means.roles:
        keys += [column for column, why in means.ignored.items() if why == UNKNOWN]
    rows = table.taking({column: column for column in (*keys, name, value)})
    refuse(rows.filter(pl.col(name).is_null()), "The row names no measure.", table.name, name)
    again = rows.filter(~pl.struct(*keys, name).is_first_distinct())
    if again.height:
        which = f"The measure {again[name][0]!r} stands twice for the same stack and query."
        do = "Leave out what is repeated, or number the passes in a column `pass`."
        raise InputError(which, where=place(table.name, again["line"][0], name), do=do)
    measures = rows[name].unique(maintain_order=True).to_list()
    if len(measures) > _MOST:
        problem = f"{len(measures):,} measures; the most that are read is {_MOST}."
        raise InputError(problem, where=place(table.name, None, name))
    wide = rows.group_by(keys, maintain_order=True).agg(
        pl.col("line").first().alias(""),
        *(pl.col(value).filter(pl.col(name) == measure).first().alias(measure) for measure in measures),
    )
    columns = {meant: column for meant, column in said.columns.items() if column in wide.columns}
    return Table(table.name, wide.drop(""), wide[""].alias("line")), replace(said, columns=columns)
