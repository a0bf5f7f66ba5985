"""The kinds of RAGGED's files, recognised by their shape, with their rankings and relevant passages.

Passages of KILT provenance or of compiled gold files are relevant (1); passages that an evaluation of a
retriever found not to be among them are not relevant (0).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from core.errors import InputError
from core.importers.base import Import, LeftOut, Options, counted
from core.importers.judgements import golden_set
from core.importers.read.jsons import at, expect, objects, optional, outline, texts
from core.importers.read.member import Member, per_member
from core.importers.read.rows import again, read_lines, refuse
from core.importers.report import TAKEN
from core.importers.runs import REPEATED
from core.tables import schema

_EVALUATED = ("passage-level results", "page-level results")
"""Keys of the passages of an evaluation, in newer and older files."""
_RELATED = schema("page_id wikipedia_id start_par_id start_paragraph_id end_par_id end_paragraph_id")
"""Fields of provenance in a data set of KILT's form."""
_PLACE = "output[].provenance[]"
_PROVENANCE = pl.Struct(
    {"page_id": pl.String(), "start_par_id": pl.String(), "text": pl.String(), "score": pl.Float64()}
)
_RETRIEVED: Mapping[str, pl.DataType] = {
    "id": pl.String(),
    "input": pl.String(),
    "output": pl.List(pl.Struct({"provenance": pl.List(_PROVENANCE)})),
}
_TOP_KEY = re.compile(r"top_?\d{1,6}\..+")
_BY_K = re.compile(r"\d{1,6}\.[\w @-]*(@k|accuracy)[\w -]*")
_Shape = Mapping[str, frozenset[str]]

_KILT: Mapping[str, pl.DataType] = {
    "id": pl.String(),
    "input": pl.String(),
    "output": pl.List(pl.Struct({"answer": pl.String(), "provenance": pl.List(pl.Struct(_RELATED))})),
}
_RESULT = pl.Struct({"page_par_id": pl.String(), "page_par_id_match": pl.Boolean()})
_PAIR = pl.Schema({"query_id": pl.String(), "passage_id": pl.String(), "grade": pl.Int64()})
RIGHT = pl.Schema({"query_id": pl.String(), "answer": pl.String()})  # Correct answers
SURELY = frozenset({"reader", "kilt", "retriever", "compilation", "evaluation"})
"""Kinds that identify a file or folder as RAGGED's; the others occur beside them."""
_NO_PLACE = "right answers are those of the files of gold and of readers"
_MATCHES = "page_par_id_match is what judges passages"
_PLACES = {"page_id": TAKEN, "start_par_id": TAKEN, "text": TAKEN, "score": TAKEN}
_SAID = {
    "id": TAKEN, "input": TAKEN, "answer": TAKEN, "gold_answers": TAKEN,
    "retrieved_passages": "the tool writes the passages of one question for all",
}  # fmt: skip
PARTS: Mapping[str, Mapping[str, str] | str] = {
    "": "no output of a retriever or reader",
    "retriever": {
        "id": TAKEN, "input": TAKEN, "output.answer": _NO_PLACE,
        **{f"output.provenance.{key}": verdict for key, verdict in _PLACES.items()},
    },
    "kilt": {
        "id": TAKEN, "input": TAKEN, "output.answer": TAKEN,
        **{f"output.provenance.{key}": TAKEN for key in _RELATED},
    },
    "compilation": {
        "id": TAKEN, "input": TAKEN, "output.answer_set": TAKEN, "output.page_par_id_set": TAKEN,
        "output.page_id_set": "passages are judged, not pages",
    },
    "evaluation": {
        "id": TAKEN, "gold provenance metadata": "the gold passages are counted anew",
        **{f"{key}.page_par_id": TAKEN for key in _EVALUATED},
        **{f"{key}.page_par_id_match": TAKEN for key in _EVALUATED},
        **{f"{key}.*": _MATCHES for key in _EVALUATED},
    },
    "reader": {**_SAID, "answer_evaluation": TAKEN},
    "raw": _SAID,
    "combined": "its mean of rougel is wrong; means are taken anew",
    "by k": "a retriever's lists and the gold passages give these means",
    "lengths": "it does not say of which question",
}  # fmt: skip
"""Kind → the part of a file that is taken, or why the file isn't."""


def _is_kilt(shape: _Shape) -> bool:
    """Return whether this is KILT data: provenance pages, without a retriever's text or score."""
    pages = shape.keys() & {f"{_PLACE}.page_id", f"{_PLACE}.wikipedia_id"}
    retrieved = shape.keys() & {f"{_PLACE}.text", f"{_PLACE}.score"}
    return shape.keys() >= {"id", "output[].answer"} and bool(pages) and not retrieved


def _is_combined(shape: _Shape) -> bool:
    tops = any(_TOP_KEY.fullmatch(path) for path in shape)
    return tops and all(path == "" or path.startswith("top") for path in shape)


_KINDS: Mapping[str, Callable[[_Shape], bool]] = {
    "reader": lambda shape: shape.keys() >= {"id", "answer_evaluation"},
    "kilt": _is_kilt,
    "retriever": lambda shape: shape.keys() >= {"id", f"{_PLACE}.page_id"},
    "compilation": lambda shape: bool(shape.keys() & {"[].output.page_par_id_set", "[].output.page_id_set"}),
    "evaluation": lambda shape: any(f"{key}[].page_id_match" in shape for key in _EVALUATED),
    "raw": lambda shape: shape.keys() >= {"id", "answer", "retrieved_passages"},
    "lengths": lambda shape: "[].context_token_length_after_truncation" in shape,
    "combined": _is_combined,
    "by k": lambda shape: any(_BY_K.fullmatch(path) for path in shape),
}


@per_member
def kind(member: Member) -> str:
    """Return the kind of a RAGGED file, or "" if it isn't one."""
    if member.file in ("combined_metrics.json", "combined_metrics.csv"):
        return "combined"
    shape = outline(member)
    return next((name for name, fits in _KINDS.items() if fits(shape)), "")


def once(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the rows unchanged after checking that each has an id (column `id`), each question once."""
    refuse(rows.filter(pl.col("id").fill_null("") == ""), "The line has no id.", name, "id")
    refuse(again(rows, "id"), "The question {id} stands twice.", name, "id")
    return rows


def retrieved(member: Member) -> pl.DataFrame:
    """Return one row per retrieved passage: id, input, line, `later`, page_id, start_par_id, text, score.

    Passage columns are null for an empty list; `later` counts passages in a question's further lists.
    """
    rows = once(read_lines(member, _RETRIEVED), member.name)
    first = pl.col("output").list.first().struct.field("provenance")
    later = pl.col("output").list.slice(1).list.eval(pl.element().struct.field("provenance").list.len())
    listed = rows.select("id", "input", "line", later.list.sum().alias("later"), first.alias("provenance"))
    return listed.explode("provenance", empty_as_null=True).unnest("provenance")


def passage() -> pl.Expr:
    """Return the id of a passage, a paragraph of a page: ``page_id:start_par_id``."""
    return pl.format("{}:{}", "page_id", pl.col("start_par_id").fill_null("0"))


def lists(rows: pl.DataFrame, member: Member) -> pl.DataFrame:
    """Return rankings of a retriever: query_id, rank, passage_id, score."""
    there = rows.filter(pl.col("page_id").fill_null("") != "")
    if there.is_empty():
        raise InputError("No list holds a passage with a page_id.", where=member.name)
    ranked = there.with_columns(passage_id=passage()).unique(
        ["id", "passage_id"], keep="first", maintain_order=True
    )
    return ranked.select(
        "passage_id",
        query_id="id",
        rank=pl.int_range(1, pl.len() + 1).over("id"),
        score=pl.when(pl.col("score").is_finite()).then("score"),
    )


def lacking(rows: pl.DataFrame, member: Member) -> tuple[LeftOut, ...]:
    """Count missing and repeated entries in the lists of a retriever."""
    there = rows.filter(pl.col("page_id").fill_null("") != "")
    repeats = there.height - there.select(pl.struct("id", "page_id", "start_par_id").n_unique()).item()
    later = int(rows.unique("id")["later"].sum())
    silent = rows["id"].n_unique() - there["id"].n_unique()
    left = {
        REPEATED: repeats,
        "questions with an empty list": silent,
        "places of lists after the first of a question": later,
        "places of lists without a page_id": rows.height - there.height - silent,
    }
    return counted(left, member.name)


@dataclass(frozen=True)
class Gold:
    """Relevant passages according to a file."""

    member: Member  # the file
    asked: pl.DataFrame  # its questions: id, input (null if it has no texts)
    pairs: pl.DataFrame  # query_id, passage_id, grade (1 = among the gold passages, 0 = not), each pair once
    right: pl.DataFrame  # columns of `RIGHT`
    left: tuple[LeftOut, ...]  # the parts that are not taken


def kilt(member: Member) -> Gold:
    """Return the provenance of every answer of a data set in KILT's form."""
    rows = once(read_lines(member, _KILT), member.name)
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
    pairs = whole.select(query_id="id", passage_id=passage(), grade=pl.lit(1))
    left = {
        "provenance without page and paragraph": places.height - whole.height,
        "provenance of several paragraphs: all but its first": longer,
    }
    right = outputs.select(query_id="id", answer="answer").drop_nulls()
    return _gold(member, rows.select("id", "input"), pairs, left, right)


def compilation(member: Member) -> Gold:
    """Read a compiled gold file: {id, input, output{answer_set, title_set, page_id_set, page_par_id_set}}."""
    asked, pairs, right = [], [], []
    pages = 0
    for where, entry in objects(member):
        query = expect(entry, "id", str, where)
        asked.append((query, optional(entry, "input", str, where)))
        held = expect(entry, "output", dict, where)
        passages = texts(held, "page_par_id_set", at(where, "output")) or []
        pairs += [(query, paragraph, 1) for paragraph in passages]
        right += [(query, text) for text in texts(held, "answer_set", at(where, "output")) or ()]
        pages += not passages
    rows = pl.DataFrame(asked, schema={"id": pl.String, "input": pl.String}, orient="row")
    once(rows.with_columns(line=pl.int_range(1, pl.len() + 1)), member.name)
    named = pl.DataFrame(pairs, schema=_PAIR, orient="row").with_columns(_paragraph("passage_id"))
    left = {"questions without gold paragraphs": pages}
    return _gold(member, rows, named, left, pl.DataFrame(right, schema=RIGHT, orient="row"))


def evaluation(member: Member) -> Gold:
    """Return results by passage: whether each retrieved one is among the gold passages."""
    key = next(name for name in _EVALUATED if f"{name}[].page_id_match" in outline(member))
    rows = once(read_lines(member, {"id": pl.String(), key: pl.List(_RESULT)}), member.name)
    results = rows.select("id", pl.col(key).alias("result")).explode("result", empty_as_null=True)
    results = results.filter(pl.col("result").is_not_null()).unnest("result")
    judged = results.drop_nulls(["page_par_id", "page_par_id_match"])
    pairs = judged.select(
        query_id="id", passage_id=_paragraph("page_par_id"), grade=pl.col("page_par_id_match").cast(pl.Int64)
    )
    left = {"results without page_par_id_match": results.height - judged.height}
    asked = rows.select("id", input=pl.lit(None, pl.String))
    return _gold(member, asked, pairs, left, RIGHT.to_frame())


def _gold(
    member: Member, asked: pl.DataFrame, pairs: pl.DataFrame, left: Mapping[str, int], right: pl.DataFrame
) -> Gold:
    single = _pairs(pairs)
    counts = {**left, "gold passages named twice: they count once": pairs.height - single.height}
    return Gold(member, asked, single, right, counted(counts, member.name))


def _paragraph(column: str) -> pl.Expr:
    """Convert ``1000_4``, page and paragraph as joined by the tool, to the id of the passage."""
    return pl.col(column).str.replace(r"_([^_]*)$", ":$1")


def _pairs(rows: pl.DataFrame) -> pl.DataFrame:
    """Return each pair once, relevant if any row says so."""
    highest = rows.group_by("query_id", "passage_id", maintain_order=True).agg(pl.col("grade").max())
    return highest.cast(_PAIR)


def judgements(files: Sequence[Gold], options: Options) -> Import:
    """Return one golden set from all files, in which a passage is relevant if any file says so."""
    left = tuple(entry for file in files for entry in file.left)
    pairs = [file.pairs for file in files if file.pairs.height]
    if not pairs:
        return Import(left_out=left)
    whole = _pairs(pl.concat(pairs)).with_columns(line=pl.int_range(1, pl.len() + 1))
    name = files[0].member.name
    imported = golden_set(
        whole, name, "gold", replace(options, grades=options.grades or "binary"), "RAGGED gold"
    )
    note = (
        "Gold passages are relevant, passages that an evaluation found not to be gold are not; others are "
        "unjudged."
    )
    return replace(imported, left_out=left, notes=(*imported.notes, note))
