"""The questions of a sweep: read from a file or taken from the collection, all of them or a seeded draw."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from core.errors import InputError, UnknownNameError
from core.importers import Limits, Options, load
from core.importers.columns import no_column
from core.importers.formats.beir import Beir
from core.importers.naming import normal
from core.importers.read.piece import Piece
from core.importers.read.source import opened
from core.importers.read.tabular import kind_of, read_table
from core.importers.read.text import shown
from core.tables import frame

ROLES: Mapping[str, tuple[str, ...]] = {
    "query_id": ("query_id", "_id", "id", "qid", "question_id", "topic"),
    "text": ("text", "query", "question"),
}
"""Role of a column to the names that it goes by, the likeliest first."""


def read_queries(path: Path, collection_id: str, columns: Mapping[str, str] | None = None) -> pl.DataFrame:
    """Read questions.

    Args:
        path: BEIR queries (.jsonl), or a table with an id and a text per row.
        collection_id: The collection that they are asked of.
        columns: Role ("query_id", "text") → column whose name is not recognised.

    Returns:
        Frame of `TABLES["queries"]`.

    Raises:
        InputError: It holds no questions, or an id stands twice or is empty.
        UnknownNameError: A role of a column does not exist.
    """
    with opened([path], Limits()) as (tree,):
        if len(tree.pieces) != 1:
            raise InputError("Questions are one file.", where=tree.name)
        if not columns and Beir().sniff(tree):
            made = load([path], Options(format="beir", collection_id=collection_id)).frames
            if "queries" in made:
                return made["queries"].lazy().with_columns(collection_id=pl.lit(collection_id)).collect()
        return _table(tree.pieces[0], collection_id, columns or {})


def chosen(queries: pl.DataFrame, judged: pl.DataFrame | None, limit: int | None, seed: int) -> pl.DataFrame:
    """The questions that are asked, in their order.

    Args:
        queries: Frame of `TABLES["queries"]`.
        judged: With query_id, if there are judgements: a draw is made among judged questions.
        limit: How many are asked at most; None = all.
        seed: Of the draw.
    """
    if limit is None:
        return queries
    if judged is not None:
        graded = queries.filter(pl.col("query_id").is_in(judged["query_id"].unique().to_list()))
        queries = graded if graded.height else queries
    if queries.height <= limit:
        return queries
    drawn = np.random.default_rng(seed).choice(queries.height, size=limit, replace=False)
    return queries[np.sort(drawn)]


def _table(piece: Piece, collection_id: str, given: Mapping[str, str]) -> pl.DataFrame:
    kind = kind_of(piece)
    if kind is None:
        raise InputError(
            "This holds no questions.",
            where=piece.name,
            do="Questions are a table (CSV, TSV, JSONL, Parquet) with a column of ids and one of texts.",
        )
    table = read_table(piece, kind)
    rows = table.taking(_columns(table.rows.columns, given, piece.name))
    lacking = rows.filter(pl.col("query_id").is_null() | pl.col("text").is_null())
    if lacking.height:
        where = f"{piece.name}:{lacking['line'][0]}"
        raise InputError("The question has no id or no text.", where=where)
    again = rows.filter(~pl.col("query_id").is_first_distinct())
    if again.height:
        found = f"The id {shown(again['query_id'][0])!r} occurs twice."
        raise InputError(found, where=f"{piece.name}:{again['line'][0]}")
    ids = pl.Series([collection_id] * rows.height, dtype=pl.String)
    return frame("queries", {"collection_id": ids, "query_id": rows["query_id"], "text": rows["text"]})


def _columns(columns: list[str], given: Mapping[str, str], name: str) -> dict[str, str]:
    for role in given:
        if role not in ROLES:
            raise UnknownNameError("role of a column", role, ROLES, where=name)
    known = {normal(column): column for column in reversed(columns)}
    found = dict(given)
    for role, aliases in ROLES.items():
        match = next((known[normal(alias)] for alias in aliases if normal(alias) in known), None)
        column = found.setdefault(role, match or "")
        if column not in columns:
            raise no_column(column or role, columns, name, f"Name the column with the {role}.")
    return found
