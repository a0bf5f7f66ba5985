"""What RAGGED counts as relevant: KILT provenance, compiled gold files, and its evaluations of retrievers.

A passage of the gold files is relevant (1); one that an evaluation found not to be among them is not (0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from core.importers.base import Import, LeftOut, Options
from core.importers.formats.ragged.files import EVALUATED, RELATED, once, passage
from core.importers.judgements import golden_set, left_out
from core.importers.read.jsonl import read_lines
from core.importers.read.jsons import at, expect, optional, texts
from core.importers.read.objects import objects
from core.importers.read.outline import outline
from core.importers.read.piece import Piece

_KILT: Mapping[str, pl.DataType] = {
    "id": pl.String(),
    "input": pl.String(),
    "output": pl.List(pl.Struct({"answer": pl.String(), "provenance": pl.List(pl.Struct(RELATED))})),
}
_RESULT = pl.Struct({"page_par_id": pl.String(), "page_par_id_match": pl.Boolean()})
_PAIR = pl.Schema({"query_id": pl.String(), "passage_id": pl.String(), "grade": pl.Int64()})
_ASKED = pl.Schema({"id": pl.String(), "input": pl.String()})


@dataclass(frozen=True)
class Gold:
    """What a file says of relevant passages."""

    piece: Piece  # the file
    asked: pl.DataFrame  # its questions: id, input (null where it has no texts)
    pairs: pl.DataFrame  # query_id, passage_id, grade (1 = among the gold passages, 0 = not), each pair once
    left: tuple[LeftOut, ...] = ()  # what of it is not taken


def kilt(piece: Piece) -> Gold:
    """Provenance of every answer of a data set in KILT's form."""
    rows = once(read_lines(piece, _KILT), piece.name)
    outputs = rows.select("id", "output").explode("output", empty_as_null=True).unnest("output")
    places = outputs.select("id", "provenance").explode("provenance", empty_as_null=True)
    places = places.filter(pl.col("provenance").is_not_null()).unnest("provenance")
    named = places.with_columns(
        page_id=pl.coalesce("page_id", "wikipedia_id"),
        start_par_id=pl.coalesce("start_par_id", "start_paragraph_id"),
        end_par_id=pl.coalesce("end_par_id", "end_paragraph_id", "start_par_id", "start_paragraph_id"),
    )
    whole = named.drop_nulls(["page_id", "start_par_id"])
    longer = whole.filter(pl.col("end_par_id") != pl.col("start_par_id")).height
    return _gold(
        piece,
        rows,
        whole.select(query_id="id", passage_id=passage(), grade=pl.lit(1)),
        *left_out(places.height - whole.height, "provenance without page and paragraph", piece.name),
        *left_out(longer, "provenance of several paragraphs: all but its first", piece.name),
    )


def compilation(piece: Piece) -> Gold:
    """A compiled gold file: {id, input, output{answer_set, title_set, page_id_set, page_par_id_set}}."""
    asked, pairs = [], []
    pages = 0
    for where, entry in objects(piece):
        query = expect(entry, "id", str, where)
        asked.append((query, optional(entry, "input", str, where)))
        held = expect(entry, "output", dict, where)
        passages = texts(held, "page_par_id_set", at(where, "output")) or []
        pairs += [(query, each, 1) for each in passages]
        pages += not passages
    lines = pl.int_range(1, pl.len() + 1).alias("line")
    rows = once(pl.DataFrame(asked, schema=_ASKED, orient="row").with_columns(lines), piece.name)
    return _gold(
        piece,
        rows,
        pl.DataFrame(pairs, schema=_PAIR, orient="row").with_columns(_paragraph("passage_id")),
        *left_out(pages, "questions without gold paragraphs", piece.name),
    )


def evaluation(piece: Piece) -> Gold:
    """Results by passage: whether each that a retriever found is among the gold passages."""
    key = next(each for each in EVALUATED if f"{each}[].page_id_match" in outline(piece))
    rows = once(read_lines(piece, {"id": pl.String(), key: pl.List(_RESULT)}), piece.name)
    results = rows.select("id", pl.col(key).alias("result")).explode("result", empty_as_null=True)
    results = results.filter(pl.col("result").is_not_null()).unnest("result")
    judged = results.drop_nulls(["page_par_id", "page_par_id_match"])
    pairs = judged.select(
        pl.col("id").alias("query_id"),
        _paragraph("page_par_id").alias("passage_id"),
        pl.col("page_par_id_match").cast(pl.Int64).alias("grade"),
    )
    return _gold(
        piece,
        rows.with_columns(pl.lit(None, pl.String).alias("input")),
        pairs,
        *left_out(results.height - judged.height, "results without page_par_id_match", piece.name),
    )


def _gold(piece: Piece, rows: pl.DataFrame, pairs: pl.DataFrame, *left: LeftOut) -> Gold:
    """What a file says, each pair once."""
    single = _pairs(pairs)
    again = left_out(pairs.height - single.height, "gold passages named twice: they count once", piece.name)
    return Gold(piece, rows.select("id", "input"), single, (*left, *again))


def _paragraph(column: str) -> pl.Expr:
    """``1000_4``, as the tool joins page and paragraph, as the id of the passage."""
    return pl.col(column).str.replace(r"_([^_]*)$", ":$1")


def _pairs(rows: pl.DataFrame) -> pl.DataFrame:
    """Each pair once, relevant if any row says so."""
    highest = rows.group_by("query_id", "passage_id", maintain_order=True).agg(pl.col("grade").max())
    return highest.cast(_PAIR)


def judgements(files: Sequence[Gold], options: Options) -> Import:
    """One golden set of all files: relevant where any says so."""
    left = tuple(entry for each in files for entry in each.left)
    pairs = [each.pairs for each in files if each.pairs.height]
    if not pairs:
        return Import(left_out=left)
    whole = _pairs(pl.concat(pairs)).with_columns(line=pl.int_range(1, pl.len() + 1))
    name = files[0].piece.name
    made = golden_set(whole, name, "gold", replace(options, grades=options.grades or "binary"), "RAGGED gold")
    note = (
        "Gold passages are relevant, passages that an evaluation found not to be gold are not; others are "
        "unjudged."
    )
    return replace(made, left_out=left, notes=(*made.notes, note))
