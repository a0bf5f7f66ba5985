"""BEIR: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/<split>.tsv``; a folder, a zip or some of the files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

import polars as pl

from core.errors import InputError, UnknownNameError
from core.importers.base import Format, Import, Options, counted, merged
from core.importers.formats.filters import FILTER, filters_of, metadata_of
from core.importers.judgements import golden_set, said_by_name
from core.importers.read.jsons import outline
from core.importers.read.member import Archive, Member, head_lines, members_of
from core.importers.read.rows import again, identified, refuse
from core.importers.read.tabular import objects_of, read_table
from core.importers.report import TAKEN, ReportParts
from core.importers.runs import collection_frames, collection_of

_HEADER = ["query-id", "corpus-id", "score"]
_FIELDS = dict.fromkeys(("_id", "title", "text", "metadata", FILTER), pl.String)
_SOURCES = ("source", "url", "doc_id", "document")
_TAG_LENGTH = 80
_NAMED = {"queries": "quer(y|ies)|question|topic", "corpus": "corpus|passage|doc"}
"""Patterns of file names by content, tried before the keys, because queries may have titles too."""
ALL = "all"


class SplitsError(InputError):
    """A collection has several splits of judgements, and none was chosen."""

    def __init__(self, splits: Iterable[str], where: str) -> None:
        self.splits = tuple(sorted(splits))
        super().__init__(
            f"There are several splits: {', '.join(self.splits)}.",
            where=where,
            do="Choose one (--split), or all for a golden set of each.",
        )


class Beir(Format):
    """A collection with its queries and judgements."""

    name, title = "beir", "BEIR collection"
    takes = dict.fromkeys(("passages", "queries", "judgements", "passage_metadata", "query_filters"), "")
    recognised = "A file of it, or a folder that holds one"
    names_collection, mixed = 3, True
    known = {
        "corpus": {
            **dict.fromkeys(("_id", "text", "title", "metadata"), TAKEN),
        },
        "queries": {
            **dict.fromkeys(("_id", "text", "metadata", FILTER), TAKEN),
            "title": "a query is its text",
        },
        "qrels": dict.fromkeys(_HEADER, TAKEN),
    }

    @staticmethod
    def kind(member: Member) -> str | None:
        """Return corpus, queries, qrels or None; for corpus and queries the name decides before the keys."""
        lines = [line for line in head_lines(member, 20) if line.strip()]
        if not lines:
            return None
        if lines[0].split("\t") == _HEADER and said_by_name(member.name) != "run":
            grades = [line.split("\t")[-1].strip() for line in lines[1:]]
            return "qrels" if all(re.fullmatch(r"[+-]?\d+(\.0+)?", grade) for grade in grades) else None
        if not re.match(r"\s*\{", lines[0]) or '"_id"' not in lines[0] or b'"text"' not in member.head:
            return None
        named = [kind for kind, words in _NAMED.items() if re.search(words, member.stem.lower())]
        return named[0] if len(named) == 1 else "corpus" if "title" in outline(member) else "queries"

    def choices(self, archives: Sequence[Archive]) -> dict[str, tuple[str, ...]]:
        splits = tuple(member.stem for member in _members(archives, "qrels"))
        return {"split": (*splits, ALL)} if len(splits) > 1 else {}

    def parts(self, member: Member, options: Options) -> ReportParts | str | None:
        if self.kind(member) == "qrels" and options.split not in (None, ALL, member.stem):
            return "a split that is not chosen"
        return super().parts(member, options)

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        chosen = _split(_members(archives, "qrels"), options)
        parts = [
            Import(collections=collection_of(options, "imported: BEIR")),
            *(_passages(member, options) for member in _one(_members(archives, "corpus"), "corpus")),
            *(_queries(member, options) for member in _one(_members(archives, "queries"), "queries")),
            *(_judgements(member, options, several=len(chosen) > 1) for member in chosen),
        ]
        imported = merged(parts)
        return replace(imported, notes=(*imported.notes, *_unknown_ids(imported)))


def _members(archives: Sequence[Archive], kind: str) -> list[Member]:
    return [member for member in members_of(archives) if Beir.kind(member) == kind]


def _one(members: list[Member], kind: str) -> list[Member]:
    if len(members) > 1:
        problem = (
            f"There are {len(members)} {kind} files: {', '.join(member.name for member in members[:5])}."
        )
        raise InputError(problem, do="Offer one collection at a time.")
    return members


def _split(members: list[Member], options: Options) -> list[Member]:
    by_name = {member.stem: member for member in members}
    if not members or options.split == ALL or (len(members) == 1 and options.split is None):
        return members
    if options.split is None:
        raise SplitsError(by_name, where=members[0].name.rsplit("/", 1)[0])
    if options.split not in by_name:
        raise UnknownNameError("split", options.split, by_name)
    return [by_name[options.split]]


def _objects(member: Member) -> pl.DataFrame:
    """Return _id, title, text and metadata (JSON text) with `line`."""
    rows = objects_of(member, _FIELDS)
    rows = identified(rows, member.name, "_id")
    refuse(rows.filter(pl.col("text").is_null()), "The line has no text.", member.name, "text")
    refuse(again(rows, "_id"), "The id {_id} occurs twice.", member.name, "_id")
    return rows


def _passages(member: Member, options: Options) -> Import:
    rows = _objects(member)
    source = [pl.col("metadata").str.json_path_match(f"$.{key}") for key in _SOURCES]
    passages = rows.select(
        pl.col("_id").alias("passage_id"),
        pl.when(pl.col("title") != "").then(pl.col("title")).alias("title"),
        "text",
        pl.coalesce(source).replace("", None).alias("source"),
    )
    empty = rows.filter(pl.col("text").str.strip_chars() == "").height
    notes = [f"{member.name}: {empty} passages have no text but are kept."] if empty else []
    own = Import(frames=collection_frames(options, passages=passages), notes=tuple(notes))
    return merged([own, metadata_of(rows["_id"], rows["metadata"], options)])


def _queries(member: Member, options: Options) -> Import:
    rows = _objects(member)
    tagged = [_tags(text) for text in rows["metadata"]]
    queries = rows.select(
        pl.col("_id").alias("query_id"),
        "text",
        pl.Series("tags", [tags for tags, _ in tagged], dtype=pl.List(pl.String)),
    )
    left = {"metadata of queries that is not a short text": sum(count for _, count in tagged)}
    own = Import(frames=collection_frames(options, queries), left_out=counted(left, member.name))
    return merged([own, filters_of(rows["_id"], rows[FILTER], rows["line"], member.name, options)])


def _tags(metadata: str | None) -> tuple[list[str], int]:
    """Return tags ("name=value") from short texts in metadata, and how many entries make no tag."""
    if not metadata:
        return [], 0
    try:
        values = json.loads(metadata)
    except (ValueError, RecursionError):
        return [], 1
    if not isinstance(values, dict):
        return [], 1
    tags = [
        f"{name}={value}"
        for name, value in values.items()
        if isinstance(value, str) and value and len(name) + len(value) < _TAG_LENGTH
    ]
    return tags, len(values) - len(tags)


def _judgements(member: Member, options: Options, *, several: bool) -> Import:
    table = read_table(member, "\t")
    rows = table.taking({"query_id": _HEADER[0], "passage_id": _HEADER[1], "grade": _HEADER[2]})
    identified(rows, member.name, "query_id", "passage_id")
    if several and options.golden_set_id:
        options = replace(options, golden_set_id=f"{options.golden_set_id}-{member.stem}")
    return golden_set(rows, member.name, member.stem, options, from_zero=True)


def _unknown_ids(imported: Import) -> tuple[str, ...]:
    notes = []
    for table, key in (("queries", "query_id"), ("passages", "passage_id")):
        if table in imported.frames and "judgements" in imported.frames:
            known = imported.frames[table].lazy().select(key)
            judged = imported.frames["judgements"].lazy().select(key)
            count = judged.join(known, on=key, how="anti").select(pl.len()).collect().item()
            if count:
                notes.append(f"{count} judgements name {table} that the collection does not have.")
    return tuple(notes)
