"""Documents in tables: one row each, in CSV, TSV, JSONL or Parquet, or the corpus of a BEIR collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from core.errors import InputError, UnknownNameError
from core.importers.naming import roles_by
from core.importers.read.piece import Piece
from core.importers.read.tabular import Table, header, kind_of, read_table
from core.importers.read.text import no_column, place, quoted
from core.pipeline.documents.base import SCHEMA, Documents

ROLES: Mapping[str, tuple[str, ...]] = {
    "source": (
        "source", "_id", "id", "doc_id", "docid", "document_id", "docno", "passage_id", "pid", "corpus_id",
        "chunk_id", "path", "url",
    ),
    "text": ("text", "contents", "content", "body", "passage", "document", "passage_text"),
    "title": ("title", "name", "heading"),
}  # fmt: skip
"""Role of a column to the names that it goes by, the likeliest first."""


def holds_documents(piece: Piece, given: Mapping[str, str]) -> bool:
    """Whether a file is a table with a column of ids and one of texts."""
    kind = kind_of(piece)
    if kind is None:
        return False
    try:
        return {"source", "text"} <= roles_by(header(piece, kind), given, ROLES, piece.name).keys()
    except (InputError, UnknownNameError):
        return False


def read_tables(pieces: Sequence[Piece], given: Mapping[str, str]) -> Documents:
    """Read tables of documents that belong together."""
    frames = [_read(piece, given) for piece in pieces]
    frame = pl.concat(frames)
    again = frame.filter(~pl.col("source").is_first_distinct())
    if again.height:
        raise InputError(f"The id {quoted(again['source'][0])} stands in two files.", where=pieces[0].name)
    empty = frame.filter(pl.col("text").str.strip_chars() == "").height
    return Documents(frame, notes=(f"{empty} documents have no text.",) if empty else ())


def _read(piece: Piece, given: Mapping[str, str]) -> pl.DataFrame:
    kind = kind_of(piece)
    if kind is None:
        raise InputError(
            "This is not a table.", where=piece.name, do="Documents need a column of ids and one of texts."
        )
    table = read_table(piece, kind)
    roles = roles_by(table.rows.columns, given, ROLES, piece.name)
    for role in ("source", "text"):
        if role not in roles:
            do = f"Name the column with the {role}."
            raise no_column(role, table.rows.columns, piece.name, do)
    rows = table.taking({role: column for role, column in roles.items() if role != "text"})
    rows = rows.with_columns(_texts(table, roles["text"]).alias("text"))
    _check(rows, piece.name, roles["source"])
    absent = [pl.lit(None, dtype).alias(name) for name, dtype in SCHEMA.items() if name not in rows.columns]
    return rows.with_columns(absent).select(
        pl.col(name).fill_null([]) if isinstance(dtype, pl.List) else pl.col(name)
        for name, dtype in SCHEMA.items()
    )


def _texts(table: Table, column: str) -> pl.Series:
    """The texts as they are, blanks included: spans count them."""
    values = table.rows[column]
    return values.fill_null("") if values.dtype == pl.String else table.taking({"text": column})["text"]


def _check(rows: pl.DataFrame, name: str, column: str) -> None:
    nameless = rows.filter(pl.col("source").is_null())
    if nameless.height:
        raise InputError("The id is empty.", where=place(name, nameless["line"][0], column))
    again = rows.filter(~pl.col("source").is_first_distinct())
    if again.height:
        found = f"The id {quoted(again['source'][0])} occurs twice."
        raise InputError(found, where=place(name, again["line"][0], column))
