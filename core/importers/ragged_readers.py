"""What readers of RAGGED answered from the first k passages: a folder ``top_<k>`` for every k."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from core.errors import InputError
from core.importers.base import Import, LeftOut, Options, merged
from core.importers.jsons import MOST_BYTES, json_rows, number, optional
from core.importers.outcomes import graded_by, means
from core.importers.piece import Piece, Tree
from core.importers.samples import VALUE
from core.importers.text import place, quoted
from core.records import Run

_TOP = re.compile(r"(?:^|/)top_?(\d{1,6})(?:/|$)")


@dataclass(frozen=True)
class Reader:
    """A reader's files by k, under the folder that holds its ``top_<k>``."""

    name: str
    files: Mapping[int, Piece]


def readers(places: Mapping[str, tuple[Piece, Tree]]) -> list[Reader]:
    """Group the files of readers.

    Args:
        places: Path within the offer → a reader's file, and what was offered.

    Raises:
        InputError: From how many passages a file's answers were written is not known.
    """
    found: dict[str, dict[int, Piece]] = {}
    for path, (piece, tree) in places.items():
        folder = path.rsplit("/", 1)[0]
        folder = folder if _TOP.search(folder) or not tree.parent else tree.parent
        matched = max(_TOP.finditer(folder), key=lambda match: match.start(), default=None)
        if matched is None or int(matched[1]) < 1:
            raise InputError(
                "From how many passages these answers were written is not known.",
                where=piece.name,
                do="Offer the reader's folder, with its folders top_1, top_2…",
            )
        name = folder[: matched.start()] or piece.stem
        files = found.setdefault(name, {})
        if int(matched[1]) in files:
            raise InputError(f"Two files hold the answers at k = {matched[1]}.", where=piece.name)
        files[int(matched[1])] = piece
    return [Reader(name, dict(sorted(files.items()))) for name, files in found.items()]


def answers(piece: Piece, k: int, run: Run, options: Options) -> Import:
    """Answers from the first k passages with their measures, and the means of those.

    Raises:
        InputError: A question stands twice or has no id, or a measure is no number.
    """
    said: list[tuple[str, str | None]] = []
    values: list[tuple[str, str, float | None]] = []
    golden = 0
    for line, row in json_rows(piece, MOST_BYTES):
        where = place(piece.name, line)
        query = row.get("id")
        if isinstance(query, int) and not isinstance(query, bool):
            query = str(query)
        if not isinstance(query, str) or not query:
            raise InputError("The line has no id.", where=where)
        said.append((query, optional(row, "answer", str, where)))
        golden += bool(row.get("gold_answers"))
        measured = optional(row, "answer_evaluation", dict, where) or {}
        values += [
            (query, name, number(measured, name, where))
            for name, value in measured.items()
            if value is None or (isinstance(value, int | float) and not isinstance(value, bool))
        ]
    written = pl.DataFrame(said, schema={"query_id": pl.String, "text": pl.String}, orient="row")
    again = written.filter(~pl.col("query_id").is_first_distinct())
    if again.height:
        raise InputError(f"The question {quoted(again['query_id'][0])} stands twice.", where=piece.name)
    long = pl.DataFrame(values, schema=VALUE, orient="row")
    at_k = pl.lit(k, pl.Int32).alias("k")
    made = graded_by(
        written.with_columns(at_k),
        long.with_columns(at_k),
        run.run_id,
        piece.name,
        options.columns.get("grade"),
    )
    figures = means(long, run.run_id, k)
    left = LeftOut(golden, "reference answers (gold_answers): there is no place for them", piece.name)
    return merged(
        (
            made,
            Import(frames={"aggregates": figures} if figures.height else {}, left_out=(left,) * bool(golden)),
        )
    )
