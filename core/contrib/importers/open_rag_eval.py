"""open-rag-eval tables: a row per passage with its query, the repeat of the query, and the answer.

The answer is on the first row of a query or on all of them. Passage ids are often positions (``[1]``,
``[2]``) that restart with every query: if one id has several texts, passages are named by their texts.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from core.errors import InputError
from core.importers.base import LOOK_ROWS, Format, Import, Look, Options, counted
from core.importers.read.member import Archive, Member, members_of
from core.importers.read.rows import identified, refuse
from core.importers.read.tabular import columns, first_rows, kind_of, read_table
from core.importers.report import TAKEN
from core.importers.samples import AnsweredSamples, assemble, completed

_NEEDED = ("query_id", "query", "passage_id", "passage", "generated_answer")
_REPEAT = "query_run"
_RESULT = ["query_id", _REPEAT]


class OpenRagEval(Format):
    """Files written by open-rag-eval's connectors."""

    name, title = "open-rag-eval", "open-rag-eval results (CSV)"
    takes = {
        **dict.fromkeys(("queries", "passages"), ""),
        "rankings": "rows of a query in their order; every query_run is a run",
        "answers": "generated answers, without grades",
    }
    recognised = "columns query_id, query, passage_id, passage and generated_answer"
    traps = ("Passage ids that have several texts are places: passages are then named by their text.",)
    known = {"table": dict.fromkeys((*_NEEDED, _REPEAT), TAKEN)}
    names_collection = 1

    def kind(self, member: Member) -> str | None:
        return "table" if set(_NEEDED) <= set(columns(member)) else None

    def look(self, archive: Archive, options: Options) -> Look:
        rows = first_rows(archive.members[0], LOOK_ROWS)
        return super().look(archive, options) if rows is None else Look(rows)

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read every repeat of the queries as a run."""
        runs = [run for member in members_of(archives) for run in _read(member)]
        return assemble(runs, options, importer=self.name, source="imported: open-rag-eval")


def _read(member: Member) -> list[AnsweredSamples]:
    table = read_table(member, kind_of(member))
    chosen = (*_NEEDED, _REPEAT) if _REPEAT in table.rows.columns else _NEEDED
    rows = identified(table.taking({name: name for name in chosen}), member.name, "query_id")
    if rows.is_empty():
        raise InputError("The table has no rows.", where=member.name)
    if _REPEAT not in chosen:
        rows = rows.with_columns(pl.lit("").alias(_REPEAT))
    rows = rows.with_columns(pl.col(_REPEAT).fill_null(""))
    _refuse_several(rows, member.name)
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
    notes = [f"{member.name}: rows of a query stand in the order of its ranking."]
    if by_place:
        notes.append(
            f"{member.name}: its passage ids have several texts, so passages are named by their text."
        )
    left = counted({"rows without a passage": rows.height - given.height}, member.name)
    repeats = samples[_REPEAT].unique(maintain_order=True).to_list()
    return [
        AnsweredSamples(
            member=member,
            label="" if len(repeats) == 1 else f"{member.stem} · run {repeat}",
            rows=completed(samples.filter(pl.col(_REPEAT) == repeat)),
            decided={_REPEAT: repeat},
            rest=Import(notes=tuple(notes), left_out=left),
        )
        for repeat in repeats
    ]


def _refuse_several(rows: pl.DataFrame, name: str) -> None:
    for column, said in (("query", "texts"), ("generated_answer", "answers")):
        said_of = rows.group_by(_RESULT, maintain_order=True).agg(
            pl.col(column).drop_nulls().n_unique().alias("n"), pl.col("line").first()
        )
        several = said_of.filter(pl.col("n") > 1)
        refuse(several, f"The query {{query_id}} has {{n}} {said}.", name, column)
