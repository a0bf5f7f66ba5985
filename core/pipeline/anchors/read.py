"""Reads golden sets with spans for an evaluation, which must hold for every question: none is left out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from core.errors import InputError, UnknownNameError
from core.importers import Limits, Options
from core.importers.formats.spans.placing import ROLES, are_spans, placed, span_rows, span_set
from core.importers.naming import roles_by
from core.importers.read.source import opened
from core.importers.read.tabular import header, kind_of, read_table
from core.importers.read.text import shown
from core.records import GoldenSet


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
            piece = tree.pieces[0]
            kind = kind_of(piece)
            return kind is not None and are_spans(roles_by(header(piece, kind), {}, ROLES, path.name))
    except (InputError, UnknownNameError):
        return False


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
        found = placed(span_rows(read_table(piece, kind), options), documents, piece.name)
    if found.misplaced:
        raise found.misplaced[0].first
    made = span_set(found.rows, piece.name, piece.stem, options)
    if len(made.golden_sets) > 1:
        judges = ", ".join(shown(each.judge) for each in made.golden_sets)
        raise InputError(
            f"Several judged the same characters: {judges}.",
            where=piece.name,
            do="Import the file and name the golden set of one of them, or merge them (judges merge).",
        )
    again = (f"{piece.name}: {each.count} {each.reason}." for each in made.left_out)
    return Spans(made.golden_sets[0], made.frames["spans"].lazy().collect(), (*made.notes, *again))
