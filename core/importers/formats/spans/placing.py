"""Judged spans in a table, and their location in documents: by offsets, or by a quote."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from core.errors import InputError
from core.importers.base import DocumentsOf, Import, Options, counted
from core.importers.judgements import golden_set
from core.importers.naming import ROLES as KNOWN_ROLES
from core.importers.naming import roles_by
from core.importers.read.rows import identified, numbers, refuse
from core.importers.read.tabular import Table
from core.importers.read.text import no_column, place, quoted, shown
from core.tables import Frame, schema

PLACE = ("start_char", "end_char")
_FOUND = schema("line:int64 found_start:int64 found_end:int64 times:int64")
_ABSENT, _NOT_THERE, _TWICE, _OUTSIDE, _BLANK = (
    "spans of documents that are not there",
    "quotes that are not in their document",
    "quotes that stand more than once in their document",
    "places outside of their document",
    "spans of blanks only",
)

ROLES: Mapping[str, tuple[str, ...]] = {
    "query_id": ("query_id", *KNOWN_ROLES["query_id"].aliases),
    "source": (
        *("source", "document", "doc_id", "docid", "document_id"),
        *("file", "path", "url", "passage_id", "doc"),
    ),
    "start_char": ("start_char", "start", "begin", "char_start", "start_offset", "from"),
    "end_char": ("end_char", "end", "stop", "char_end", "end_offset", "to"),
    "quote": ("quote", "evidence", "snippet", "excerpt", "span", "answer_text"),
    "grade": ("grade", *KNOWN_ROLES["grade"].aliases),
    "judge": ("judge", *KNOWN_ROLES["judge"].aliases),
}
"""Role → the column names that stand for it."""
NEEDS = "Spans need query_id, source, grade, and start_char with end_char or quote."


@dataclass(frozen=True, slots=True)
class Misplaced:
    """Spans that cannot be located, for one reason."""

    count: int  # how many
    reason: str  # why, in words
    first: InputError  # the error about the first of them


@dataclass(frozen=True, slots=True)
class PlacedSpan:
    """Spans with their locations."""

    rows: pl.DataFrame  # spans within a document, with start_char and end_char filled in
    misplaced: tuple[Misplaced, ...]  # the others by reason, in order of the first line


def placed(rows: pl.DataFrame, documents: pl.DataFrame, name: str) -> PlacedSpan:
    """Find the location of every span that has none, and check the given ones.

    Args:
        rows: source, start_char, end_char (Int64), quote, line; a quote if a location is missing.
        documents: source and text.
    """
    known = rows.join(documents.select("source", "text"), on="source", how="left", maintain_order="left")
    unplaced = pl.any_horizontal(pl.col(PLACE).is_null()) & pl.col("text").is_not_null()
    looked = [(row["line"], *_find(row)) for row in known.filter(unplaced).iter_rows(named=True)]
    places = pl.DataFrame(looked, schema=_FOUND, orient="row")
    known = known.join(places, on="line", how="left", maintain_order="left").with_columns(
        start_char=pl.coalesce("found_start", "start_char"), end_char=pl.coalesce("found_end", "end_char")
    )
    judged = known.with_columns(_wrong().alias("wrong"))
    bad = judged.filter(pl.col("wrong").is_not_null()).sort("line")
    misplaced = tuple(
        Misplaced(part.height, part["wrong"][0], _error(part.row(0, named=True), documents, name))
        for part in bad.partition_by("wrong", maintain_order=True)
    )
    return PlacedSpan(judged.filter(pl.col("wrong").is_null()).select(rows.columns), misplaced)


def _find(row: Mapping[str, Any]) -> tuple[int | None, int | None, int]:
    """Find where the quote of a row occurs first (by words, ignoring blanks), and how often."""
    words = [re.escape(word) for word in row["quote"].split()]
    places = [match.span() for match in re.finditer(r"\s+".join(words), row["text"])] if words else []
    return (*(places[0] if places else (None, None)), len(places))


def _wrong() -> pl.Expr:
    start, end, text = pl.col("start_char"), pl.col("end_char"), pl.col("text")
    reasons = {
        _ABSENT: text.is_null(),
        _NOT_THERE: pl.col("times") == 0,
        _TWICE: pl.col("times") > 1,
        _OUTSIDE: (start < 0) | (end > text.str.len_chars()) | (start >= end),
        _BLANK: text.str.slice("start_char", end - start).str.strip_chars() == "",
    }
    return pl.coalesce(pl.when(holds).then(pl.lit(reason)) for reason, holds in reasons.items())


def _error(row: Mapping[str, Any], documents: pl.DataFrame, name: str) -> InputError:
    wrong, source, do, column = row["wrong"], quoted(row["source"]), "", "start_char"
    if wrong == _ABSENT:
        listed = ", ".join(shown(document, 40) for document in documents["source"].head(5))
        problem, column = f"There is no document {source}.", "source"
        do = f"There are {listed}…" if listed else ""
    elif wrong in (_NOT_THERE, _TWICE):
        problem = f"The quote {quoted(row['quote'], 60)} stands {row['times']} times in {source}."
        column = "quote"
        longer = "Lengthen it, or give start_char and end_char."
        do = longer if wrong == _TWICE else "Quote the document word by word."
    elif wrong == _OUTSIDE:
        at = f"Characters {row['start_char']} to {row['end_char']}"
        problem = f"{at} are not in {source}, which has {len(row['text']):,}."
    else:
        problem = "The span holds blanks only."
    return InputError(problem, where=place(name, row["line"], column), do=do)


def are_spans(roles: Mapping[str, str]) -> bool:
    """Return whether columns with these roles make a table of spans."""
    return {"query_id", "source", "grade"} <= roles.keys() and bool({"quote", "start_char"} & roles.keys())


def span_rows(table: Table, options: Options) -> pl.DataFrame:
    """Return the judged spans of a table, as given.

    Returns:
        query_id, source, start_char, end_char (null if there is a quote), quote, grade (text), judge and
        line of every row.

    Raises:
        InputError: A column, id, location or quote is missing, or a location is not an integer.
        UnknownNameError: A column's role does not exist.
    """
    roles = roles_by(table.rows.columns, options.columns, ROLES, table.name)
    needed = ("query_id", "source", *(() if "quote" in roles else PLACE), "grade")
    for role in needed:
        if role not in roles:
            raise no_column(role, table.rows.columns, table.name, NEEDS)
    rows = table.taking(roles)
    rows = rows.with_columns(pl.lit(None, pl.String).alias(role) for role in ROLES if role not in roles)
    places = [numbers(rows, column, table.name, whole=True).cast(pl.Int64) for column in PLACE]
    rows = identified(rows.with_columns(places), table.name, "query_id", "source")
    nowhere = rows.filter(pl.any_horizontal(pl.col(PLACE).is_null()) & pl.col("quote").is_null())
    refuse(nowhere, "Neither a place nor a quote.", table.name, "start_char", do=NEEDS)
    if rows.is_empty():
        raise InputError("The table has no rows.", where=table.name)
    return rows


def span_set(rows: pl.DataFrame, name: str, stem: str, options: Options) -> Import:
    """Make a golden set of located spans, or one per judge if several judged the same.

    Args:
        rows: As `core.importers.formats.spans.placing.placed` returns them.
        stem: Name of the golden set if the options give none.

    Raises:
        InputError: A grade isn't an integer or is empty, no mapping fits, or characters are judged twice.
    """
    key = ["query_id", "source", *PLACE, "grade", "judge"]
    single = rows.with_columns(numbers(rows, "grade", name, whole=True)).unique(
        key, keep="first", maintain_order=True
    )
    imported = golden_set(single, name, stem, options, table="spans")
    left = {"spans that stand twice: they count once": rows.height - single.height}
    return replace(imported, left_out=counted(left, name))


@dataclass(frozen=True)
class _Brought:
    """Documents from the passages of an import first, then from the caller."""

    passages: Frame
    ids: frozenset[str]
    behind: DocumentsOf | None

    def __call__(self, collection_id: str, sources: Sequence[str]) -> pl.DataFrame:
        if collection_id not in self.ids:
            return texts(self.behind, collection_id, sources)
        own = (pl.col("collection_id") == collection_id) & pl.col("passage_id").is_in(list(sources))
        rows = self.passages.lazy().filter(own).collect()
        return rows.select(source="passage_id", text=pl.col("text").fill_null(""))


def texts(documents: DocumentsOf | None, collection_id: str, sources: Sequence[str]) -> pl.DataFrame:
    """Return the named documents of a collection, possibly none."""
    if documents is None:
        return pl.DataFrame(schema={"source": pl.String, "text": pl.String})
    return documents(collection_id, sources)


def with_brought(options: Options, imported: Import) -> Options:
    """Return the options with the passages of an import added to the available documents."""
    passages = imported.frames.get("passages")
    if passages is None:
        return options
    ids = frozenset(passages.lazy().select(pl.col("collection_id").unique()).collect().to_series())
    return replace(
        options,
        documents=_Brought(passages, ids, options.documents),
        known_collections=options.known_collections | ids,
    )
