"""Tables with a column per stack (a notebook's pivot), turned into tables with a row per stack and query.

A star says what the cells hold: the columns that fit a pattern have its meaning, each for the stack
that the star stands for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from core.errors import InputError
from core.importers.formats.table.gridded import ticked
from core.importers.formats.table.suited import DIGITS
from core.importers.meaning import Meaning, TableAs
from core.importers.read.tabular import Table
from core.importers.read.text import no_column, shown
from core.importers.report import UNKNOWN

STAR, STACK = "*", "stack"


def without_stars(said: TableAs, columns: Sequence[str]) -> tuple[TableAs, dict[str, str]]:
    """Split a table's settings into single columns and starred ones that cover several (not grades)."""
    stars = {
        meant: column
        for meant, column in said.columns.items()
        if STAR in column and meant != "grade" and column not in columns
    }
    plain = {meant: column for meant, column in said.columns.items() if meant not in stars}
    return (replace(said, columns=plain) if stars else said), stars


def by_patterns(table: Table, means: Meaning, stars: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return, for each meaning that a pattern gives to columns, the column of each stack.

    Args:
        means: The meaning of the columns without the patterns.
        stars: Pattern by meaning.

    Raises:
        InputError: A pattern fits no column, or the table names its stacks or queries otherwise.
    """
    if "query_id" not in means.roles:
        raise no_column("query_id", table.rows.columns, table.name, "Map the column of the queries.")
    if "run" in means.roles:
        problem = f"The column {shown(means.roles['run'])!r} names stacks, and so would the header."
        raise InputError(problem, where=table.name, do="Leave that column out, or say no pattern.")
    return {meant: _matched(table, means, pattern) for meant, pattern in stars.items()}


def unpivoted(table: Table, owned: Mapping[str, Mapping[str, str]]) -> Table:
    """Return a table with a row for each stack and query.

    Args:
        owned: For every measure, the column of each stack.
    """
    apart = {column for columns in owned.values() for column in columns.values()}
    kept = [column for column in table.rows.columns if column not in apart]
    stacks = list(dict.fromkeys(stack for columns in owned.values() for stack in columns))
    parts = [
        table.rows.select(
            *(pl.col(column) for column in kept),
            pl.lit(stack).alias(STACK),
            *(
                pl.col(columns[stack]).cast(pl.String).alias(meant)
                if stack in columns
                else pl.lit(None, pl.String).alias(meant)
                for meant, columns in owned.items()
            ),
        )
        for stack in stacks
    ]
    lines = pl.concat([table.lines] * len(stacks))
    return Table(table.name, pl.concat(parts), lines)


def _matched(table: Table, means: Meaning, pattern: str) -> dict[str, str]:
    """Find the columns that fit a pattern, by the text that its star stands for."""
    head, _, tail = pattern.partition(STAR)
    fits = re.compile(f"{re.escape(head)}(.+){re.escape(tail)}")
    roles = {*means.roles.values(), *means.axes.values()}
    free = set(_numeric(table, means)) if pattern == STAR else set(table.rows.columns) - roles
    matched = {
        match[1].strip(): column
        for column in table.rows.columns
        if column in free and (match := fits.fullmatch(column)) and match[1].strip()
    }
    if not matched:
        raise no_column(pattern, table.rows.columns, table.name, "A star stands for the name of a stack.")
    return matched


def _numeric(table: Table, means: Meaning) -> list[str]:
    """Find columns without a meaning that hold only numbers or empty cells."""
    numeric = []
    for column in [name for name, why in means.ignored.items() if why == UNKNOWN]:
        cells = table.taking({"cell": column})["cell"].drop_nulls()
        if len(cells) and cells.str.contains(DIGITS).all():
            numeric.append(column)
    return numeric


def pivot(table: Table, means: Meaning) -> list[str]:
    """Find columns that may hold the results of a stack each if rows are queries; none in other tables."""
    if "query_id" not in means.roles or means.roles.keys() & {"run", "passage_id", "answer"} or means.kind:
        return []
    columns = _numeric(table, means)
    return columns if len(columns) > 1 else []


def which_measure(columns: Sequence[str], name: str) -> InputError:
    """Return the refusal of a table whose columns may be stacks, because nothing says what its cells hold."""
    return InputError(
        f"The columns {ticked(columns)} may hold a result of a stack each, but not which measure.",
        where=name,
        do="Say once what all of them hold (--column 'nDCG@10=*', or 'latency_ms=*').",
    )
