"""Nuggets of castorini's nuggetizer (AutoNuggetizer, arXiv:2504.15068), and the passages that support them.

JSON lines: lists {qid, query, nuggets[{text, importance}]}, and assignments to retrieved passages, which add
docid and, by nugget, assignment (support, partial_support, not_support). A nugget is identified by its text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from core.errors import InputError
from core.importers.base import Format, Import, Options, counted, frames_of, merged
from core.importers.judgements import TWICE, golden_set
from core.importers.read.jsons import Json, expect, identifier, items, json_rows, outline, text
from core.importers.read.member import Archive, Member, members_of
from core.importers.read.rows import again, refuse
from core.importers.read.text import place, quoted
from core.importers.report import TAKEN
from core.importers.runs import collection_of
from core.tables import NUGGETS

SUPPORT = {"support": 1.0, "partial_support": 0.5, "not_support": 0.0}
VITAL = {"vital": True, "okay": False, "ok": False}
_KEYS = ("qid", "nuggets.text", "nuggets.importance")
_TEXTS = dict.fromkeys(("query", "text", "candidate_text"), "the texts of the collection count")
_OTHER = {"nuggets.*": "how it came to be", "*": "how it came to be"}
ROWS = pl.Schema({
    "query_id": pl.String(), "passage_id": pl.String(), "text": pl.String(), "vital": pl.Boolean(),
    "support": pl.Float64(), "line": pl.Int64(),
})  # fmt: skip
_LISTED = "nuggets that are listed and assigned too: the assignments count"
_OF_ANSWERS = "nuggets assigned to answers: coverage here is that of passages"


class Nuggetizer(Format):
    """Lists and assignments of nuggets: a golden set whose grades follow from them."""

    name, title = "nuggetizer", "AutoNuggetizer: nuggets and their assignment to passages (JSON lines)"
    takes = {
        "nuggets": "each nugget, and each passage that supports it, fully or in part",
        "judgements": "of assigned passages: 5 supports a vital nugget, 4 another, 3 in part, 1 none",
    }
    recognised = "JSON lines with qid and nuggets of text and importance"
    traps = (
        "Assignments to answers are left out and counted.",
        "Nuggets that only a list has are missing from every passage.",
    )
    names_collection = 1
    known = {
        "list": {**dict.fromkeys(_KEYS, TAKEN), **_TEXTS, **_OTHER},
        "assigned": {
            **dict.fromkeys((*_KEYS, "docid", "nuggets.assignment"), TAKEN), **_TEXTS, **_OTHER,
        },
        "answers": {"*": _OF_ANSWERS, "nuggets.*": _OF_ANSWERS},
    }  # fmt: skip

    @staticmethod
    def kind(member: Member) -> str | None:
        paths = outline(member).keys()
        if not {"qid", "nuggets[].text", "nuggets[].importance"} <= paths:
            return None
        if "nuggets[].assignment" not in paths:
            return "list"
        return "assigned" if "docid" in paths else "answers"

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read all files together: lists define the nuggets, assignments their supporting passages."""
        members = [member for member in members_of(archives) if self.kind(member) != "answers"]
        if not members:
            problem = "Only assignments to answers are here."
            raise InputError(problem, do="Assign the nuggets to passages (--input-kind retrieval).")
        rows = pl.concat([pl.DataFrame(_told(member), schema=ROWS, orient="row") for member in members])
        first = members[0]
        bare = rows["text"].null_count()
        lost = {_OF_ANSWERS: len(members_of(archives)) - len(members), "lines without a nugget": bare}
        left, rows = counted(lost, first.name), rows.drop_nulls("text")
        made = nugget_set(rows, first.name, first.stem, options, "nuggetizer")
        return merged((made, Import(left_out=left)))


def nugget_set(rows: pl.DataFrame, name: str, stem: str, options: Options, judge: str = "") -> Import:
    """Build a golden set of nuggets; its grades follow from the passages' support.

    Args:
        rows: Columns of `ROWS`; without a passage a nugget is only listed.
        stem: Names the golden set if the options don't.
        judge: Name of the judge; "" = unknown.

    Raises:
        InputError: If nobody supports a nugget, one is vital and okay, or a query has too many.
    """
    told = rows.filter(pl.col("passage_id").is_not_null())
    if told.is_empty():
        problem = "No passage is said to support a nugget."
        raise InputError(problem, where=name, do="Bring what passages support beside it.")
    key = ("query_id", "text", "passage_id")
    repeats = again(rows, *key, "vital", "support")
    problem = "Passage {passage_id} is said to support a nugget of query {query_id} in two ways."
    refuse(again(told.unique([*key, "support"], maintain_order=True), *key), problem, name)
    both = (
        rows.unique(key)
        .filter(pl.col("passage_id").is_null())
        .join(told, on=["query_id", "text"], how="semi")
    )
    left = counted({TWICE: repeats.height, _LISTED: both.height}, name)
    numbered = _numbered(rows, name)
    own = pl.when(pl.col("vital")).then(3).otherwise(2)
    grade = pl.when(pl.col("support") == 1).then(own).when(pl.col("support") > 0).then(1).otherwise(0)
    graded = told.group_by("query_id", "passage_id", maintain_order=True).agg(
        grade.max().cast(pl.String).alias("grade"), pl.col("line").first()
    )
    named = options if options.grades else replace(options, grades="0-3")
    judged = golden_set(graded, name, f"{stem}-nuggets", named, judge)
    (made,) = judged.golden_sets
    stored = _stored(numbered, made.golden_set_id, judge or None)
    found = Import(collections=collection_of(options, f"imported: {judge or 'nuggets'}"))
    return merged((found, judged, Import(frames=frames_of(nuggets=stored), left_out=left)))


def _told(member: Member) -> Iterator[tuple[object, ...]]:
    """Yield a row per nugget of each line; a line without nuggets has a row without a text."""
    for number, line in json_rows(member):
        where = place(member.name, number)
        query, passage = identifier(line, "qid", where), identifier(line, "docid", where)
        if query is None:
            raise InputError("There is no 'qid' here.", where=where)
        nuggets = items(line, "nuggets", where) or ()
        if not nuggets:
            yield (query, passage, None, None, None, number)
        for nugget in nuggets:
            yield (query, passage, *_nugget(nugget, passage is not None, where), number)


def _nugget(nugget: Json, assigned: bool, where: str) -> tuple[str, bool, float | None]:
    importance, said = text(nugget, "importance", where) or "vital", text(nugget, "assignment", where)
    if importance not in VITAL:
        raise InputError(f"The importance is {quoted(importance)}; it is vital or okay.", where=where)
    if assigned and said not in SUPPORT:
        problem = f"The assignment is {quoted(said or '')}; it is one of {', '.join(SUPPORT)}."
        raise InputError(problem, where=where)
    return (
        expect(nugget, "text", str, where),
        VITAL[importance],
        SUPPORT[said] if assigned and said else None,
    )


def _numbered(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return nuggets numbered by first line in each query; refuse two importances and too many nuggets."""
    several = rows.filter(pl.col("vital").n_unique().over("query_id", "text") > 1)
    refuse(several, "The nugget is vital on one line and okay on another.", name)
    listed = rows.unique(["query_id", "text"], keep="first", maintain_order=True).select("query_id", "text")
    listed = listed.with_columns(nugget=pl.int_range(pl.len()).over("query_id"))
    numbered = rows.join(listed, on=["query_id", "text"], how="left", maintain_order="left")
    problem = f"Query {{query_id}} has more than {NUGGETS} nuggets."
    refuse(numbered.filter(pl.col("nugget") >= NUGGETS), problem, name)
    return numbered


def _stored(rows: pl.DataFrame, golden_set_id: str, judge: str | None) -> pl.DataFrame:
    """Return rows of the table "nuggets": supporters, and unsupported nuggets once each."""
    some = rows.filter(pl.col("support") > 0).unique(
        ["query_id", "nugget", "passage_id"], keep="first", maintain_order=True
    )
    none = rows.join(some, on=["query_id", "nugget"], how="anti").unique(
        ["query_id", "nugget"], keep="first", maintain_order=True
    )
    bare = none.with_columns(passage_id=pl.lit(None, pl.String), support=pl.lit(None, pl.Float64))
    told = pl.concat([some, bare]).sort("query_id", "nugget", maintain_order=True)
    return told.with_columns(golden_set_id=pl.lit(golden_set_id), judge=pl.lit(judge, pl.String)).drop("line")
