"""Reads golden sets with spans: tables of query, document, place or quote, and grade."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from core.errors import InputError, UnknownNameError
from core.importers import Limits, Options
from core.importers.base import slug
from core.importers.columns import ROLES as KNOWN_ROLES
from core.importers.columns import no_column, normal
from core.importers.fields import numbers
from core.importers.grades import decide
from core.importers.piece import Piece
from core.importers.source import opened
from core.importers.tabular import Table, header, kind_of, read_table
from core.importers.text import place, quoted, shown
from core.records import GoldenSet
from core.tables import TABLES, frame

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
_PLACE = ("start_char", "end_char")
_FOUND = ("found_start", "found_end")
_KEY = ["query_id", "source", *_PLACE]


@dataclass(frozen=True, slots=True)
class Spans:
    """What was read.

    Attributes:
        golden_set: The record.
        spans: Frame of `TABLES["spans"]`.
        notes: Decisions made on the way, as sentences.
    """

    golden_set: GoldenSet
    spans: pl.DataFrame
    notes: tuple[str, ...]


def holds_spans(path: Path) -> bool:
    """Whether a file is a table of spans, by its columns; to tell it from judgements of passages."""
    try:
        with opened([path], Limits()) as (tree,):
            kind = kind_of(tree.pieces[0])
            roles = _roles(header(tree.pieces[0], kind), {}, path.name) if kind else {}
    except (InputError, UnknownNameError):
        return False
    return {"query_id", "source", "grade"} <= roles.keys() and bool({"quote", "start_char"} & roles.keys())


def read_spans(path: Path, documents: pl.DataFrame, options: Options | None = None) -> Spans:
    """Read a golden set whose grades are anchored to documents.

    Args:
        path: CSV, TSV, JSONL or Parquet with query_id, source, grade (`judge` is taken along), and in each
            row a place or a quote. A place is start_char, which counts from 0, and end_char, the one after
            the last character; a quote is text that stands once in the document, blanks and line breaks
            apart.
        documents: source and text.
        options: Collection, golden set, grade mapping and columns.

    Raises:
        InputError: Naming file, line and column: a document that is not there, a place outside of it or
            without text, a quote that is not found or found more than once, a grade that no mapping has, the
            same characters judged twice.
        UnknownNameError: A role of a column does not exist.
    """
    options = options or Options()
    with opened([path], options.limits) as (tree,):
        piece = tree.pieces[0]
        kind = kind_of(piece)
        if len(tree.pieces) > 1 or kind is None:
            raise InputError("This is not a table.", where=shown(path, 200), do="Offer one file.")
        rows = _rows(piece, read_table(piece, kind), options)
    rows = _placed(rows, documents, piece.name)
    mapping = decide(options.grades, set(rows["raw"].unique().to_list()), piece.name)
    collection = options.collection_id or "imported"
    chosen = slug(options.golden_set_id or f"{collection}-{slug(piece.stem)}")
    golden = GoldenSet(
        golden_set_id=chosen, collection_id=collection, name=shown(chosen), mapping=mapping.text
    )
    made = rows.with_columns(
        mapping.apply(pl.col("raw")).alias("grade"),
        pl.col("raw").cast(pl.Int16),
        golden_set_id=pl.lit(chosen),
    )
    spans, again = _once(made, piece.name)
    notes = (mapping.note, *([f"{piece.name}: {again} spans stand twice and count once."] if again else []))
    return Spans(golden, frame("spans", spans.select(list(TABLES["spans"])).to_dict()), notes)


def _roles(columns: Sequence[str], given: Mapping[str, str], name: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for role, column in given.items():
        if role not in ROLES:
            raise UnknownNameError("role of a column", role, ROLES, where=name)
        if column not in columns:
            raise no_column(column, columns, name)
        found[role] = column
    for role, aliases in ROLES.items():
        known = {normal(column): column for column in reversed(columns) if column not in found.values()}
        match = next((known[alias] for alias in aliases if alias in known), None)
        if role not in found and match:
            found[role] = match
    return found


def _rows(piece: Piece, table: Table, options: Options) -> pl.DataFrame:
    """query_id, source, start_char, end_char, quote, raw, judge and line of every row."""
    roles = _roles(table.rows.columns, options.columns, piece.name)
    needed = ["query_id", "source", "grade"] if "quote" in roles else ["query_id", "source", *_PLACE, "grade"]
    for role in needed:
        if role not in roles:
            do = "Spans need query_id, source, grade, and start_char with end_char or quote."
            raise no_column(role, table.rows.columns, piece.name, do)
    rows = table.taking(roles)
    absent = [pl.lit(None, pl.String).alias(role) for role in ROLES if role not in roles]
    rows = rows.with_columns(absent)
    raw = numbers(rows, "grade", piece.name, whole=True).cast(pl.Int64)
    places = [numbers(rows, column, piece.name, whole=True).cast(pl.Int64) for column in _PLACE]
    rows = rows.with_columns(raw.alias("raw"), *places)
    for column in ("query_id", "source"):
        _refuse(rows.filter(pl.col(column).is_null()), piece.name, "The id is empty.", column)
    _refuse(rows.filter(pl.col("raw").is_null()), piece.name, "The grade is empty.", "grade")
    _refuse(rows.filter(pl.col("raw").abs() > 32_767), piece.name, "The grade is out of range.", "grade")
    if rows.is_empty():
        raise InputError("The table has no rows.", where=piece.name)
    return rows


def _placed(rows: pl.DataFrame, documents: pl.DataFrame, name: str) -> pl.DataFrame:
    """The rows with their places, found by the quote where there are none, all of them within a document."""
    texts = documents.select("source", "text")
    known = rows.join(texts, on="source", how="left", maintain_order="left")
    absent = known.filter(pl.col("text").is_null())
    if absent.height:
        found = f"There is no document {quoted(absent['source'][0])}."
        listed = ", ".join(shown(source, 40) for source in texts["source"].head(5))
        raise InputError(found, where=place(name, absent["line"][0], "source"), do=f"There are {listed}…")
    unplaced = pl.col("start_char").is_null() | pl.col("end_char").is_null()
    wanting = known.filter(unplaced)
    _refuse(wanting.filter(pl.col("quote").is_null()), name, "Neither a place nor a quote.", "start_char")
    found_at = [(row["line"], *_find(row, name)) for row in wanting.iter_rows(named=True)]
    found_rows = pl.DataFrame(found_at, schema=dict.fromkeys(("line", *_FOUND), pl.Int64), orient="row")
    placed = known.join(found_rows, on="line", how="left", maintain_order="left").with_columns(
        pl.coalesce(found, given).alias(given) for found, given in zip(_FOUND, _PLACE, strict=True)
    )
    outside = (pl.col("start_char") < 0) | (pl.col("end_char") > pl.col("text").str.len_chars())
    bad = placed.filter(outside | (pl.col("start_char") >= pl.col("end_char")))
    if bad.height:
        row = bad.row(0, named=True)
        found = (
            f"Characters {row['start_char']} to {row['end_char']} are not in {quoted(row['source'])}, "
            f"which has {len(row['text']):,}."
        )
        raise InputError(found, where=place(name, row["line"], "start_char"))
    held = pl.col("text").str.slice("start_char", pl.col("end_char") - pl.col("start_char"))
    _refuse(placed.filter(held.str.strip_chars() == ""), name, "The span holds blanks only.", "start_char")
    return placed.drop("text", *_FOUND)


def _find(row: Mapping[str, Any], name: str) -> tuple[int, int]:
    """Where the quote of a row stands: its words, whatever the blanks between them."""
    words = [re.escape(word) for word in row["quote"].split()]
    places = [match.span() for match in re.finditer(r"\s+".join(words), row["text"])] if words else []
    if len(places) == 1:
        return places[0]
    where = place(name, row["line"], "quote")
    said = f"The quote {quoted(row['quote'], 60)} stands {len(places)} times in {quoted(row['source'])}."
    do = "Lengthen it, or give start_char and end_char." if places else "Quote the document word by word."
    raise InputError(said, where=where, do=do)


def _once(rows: pl.DataFrame, name: str) -> tuple[pl.DataFrame, int]:
    """The rows without exact repetitions, and how many those were."""
    single = rows.unique([*_KEY, "raw"], keep="first", maintain_order=True)
    twice = single.filter(~pl.struct(_KEY).is_first_distinct())
    if twice.height:
        row = twice.row(0, named=True)
        found = (
            f"Characters {row['start_char']} to {row['end_char']} of {quoted(row['source'])} are judged "
            f"twice for query {quoted(row['query_id'])}."
        )
        raise InputError(found, where=place(name, row["line"]))
    return single, rows.height - single.height


def _refuse(bad: pl.DataFrame, name: str, found: str, column: str) -> None:
    if bad.height:
        raise InputError(found, where=place(name, bad["line"][0], column))
