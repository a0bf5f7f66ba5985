"""Turns tables with a row per measure and a column per stack into tables with a row per stack."""

from __future__ import annotations

import re

import polars as pl

from core.importers.formats.table.pivoted import STACK
from core.importers.formats.table.suited import FIGURE
from core.importers.naming import named, role_of
from core.importers.read.number_format import NOTHING
from core.importers.read.tabular import Table, as_text

_MOST = 100  # Most measures of a stack, and most stacks
_DIGITS = re.compile(FIGURE)


def turned(table: Table) -> Table:
    """Transpose a table whose rows are measures into one row per stack; return any other unchanged."""
    first, *stacks = table.rows.columns or [""]
    if not stacks or not 1 < table.rows.height <= _MOST or len(stacks) > _MOST:
        return table
    names = as_text(table.rows[first]).to_list()
    if not all(name and named(name, name) for name in names) or len(set(names)) < len(names):
        return table
    if any(named(stack, stack) or role_of(stack) for stack in stacks):
        return table
    cells = {stack: as_text(table.rows[stack]).to_list() for stack in stacks}
    known = [cell for column in cells.values() for cell in column if cell and cell.lower() not in NOTHING]
    if not all(map(_DIGITS.match, known)):
        return table
    rows = pl.DataFrame(
        [[stack, *column] for stack, column in cells.items()],
        schema=dict.fromkeys([STACK, *names], pl.String),
        orient="row",
    )
    return Table(table.name, rows, pl.Series("line", [1] * len(stacks), dtype=pl.Int64))
