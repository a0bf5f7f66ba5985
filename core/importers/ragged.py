"""RAGGED: what retrievers returned, and what readers answered from the first k passages.

A retriever file holds {id, input, output[0].provenance[{page_id, start_par_id, text, score}]}, a reader a
folder ``top_<k>`` for every k with {id, answer, gold_answers, answer_evaluation{…}}. A passage is a paragraph
of a page: ``page_id:start_par_id``. ``combined_metrics.json`` is not taken: its mean of rougel is
wrong; means are taken anew from the values of each question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from core.errors import InputError
from core.importers.base import (
    SURE,
    Format,
    Import,
    LeftOut,
    Options,
    collection_of,
    imported_run,
    merged,
    run_labels,
)
from core.importers.jsonl import read_lines
from core.importers.outline import outline
from core.importers.piece import Piece, Tree
from core.importers.ragged_readers import Reader, answers, readers
from core.importers.text import place, quoted, shown
from core.tables import frame

_PROVENANCE = pl.Struct(
    {"page_id": pl.String(), "start_par_id": pl.String(), "text": pl.String(), "score": pl.Float64()}
)
_RETRIEVED: Mapping[str, pl.DataType] = {
    "id": pl.String(),
    "input": pl.String(),
    "output": pl.List(pl.Struct({"provenance": pl.List(_PROVENANCE)})),
}
_TOP_KEY = re.compile(r"top_?\d{1,6}\..+")


@dataclass(frozen=True)
class _Retriever:
    """A retriever's lists: its name, its file, and query_id, rank, passage_id, score."""

    name: str
    piece: Piece
    lists: pl.DataFrame


class Ragged(Format):
    """Outputs of RAGGED's retrievers and readers."""

    name, title = "ragged", "RAGGED retriever and reader outputs"
    brings = ("queries", "passages", "rankings", "answers", "signals", "aggregates")
    takes = {  # noqa: RUF012
        "rankings": "provenance of the first output in its order; a passage is page_id:start_par_id",
        "answers": "answers of every top_<k>, graded by the measure closest to correctness or the mapped one",
        "aggregates": "means of every measure at every k, taken from the values of each question",
    }
    recognised = "output[].provenance[].page_id, or answer_evaluation beside an id"
    traps = (
        "combined_metrics.json is ignored: its mean of rougel is wrong.",
        "The k of answers is the folder's: a reader's file without its top_<k> is refused.",
    )
    names_collection = 1

    def sniff(self, probe: Tree) -> float:
        """Provenance of pages, or evaluated answers."""
        kinds = [_kind(piece) for piece in probe.pieces]
        return SURE if {"retriever", "reader"} & set(kinds) else 0.0

    def mine(self, probe: Tree) -> tuple[Piece, ...]:
        """Files of retrievers and readers, and the combined measures, which are left out."""
        return tuple(piece for piece in probe.pieces if _kind(piece))

    def read(self, trees: Sequence[Tree], options: Options) -> Import:
        """Read retrievers and readers; a reader that read one of the retrievers is one run with it.

        Raises:
            InputError: A field is not of its type, a question stands twice, or the k of answers is not known.
        """
        retrieved: list[tuple[str, pl.DataFrame, Piece]] = []
        places = {f"{tree.name}/{piece.relative}": (piece, tree) for tree in trees for piece in tree.pieces}
        for path, (piece, _) in places.items():
            if _kind(piece) == "retriever":
                retrieved.append((path, _retrieved(piece), piece))
        retrievers = [_Retriever(path, piece, _lists(rows, piece)) for path, rows, piece in retrieved]
        reading = readers({path: each for path, each in places.items() if _kind(each[0]) == "reader"})
        if not retrievers and not reading:
            raise InputError("It holds no output of a retriever or reader.", where=trees[0].name)
        combined = [piece for piece, _ in places.values() if _kind(piece) == "combined"]
        parts = [
            Import(collections=collection_of(options, "imported: RAGGED"), left_out=_unused(combined)),
            _collection([(rows, piece) for _, rows, piece in retrieved], reading, options),
            *_runs(retrievers, reading, options),
        ]
        return merged(parts)


def _kind(piece: Piece) -> str | None:
    shape = outline(piece)
    if {"id", "output[].provenance[].page_id"} <= shape.keys():
        return "retriever"
    if {"id", "answer_evaluation"} <= shape.keys():
        return "reader"
    tops = [path for path in shape if _TOP_KEY.fullmatch(path)]
    return "combined" if tops and all(path == "" or path.startswith("top") for path in shape) else None


def _unused(combined: Sequence[Piece]) -> tuple[LeftOut, ...]:
    why = "files of combined measures: their mean of rougel is wrong; means are taken anew"
    return (LeftOut(len(combined), why, combined[0].name),) if combined else ()


def _retrieved(piece: Piece) -> pl.DataFrame:
    """id, input, line, and page_id, start_par_id, text, score of each place (null where a list is empty)."""
    rows = read_lines(piece, _RETRIEVED)
    nameless = rows.filter(pl.col("id").fill_null("") == "")
    if nameless.height:
        raise InputError("The line has no id.", where=place(piece.name, nameless["line"][0], "id"))
    again = rows.filter(~pl.col("id").is_first_distinct())
    if again.height:
        where = place(piece.name, again["line"][0], "id")
        raise InputError(f"The question {quoted(again['id'][0])} stands twice.", where=where)
    first = pl.col("output").list.first().struct.field("provenance")
    found = rows.select("id", "input", "line", first.alias("provenance"))
    return found.explode("provenance", empty_as_null=True).unnest("provenance")


def _passage() -> pl.Expr:
    return pl.format("{}:{}", "page_id", pl.col("start_par_id").fill_null("0"))


def _lists(rows: pl.DataFrame, piece: Piece) -> pl.DataFrame:
    there = rows.filter(pl.col("page_id").fill_null("") != "")
    if there.is_empty():
        raise InputError("No list holds a passage with a page_id.", where=piece.name)
    ranked = there.with_columns(passage_id=_passage()).unique(
        ["id", "passage_id"], keep="first", maintain_order=True
    )
    return ranked.select(
        pl.col("id").alias("query_id"),
        pl.int_range(1, pl.len() + 1).over("id").alias("rank"),
        "passage_id",
        pl.when(pl.col("score").is_finite()).then("score").alias("score"),
    )


def _collection(
    retrieved: Sequence[tuple[pl.DataFrame, Piece]], readers: Sequence[Reader], options: Options
) -> Import:
    """Questions and passages of all retrievers, each once, and what their lists lack."""
    if not retrieved:
        why = "questions without a text: no output of a retriever was offered"
        return Import(left_out=(LeftOut(1, why, next(iter(readers[0].files.values())).name),))
    collection = pl.lit(options.collection_id).alias("collection_id")
    rows = pl.concat([rows for rows, _ in retrieved])
    asked = rows.filter(pl.col("input").is_not_null()).unique("id", keep="first", maintain_order=True)
    queries = asked.select(
        collection,
        pl.col("id").alias("query_id"),
        pl.col("input").alias("text"),
        pl.lit([], pl.List(pl.String)).alias("tags"),
    )
    there = rows.filter((pl.col("page_id").fill_null("") != "") & pl.col("text").is_not_null())
    passages = (
        there.with_columns(passage_id=_passage())
        .unique("passage_id", keep="first", maintain_order=True)
        .select(collection, "passage_id", "text", pl.col("page_id").alias("source"))
    )
    frames = {
        "queries": frame("queries", queries.to_dict()),
        "passages": frame("passages", passages.to_dict()),
    }
    left = [entry for rows, piece in retrieved for entry in _lacking(rows, piece)]
    return Import(
        frames={table: made for table, made in frames.items() if made.height},
        left_out=tuple(left),
        notes=("A passage is named page_id:start_par_id; lists keep their order.",),
    )


def _lacking(rows: pl.DataFrame, piece: Piece) -> list[LeftOut]:
    there = rows.filter(pl.col("page_id").fill_null("") != "")
    repeats = there.height - there.select(pl.struct("id", "page_id", "start_par_id").n_unique()).item()
    silent = rows["id"].n_unique() - there["id"].n_unique()
    counted = (
        (repeats, "passages that a list repeats: the first place counts"),
        (silent, "questions with an empty list"),
        (rows.height - there.height - silent, "places of lists without a page_id"),
    )
    return [LeftOut(count, why, piece.name) for count, why in counted if count > 0]


def _runs(retrievers: Sequence[_Retriever], reading: Sequence[Reader], options: Options) -> list[Import]:
    pairs: list[tuple[_Retriever | None, Reader | None]] = [
        (_read_by(reader, retrievers), reader) for reader in reading
    ]
    used = {retriever.name for retriever, _ in pairs if retriever}
    pairs += [(each, None) for each in retrievers if each.name not in used]
    several = len(retrievers) > 1
    own = [(_label(each, reader, several=several), each.piece.stem if each else "") for each, reader in pairs]
    return [
        _run(retriever, reader, label, options)
        for (retriever, reader), label in zip(pairs, run_labels(own, options), strict=True)
    ]


def _read_by(reader: Reader, retrievers: Sequence[_Retriever]) -> _Retriever | None:
    """The retriever whose output a reader read: the only one, or the only one that its path names."""
    if len(retrievers) == 1:
        return retrievers[0]
    parts = [_parts(each.name) for each in retrievers]
    named = [
        each
        for each, mine in zip(retrievers, parts, strict=True)
        if (mine - set().union(*(other for other in parts if other is not mine))) & _parts(reader.name)
    ]
    return named[0] if len(named) == 1 else None


def _parts(path: str) -> set[str]:
    return {part.removesuffix(".jsonl") for part in path.lower().split("/")}


def _label(retriever: _Retriever | None, reader: Reader | None, *, several: bool) -> str:
    names = []
    if retriever:
        folders = retriever.name.split("/")[:-1]
        names.append(" · ".join([*folders[-1:], retriever.piece.stem] if several else [retriever.piece.stem]))
    names += [reader.name.strip("/").replace("/", " · ")] if reader else []
    return " + ".join(names)


def _run(retriever: _Retriever | None, reader: Reader | None, label: str, options: Options) -> Import:
    pieces = [*([retriever.piece] if retriever else []), *(reader.files.values() if reader else ())]
    spec = {"name": shown(label, 200)}
    if retriever:
        sparse = "bm25" in retriever.name.lower()
        spec |= {"mode": "sparse", "sparse": "bm25"} if sparse else {"retriever": shown(retriever.piece.stem)}
    run = imported_run(
        options, label, "-".join(sorted(piece.digest for piece in pieces)), importer=Ragged.name,
        decided={"retriever": shown(retriever.name) if retriever else None,
                 "ks": list(reader.files) if reader else []}, spec=spec,
    )  # fmt: skip
    parts = [Import(runs=(run,))]
    if retriever:
        rows = retriever.lists.with_columns(run_id=pl.lit(run.run_id), stage=pl.lit("final"))
        parts.append(Import(frames={"rankings": frame("rankings", rows.to_dict())}))
    elif reader:
        parts.append(Import(notes=(f"{shown(label)}: what it read is not known, so it has no rankings.",)))
    parts += [answers(piece, k, run, options) for k, piece in (reader.files.items() if reader else ())]
    return merged(parts)
