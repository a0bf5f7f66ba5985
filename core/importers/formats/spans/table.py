"""Tables of judged spans: query, document, a place in it or a quote of it, and grade."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from core.errors import InputError
from core.importers.base import Import, Options
from core.importers.columns import ROLES as KNOWN_ROLES
from core.importers.columns import no_column, roles_by
from core.importers.formats.spans.placing import PLACE
from core.importers.judgements import golden_set, left_out, without_empty_ids
from core.importers.read.fields import numbers
from core.importers.read.tabular import Table
from core.importers.read.text import place

ROLES: Mapping[str, tuple[str, ...]] = {
    "query_id": tuple(sorted(KNOWN_ROLES["query_id"].aliases)),
    "source": (
        "source",
        "document",
        "doc_id",
        "docid",
        "document_id",
        "file",
        "path",
        "url",
        "passage_id",
        "doc",
    ),
    "start_char": ("start_char", "start", "begin", "char_start", "start_offset", "from"),
    "end_char": ("end_char", "end", "stop", "char_end", "end_offset", "to"),
    "quote": ("quote", "evidence", "snippet", "excerpt", "span", "answer_text"),
    "grade": tuple(sorted(KNOWN_ROLES["grade"].aliases)),
    "judge": tuple(sorted(KNOWN_ROLES["judge"].aliases)),
}
"""Role of a column to the names that it goes by."""
NEEDS = "Spans need query_id, source, grade, and start_char with end_char or quote."


def are_spans(roles: Mapping[str, str]) -> bool:
    """Whether columns of these roles make a table of spans."""
    return {"query_id", "source", "grade"} <= roles.keys() and bool({"quote", "start_char"} & roles.keys())


def span_rows(table: Table, options: Options) -> pl.DataFrame:
    """The judged spans of a table, as they are given.

    Args:
        table: The table.
        options: For the columns.

    Returns:
        query_id, source, start_char, end_char (null where there is a quote), quote, grade (text), judge and
        line of every row.

    Raises:
        InputError: A column is missing, an id is empty, a place is no integer, a row has neither a place nor
            a quote, there are no rows.
        UnknownNameError: A role of a column does not exist.
    """
    roles = roles_by(table.rows.columns, options.columns, ROLES, table.name)
    needed = ("query_id", "source", *(() if "quote" in roles else PLACE), "grade")
    for role in needed:
        if role not in roles:
            raise no_column(role, table.rows.columns, table.name, NEEDS)
    rows = table.taking(roles)
    rows = rows.with_columns(pl.lit(None, pl.String).alias(role) for role in ROLES if role not in roles)
    places = [numbers(rows, column, table.name, whole=True).cast(pl.Int64) for column in PLACE]
    rows = without_empty_ids(rows.with_columns(places), table.name, ("query_id", "source"))
    nowhere = rows.filter(pl.any_horizontal(pl.col(PLACE).is_null()) & pl.col("quote").is_null())
    if nowhere.height:
        where = place(table.name, nowhere["line"][0], "start_char")
        raise InputError("Neither a place nor a quote.", where=where, do=NEEDS)
    if rows.is_empty():
        raise InputError("The table has no rows.", where=table.name)
    return rows


def span_set(rows: pl.DataFrame, name: str, stem: str, options: Options) -> Import:
    """Make a golden set of spans whose places are known; one per judge where several judged the same.

    Args:
        rows: As `core.importers.formats.spans.placing.placed` returns them.
        name: File, for messages.
        stem: Names the golden set where the options do not.
        options: Its grade mapping, golden set and collection.

    Raises:
        InputError: A grade is no integer or is empty, no mapping fits, the same characters are judged twice.
    """
    key = ["query_id", "source", *PLACE, "grade", "judge"]
    single = rows.with_columns(numbers(rows, "grade", name, whole=True)).unique(
        key, keep="first", maintain_order=True
    )
    made = golden_set(single, name, stem, options, table="spans")
    again = rows.height - single.height
    return replace(made, left_out=left_out(again, "spans that stand twice: they count once", name))
