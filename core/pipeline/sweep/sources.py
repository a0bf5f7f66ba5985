"""Sources of a collection (passages, or documents that are cut first) and of its questions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Protocol

import numpy as np
import polars as pl

from core.errors import InputError, UnknownNameError
from core.filters import parse
from core.importers import Import, Options, ReadLimits, load, preview
from core.importers.formats.beir import Beir, SplitsError
from core.importers.formats.filters import FILTER, field_columns, filters_of, written
from core.importers.naming import roles_by
from core.importers.read.member import Member, head_lines
from core.importers.read.source import opened
from core.importers.read.tabular import kind_of, read_table
from core.importers.read.text import no_column, place, shown, whole
from core.importers.runs import slug
from core.pipeline.anchors import holds_spans, read_spans
from core.pipeline.documents import READERS, Documents, read_documents
from core.pipeline.query.entities import tagged
from core.pipeline.sweep.model import CollectionSource, GoldenSource
from core.records import Batch, Collection
from core.tables import frame

FILTERED = ("passage_metadata", "query_filters", "fields")
"""Tables that filters are read from: metadata of passages or of their documents, filters, declared fields."""
WHOLE = ("beir", "clq")  # Formats of the importers that bring a collection with its questions and judgements
ROLES: Mapping[str, tuple[str, ...]] = {
    "query_id": ("query_id", "_id", "id", "qid", "question_id", "topic"),
    "text": ("text", "query", "question", "query_text", "question_text"),
    "entity": ("entity", "entities"),
}
"""Role of a column → the names it may have, the likeliest first.

The entity is what a question names, several separated by ";"; a table of questions need not have it.
"""
_QUOTED = re.compile(r'"(?:[^"]|"")*"')


class Shelf(Protocol):
    """Read access by id to the caller's collections and golden sets, typically a store."""

    def collection(self, collection_id: str) -> Batch:
        """Return a collection with passages, questions and its judgements."""

    def part(self, collection_id: str, chunking: str) -> Batch:
        """Return the passages and chunks of a chunking of a collection; no rows if it was never cut so."""

    def golden_set(self, golden_set_id: str) -> Batch:
        """Return a golden set with judgements, or with spans."""


def is_documents(source: CollectionSource) -> bool:
    """Return whether a collection consists of text files, which are cut into passages by default."""
    path = source.path
    if path is None or source.format not in {"auto", "documents"}:
        return False
    if source.format == "documents" or path.suffix.lower() in READERS:
        return True
    texts = (file for file in path.rglob("*") if file.suffix.lower() in READERS)
    return path.is_dir() and not any(path.glob("corpus.*")) and any(texts)


def holds_documents(collection: Batch) -> bool:
    """Return whether a collection was read from documents: each of its passages is a whole source."""
    rows = collection.frames.get("passages")
    if rows is None:
        return False
    same = (pl.col("source") == pl.col("passage_id")).fill_null(value=False).all()
    found = rows.lazy().select(same & (pl.len() > 0)).collect()
    return bool(found.item())


def collection_id(source: CollectionSource) -> str:
    """Return the id of a collection: given, or from its path."""
    if source.stored is not None:
        return source.stored
    path = source.path or Path()
    return source.id or slug((path.stem if path.is_file() else path.absolute().name), "collection")


def read_collection(
    source: CollectionSource, golden: GoldenSource | None, shelf: Shelf | None
) -> tuple[Batch, Documents | None]:
    """Return the passages of a collection, with the questions and judgements that come with it.

    If documents were read, they are returned too.
    """
    if source.stored is not None:
        return on_shelf(shelf, source.stored).collection(source.stored), None
    path = source.path or Path()
    if source.format != "auto":
        kind: str | None = source.format
    else:
        kind = "documents" if is_documents(source) else preview([path])[0].format
    if kind in WHOLE:
        return _batch(_loaded(path, _options(source, golden))), None
    documents = read_source_documents(source)
    own = collection_id(source)
    collection = Collection(collection_id=own, name=own, source=path.name)
    rows = documents.frame.select(
        collection_id=pl.lit(own),
        passage_id="source",
        title="title",
        text="text",
        tokens=pl.lit(None, pl.Int32),
        tokenizer=pl.lit(None, pl.String),
        source="source",
    )
    known = documents.metadata.select(collection_id=pl.lit(own), passage_id="source", metadata="metadata")
    frames = {"passages": rows, **({"passage_metadata": known} if known.height else {})}
    return Batch(collections=(collection,), frames=frames), documents


def read_source_documents(source: CollectionSource) -> Documents:
    """Return the documents of a collection that has a path."""
    return read_documents(source.path or Path(), form=source.format, columns=source.columns)


def read_golden_set(golden: GoldenSource, documents: Callable[[], pl.DataFrame], collection: str) -> Batch:
    """Return the judgements or spans of a golden set in a file."""
    path = golden.path or Path()
    options = Options(
        collection_id=collection,
        golden_set_id=golden.id,
        grades=golden.mapping,
        split=golden.split,
        columns=golden.columns,
    )
    if path.is_file() and holds_spans(path):
        return read_spans(path, documents(), options)
    imported = _loaded(path, options)
    if not imported.golden_sets:
        raise InputError("It holds no judgements.", where=path.name, do="Give qrels, a table or spans.")
    kept = {name: rows for name, rows in imported.frames.items() if name in {"judgements", "spans"}}
    return Batch(golden_sets=imported.golden_sets, frames=kept)


def on_shelf(shelf: Shelf | None, name: str) -> Shelf:
    """Return the shelf."""
    if shelf is None:
        raise InputError(f"{name!r} is not a path, and no store was named.", do="Give a path.")
    return shelf


def _loaded(path: Path, options: Options) -> Import:
    try:
        return load([path], options)
    except SplitsError as error:
        usual = "test" if "test" in error.splits else error.splits[0]
        do = f"Choose one: golden_set.split in the specification, or --split {usual}."
        raise InputError(error.found, where=error.where, do=do) from None


def _options(source: CollectionSource, golden: GoldenSource | None) -> Options:
    golden = golden or GoldenSource()
    own = golden.path is None and golden.stored is None
    return Options(
        format="beir" if source.format == "beir" else None,
        collection_id=collection_id(source),
        golden_set_id=golden.id if own else None,
        grades=golden.mapping if own else None,
        split=golden.split if own else "all",  # judgements that are not wanted must not be asked about
        columns=source.columns,
    )


def _batch(imported: Import) -> Batch:
    if "passages" not in imported.frames:
        names = ", ".join(detected.name for detected in imported.detected)
        raise InputError("It holds no passages.", where=names, do="A BEIR collection has a corpus.jsonl.")
    taken = ("passages", "queries", "judgements", "spans", "chunks", "clusters", *FILTERED)
    frames = {name: rows.lazy().collect() for name, rows in imported.frames.items() if name in taken}
    return Batch(collections=imported.collections, golden_sets=imported.golden_sets, frames=frames)


def read_queries(path: Path, collection_id: str, columns: Mapping[str, str] | None = None) -> pl.DataFrame:
    """Read questions."""
    with opened([path], ReadLimits()) as (archive,):
        if len(archive.members) != 1:
            raise InputError("Questions are one file.", where=archive.name)
        if not columns and Beir().sniff(archive):
            frames = load([path], Options(format="beir", collection_id=collection_id)).frames
            if "queries" in frames:
                return frames["queries"].lazy().with_columns(collection_id=pl.lit(collection_id)).collect()
        return _questions(archive.members[0], collection_id, columns or {})


def read_filters(
    path: Path, collection_id: str, columns: Mapping[str, str] | None = None, equal: Sequence[str] = ()
) -> pl.DataFrame | None:
    """Return the filters of a file of questions, from its column `filter` and others; None if it has neither.

    Args:
        equal: Columns whose value the passages' field of the same name is to have.

    Raises:
        UnknownNameError: If one of `equal` is no column.
        InputError: A filter cannot be read, or a question has no value there; the message names its line.
    """
    with opened([path], ReadLimits()) as (archive,):
        member = archive.members[0]
        kind = kind_of(member)
        table = None if kind is None else read_table(member, kind)
        held = [] if table is None else [name for name in table.rows.columns if name != "line"]
        for name in equal:
            if name not in held:
                raise UnknownNameError("column of the questions", name, held, where="filters.column")
        if table is None or (FILTER not in held and not equal):
            return None
        roles = roles_by(table.rows.columns, columns or {}, ROLES, member.name)
        taken = {"query_id": roles["query_id"], **({FILTER: FILTER} if FILTER in held else {})}
        rows = table.taking(taken)
        given = rows[FILTER] if FILTER in held else pl.Series([None] * rows.height, dtype=pl.String)
        if equal:
            cells = field_columns(table.rows.select(equal), plain=kind not in ("jsonl", "parquet"))
            lines = (place(member.name, line) for line in rows["line"])
            made = [_also(text, asked, line) for text, asked, line in zip(given, cells, lines, strict=True)]
            given = pl.Series(made, dtype=pl.String)
    options = Options(collection_id=collection_id)
    read = filters_of(rows["query_id"], given, rows["line"], where=member.name, options=options)
    found = read.frames.get("query_filters")
    return None if found is None else found.lazy().collect()


def _also(text: str | None, asked: Mapping[str, object], where: str) -> str:
    """Return a filter as JSON that also asks fields for values."""
    lacking = next((name for name, value in asked.items() if value in (None, "", [])), None)
    if lacking is not None:
        found = f"The question has no {lacking}, so that it would see every passage."
        raise InputError(
            found, where=where, do="Give it a value, or a filter {} in a file without the column."
        )
    more = json.loads(written(asked))
    if text is None:
        return json.dumps(more)
    own = json.loads(parse(text, where).text)
    twice = next((name for name in more if name in own), None)
    if twice is not None:
        found = f"Both the filter and the column ask for {twice}."
        raise InputError(found, where=where, do="Keep one.")
    return json.dumps({**own, **more})


def chosen(queries: pl.DataFrame, judged: pl.DataFrame | None, limit: int | None, seed: int) -> pl.DataFrame:
    """Return the questions that are asked, in their order."""
    if limit is None:
        return queries
    if judged is not None:
        graded = queries.filter(pl.col("query_id").is_in(judged["query_id"].unique().to_list()))
        queries = graded if graded.height else queries
    if queries.height <= limit:
        return queries
    drawn = np.random.default_rng(seed).choice(queries.height, size=limit, replace=False)
    return queries[np.sort(drawn)]


def _is_a_list(member: Member) -> bool:
    """Return whether a file has a question on each line, by its ending or header; many contain commas."""
    lines = head_lines(member)
    first = next((line for line in lines if line.strip()), "")
    plain = PurePosixPath(member.file).suffix.lower() == ".txt"
    bare = bool(first) and "\t" not in first and not first.lstrip().startswith(("{", "["))
    return (plain and bare) or _is_header(first)


def _is_header(line: str) -> bool:
    return line.strip().strip('"').lower() in ROLES["text"]


def _listed(member: Member, collection_id: str) -> pl.DataFrame:
    """Read a question on each line; its id is the number of the line."""
    numbers: dict[str, int] = {}
    for number, line in enumerate(whole(member).decode().split("\n"), start=1):
        text = line.strip()
        if _QUOTED.fullmatch(text):
            text = text[1:-1].replace('""', '"').strip()
        if text and (numbers or not _is_header(text)):
            if text in numbers:
                found = f"The question of line {numbers[text]} occurs again."
                raise InputError(found, where=f"{member.name}:{number}", do="Keep one of them.")
            numbers[text] = number
    ids = [f"line-{number}" for number in numbers.values()]
    columns = {"collection_id": [collection_id] * len(ids), "query_id": ids, "text": [*numbers]}
    return frame("queries", columns)


def _questions(member: Member, collection_id: str, given: Mapping[str, str]) -> pl.DataFrame:
    if not given and _is_a_list(member):
        return _listed(member, collection_id)
    kind = kind_of(member)
    if kind is None:
        do = "Questions are a table with ids and texts (CSV, TSV, JSONL, Parquet), or one on each line."
        raise InputError("This holds no questions.", where=member.name, do=do)
    table = read_table(member, kind)
    columns = table.rows.columns
    roles = roles_by(columns, given, ROLES, member.name)
    for role in ("query_id", "text"):
        if role not in roles:
            raise no_column(role, columns, member.name, f"Name the column with the {role}.")
    rows = table.taking(roles)
    lacking = rows.filter(pl.col("query_id").is_null() | pl.col("text").is_null())
    if lacking.height:
        where = f"{member.name}:{lacking['line'][0]}"
        raise InputError("The question has no id or no text.", where=where)
    again = rows.filter(~pl.col("query_id").is_first_distinct())
    if again.height:
        problem = f"The id {shown(again['query_id'][0])!r} occurs twice."
        raise InputError(problem, where=f"{member.name}:{again['line'][0]}")
    rows = rows.with_columns(collection_id=pl.lit(collection_id))
    questions = {name: rows[name] for name in ("collection_id", "query_id", "text")}
    return frame("queries", {**questions, "tags": tagged(rows["entity"])} if "entity" in roles else questions)
