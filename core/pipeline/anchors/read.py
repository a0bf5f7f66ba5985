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
    """What was read."""

    golden_set: GoldenSet  # the record
    spans: pl.DataFrame  # frame of `TABLES["spans"]`
    notes: tuple[str, ...]  # decisions made on the way, as sentences


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
    """Read a golden set whose grades are anchored to documents."""
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
