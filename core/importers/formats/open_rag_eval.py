"""open-rag-eval tables: a row per passage with its query, the repeat of the query, and the answer.

The answer stands on the first row of a query or on all of them. Passage ids are often places (``[1]``,
``[2]``) that begin anew with every query: where one id has several texts, passages are named by their texts.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from core.errors import InputError
from core.importers.account import TAKEN, Parts
from core.importers.base import LOOK_ROWS, SURE, Format, Import, LeftOut, Look, Options, merged
from core.importers.judgements import without_empty_ids
from core.importers.read.piece import Piece, Tree
from core.importers.read.tabular import first_rows, header, kind_of, read_table
from core.importers.read.text import place, quoted
from core.importers.samples import SAMPLE, VALUE, Answered, assemble

_NEEDED = ("query_id", "query", "passage_id", "passage", "generated_answer")
_REPEAT = "query_run"
_RESULT = ["query_id", _REPEAT]


class OpenRagEval(Format):
    """What open-rag-eval's connectors write."""

    name, title = "open-rag-eval", "open-rag-eval results (CSV)"
    brings = ("queries", "passages", "rankings", "answers")
    takes = {  # noqa: RUF012
        "rankings": "rows of a query in their order; every query_run is a run",
        "answers": "generated answers, without grades",
    }
    recognised = "columns query_id, query, passage_id, passage and generated_answer"
    traps = ("Passage ids that have several texts are places: passages are then named by their text.",)
    names_collection = 1

    def sniff(self, probe: Tree) -> float:
        """Passages beside queries and generated answers, under the tool's names."""
        return SURE if probe.pieces and all(map(_mine, probe.pieces)) else 0.0

    def parts(self, piece: Piece, options: Options) -> Parts | str:  # noqa: ARG002
        """The columns of the tool."""
        return dict.fromkeys((*_NEEDED, _REPEAT), TAKEN)

    def look(self, tree: Tree, options: Options) -> Look:
        """The first rows, where they are a table."""
        rows = first_rows(tree.pieces[0], LOOK_ROWS)
        return super().look(tree, options) if rows is None else Look(rows)

    def read(self, trees: Sequence[Tree], options: Options) -> Import:
        """Every repeat of the queries is a run."""
        found = [each for tree in trees for piece in tree.pieces for each in _read(piece)]
        made = assemble(
            [each for each, _ in found], options, importer=self.name, source="imported: open-rag-eval"
        )
        return merged((made, *(rest for _, rest in found)))


def _mine(piece: Piece) -> bool:
    kind = kind_of(piece)
    try:
        return kind is not None and set(_NEEDED) <= set(header(piece, kind))
    except InputError:
        return False


def _read(piece: Piece) -> list[tuple[Answered, Import]]:
    kind = kind_of(piece)
    if kind is None:
        raise InputError("This is not a table.", where=piece.name)
    table = read_table(piece, kind)
    chosen = (*_NEEDED, _REPEAT) if _REPEAT in table.rows.columns else _NEEDED
    rows = without_empty_ids(table.taking({name: name for name in chosen}), piece.name, ("query_id",))
    if rows.is_empty():
        raise InputError("The table has no rows.", where=piece.name)
    if _REPEAT not in chosen:
        rows = rows.with_columns(pl.lit("").alias(_REPEAT))
    rows = rows.with_columns(pl.col(_REPEAT).fill_null(""))
    for column, said in (("query", "texts"), ("generated_answer", "answers")):
        _refuse_two(rows, column, said, piece)
    given = rows.filter(pl.col("passage").is_not_null())
    by_place = bool((given.group_by("passage_id").agg(pl.col("passage").n_unique())["passage"] > 1).any())
    named = given if not by_place else given.with_columns(passage_id=pl.lit(None, pl.String))
    lists = named.group_by(_RESULT, maintain_order=True).agg(
        pl.col("passage").alias("contexts"), pl.col("passage_id").alias("context_ids")
    )
    asked = rows.group_by(_RESULT, maintain_order=True).agg(
        pl.col("query").drop_nulls().first().fill_null("").alias("text"),
        pl.col("generated_answer").drop_nulls().first().alias("answer"),
    )
    samples = asked.join(lists, on=_RESULT, how="left", maintain_order="left")
    notes = [f"{piece.name}: rows of a query stand in the order of its ranking."]
    if by_place:
        notes.append(
            f"{piece.name}: its passage ids have several texts, so passages are named by their text."
        )
    empty = rows.height - given.height
    left = (LeftOut(empty, "rows without a passage", piece.name),) if empty else ()
    rest = Import(notes=tuple(notes), left_out=left)
    repeats = samples[_REPEAT].unique(maintain_order=True).to_list()
    return [
        (_one(piece, samples.filter(pl.col(_REPEAT) == repeat), repeat, alone=len(repeats) == 1), rest)
        for repeat in repeats
    ]


def _refuse_two(rows: pl.DataFrame, column: str, said: str, piece: Piece) -> None:
    counted = rows.group_by(_RESULT, maintain_order=True).agg(
        pl.col(column).drop_nulls().n_unique().alias("n"), pl.col("line").first()
    )
    twice = counted.filter(pl.col("n") > 1)
    if twice.height:
        row = twice.row(0, named=True)
        raise InputError(
            f"The query {quoted(row['query_id'])} has {row['n']} {said}.",
            where=place(piece.name, row["line"], column),
        )


def _one(piece: Piece, samples: pl.DataFrame, repeat: str, *, alone: bool) -> Answered:
    missing = [
        pl.lit(None, dtype).alias(name) for name, dtype in SAMPLE.items() if name not in samples.columns
    ]
    return Answered(
        label="" if alone else f"{piece.stem} · run {repeat}",
        name=piece.name,
        stem=piece.stem,
        digest=piece.digest,
        rows=samples.with_columns(missing).select(list(SAMPLE)),
        values=pl.DataFrame(schema=VALUE),
        decided={_REPEAT: repeat},
    )
