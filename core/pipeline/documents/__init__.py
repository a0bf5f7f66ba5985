"""Reads documents: text, Markdown, HTML and PDF files, tables and BEIR collections, as one frame.

The frame is what chunkers cut and what spans of golden sets are anchored to. Offsets count characters (code
points) in the text of the frame: for .txt and .md that is the file decoded, with LF line ends
and without a byte order mark; for .html the visible text, one blank line between blocks; for .pdf the text of
the pages, one blank line between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from core.errors import InputError, UnknownNameError
from core.importers import Options, ReadLimits, load
from core.importers.formats.beir import Beir
from core.importers.formats.filters import field_columns, written
from core.importers.naming import roles_by
from core.importers.read.member import Archive, Member
from core.importers.read.source import opened
from core.importers.read.tabular import header, kind_of, read_table
from core.importers.read.text import no_column, place, quoted, shown
from core.pipeline.documents.formats import Content, markdown_headings, read_markdown, read_pdf, read_text
from core.pipeline.documents.html import read_html

SCHEMA = pl.Schema(
    {
        "source": pl.String(),
        "title": pl.String(),
        "text": pl.String(),
        "headings": pl.List(pl.Struct({"start": pl.Int64, "level": pl.Int8, "title": pl.String})),
        "pages": pl.List(pl.Int64),
    }
)
"""Columns of the frame of documents.

source identifies the document (path within the folder, or id in the table); headings say where each section
begins, its level 1..6 and its title, in text order, empty if none are known; pages say where each page
begins, empty if there are no pages.
"""
ROLES: Mapping[str, tuple[str, ...]] = {
    "source": (
        "source", "_id", "id", "doc_id", "docid", "document_id", "docno", "passage_id", "pid", "corpus_id",
        "chunk_id", "path", "url",
    ),
    "text": ("text", "contents", "content", "body", "passage", "document", "passage_text"),
    "title": ("title", "name", "heading"),
}  # fmt: skip
"""Role of a column → the names it may have, the likeliest first."""
_Reader = Callable[[Member], Content]
READERS: Mapping[str, _Reader] = {
    ".txt": read_text,
    ".text": read_text,
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".html": read_html,
    ".htm": read_html,
    ".xhtml": read_html,
    ".pdf": read_pdf,
}
"""File name ending → the reader of such files."""
FORMATS = ("auto", "beir", "jsonl", "table", "documents")


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents as read, with notes on what was left out."""

    frame: pl.DataFrame  # columns of `SCHEMA`, sorted by source for files, otherwise in table order
    # What is known of documents beside their text: source, and metadata as a JSON object of fields
    metadata: pl.DataFrame = field(default_factory=lambda: metadata_frame({}))
    notes: tuple[str, ...] = ()  # what was left out, and remarks on the rest, as sentences


def metadata_frame(known: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
    """Return the fields of documents, by source, as JSON; those without any are left out."""
    rows = [(source, written(fields)) for source, fields in known.items() if fields]
    return pl.DataFrame(rows, schema={"source": pl.String, "metadata": pl.String}, orient="row")


def documents_frame(sources: Sequence[str], contents: Sequence[Content]) -> pl.DataFrame:
    """Return documents as a frame of `SCHEMA`."""
    rows = [
        (
            source,
            content.title or None,
            content.text,
            [asdict(one) for one in content.headings],
            list(content.pages),
        )
        for source, content in zip(sources, contents, strict=True)
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def from_passages(passages: pl.DataFrame) -> pl.DataFrame:
    """Return stored passages that are whole documents as a frame of `SCHEMA`.

    Headings of Markdown are found again in its text; the store keeps none of other formats, and no pages.
    """
    contents = [
        Content(text, title or "", tuple(markdown_headings(text)) if _is_markdown(source) else ())
        for source, title, text in passages.select("passage_id", "title", pl.col("text").fill_null("")).rows()
    ]
    return documents_frame(passages["passage_id"].to_list(), contents)


def _is_markdown(source: str) -> bool:
    return READERS.get(PurePosixPath(source).suffix.lower()) is read_markdown


def _holds_documents(member: Member, given: Mapping[str, str]) -> bool:
    """Return whether a file is a table with a column of ids and one of texts."""
    kind = kind_of(member)
    try:
        roles = roles_by(header(member, kind), given, ROLES, member.name) if kind else {}
    except (InputError, UnknownNameError):
        return False
    return {"source", "text"} <= roles.keys()


def _tables(members: Sequence[Member], given: Mapping[str, str]) -> Documents:
    read = [_table(member, given) for member in members]
    frame, metadata = pl.concat([rows for rows, _ in read]), pl.concat([known for _, known in read])
    again = frame.filter(~pl.col("source").is_first_distinct())
    if again.height:
        raise InputError(f"The id {quoted(again['source'][0])} stands in two files.", where=members[0].name)
    empty = frame.filter(pl.col("text").str.strip_chars() == "").height
    notes = (f"{empty} documents have no text.",) if empty else ()
    return Documents(frame, metadata, notes)


def _table(member: Member, given: Mapping[str, str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    kind, name = kind_of(member), member.name
    if kind is None:
        do = "Documents need a column of ids and one of texts."
        raise InputError("This is not a table.", where=name, do=do)
    table = read_table(member, kind)
    roles = roles_by(table.rows.columns, given, ROLES, name)
    for role in ("source", "text"):
        if role not in roles:
            raise no_column(role, table.rows.columns, name, f"Name the column with the {role}.")
    rows = table.taking({role: column for role, column in roles.items() if role != "text"})
    texts = table.rows[roles["text"]]  # unchanged, blanks included, as spans count them
    if texts.dtype != pl.String:
        texts = table.taking({"text": roles["text"]})["text"]
    nameless = rows.filter(pl.col("source").is_null())
    if nameless.height:
        raise InputError("The id is empty.", where=place(name, nameless["line"][0], roles["source"]))
    again = rows.filter(~pl.col("source").is_first_distinct())
    if again.height:
        problem = f"The id {quoted(again['source'][0])} occurs twice."
        raise InputError(problem, where=place(name, again["line"][0], roles["source"]))
    fields = field_columns(table.rows.drop(roles.values()), plain=kind not in ("jsonl", "parquet"))
    known = metadata_frame(dict(zip(rows["source"], fields, strict=True)))
    return _complete(rows.with_columns(text=texts.fill_null(""))), known


def _complete(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows with every column of `SCHEMA`."""
    absent = [pl.lit(None, dtype).alias(name) for name, dtype in SCHEMA.items() if name not in rows.columns]
    return rows.with_columns(absent).select(
        pl.col(name).fill_null([]) if isinstance(dtype, pl.List) else pl.col(name).cast(dtype)
        for name, dtype in SCHEMA.items()
    )


def read_documents(path: Path, *, form: str = "auto", columns: Mapping[str, str] | None = None) -> Documents:
    """Read the documents of a collection.

    Links are not followed, so nothing outside the folder is read; hidden folders are left out.

    Args:
        form: One of `FORMATS`; "auto" by content.
        columns: Role → column of a table whose names are not recognised.

    Raises:
        InputError: If something cannot be read, or nothing has text.
    """
    if form not in FORMATS:
        raise UnknownNameError("format of documents", form, FORMATS)
    given = columns or {}
    with opened([path], ReadLimits()) as (archive,):
        kind = _kind(archive, given) if form == "auto" else form
        if kind == "beir":
            passages = load([path], Options(format="beir", split="all")).frames.get("passages")
            if passages is None:
                raise InputError("The BEIR collection has no corpus.", where=shown(path, 200))
            documents = Documents(
                _complete(passages.lazy().select("title", "text", source="passage_id").collect())
            )
        elif kind == "documents":
            documents = _files(archive)
        else:
            documents = _tables(archive.members, given)
    if documents.frame.is_empty():
        raise InputError(
            "There are no documents with text.",
            where=shown(path, 200),
            do=f"Readable are {', '.join(READERS)}, tables and BEIR collections.",
        )
    return documents


def _kind(archive: Archive, given: Mapping[str, str]) -> str:
    alone = len(archive.members) == 1
    if alone and _reader(archive.members[0]) is None and _holds_documents(archive.members[0], given):
        return "table"
    corpus = any(member.stem.lower() == "corpus" for member in archive.members)
    return "beir" if corpus and not alone and Beir().sniff(archive) else "documents"


def _files(archive: Archive) -> Documents:
    contents: dict[str, Content] = {}
    known: dict[str, Mapping[str, Any]] = {}
    left: dict[str, list[str]] = {"links or system files": list(archive.skipped)}
    notes: list[str] = []
    for member in archive.members:
        reader = _reader(member)
        content = reader(member) if reader else Content("")
        if not content.text.strip():
            reason = "documents without text" if reader else "files that are not documents"
            left.setdefault(reason, []).append(member.name)
            continue
        source = member.relative if len(archive.members) > 1 else PurePosixPath(member.relative).name
        if source in contents:
            do = "Shorten or change one."
            raise InputError(f"Two documents have the name {shown(source)}.", where=archive.name, do=do)
        pages = pairwise([*content.pages, len(content.text)])
        blank = sum(not content.text[start:end].strip() for start, end in pages)
        if blank:
            notes.append(f"{member.name}: {blank} of {len(content.pages)} pages have no text (pictures?).")
        contents[source] = replace(content, title=content.title or _name(member).stem)
        known[source] = {**_folders(PurePosixPath(source)), **(content.fields or {})}
        if content.fields is None:
            notes.append(f"{member.name}: its front matter cannot be read; its fields are left out.")
    notes += [
        f"{len(names)} {reason} left out, the first {names[0]}." for reason, names in left.items() if names
    ]
    metadata = metadata_frame(dict(sorted(known.items())))
    return Documents(
        documents_frame([*contents], [*contents.values()]).sort("source"), metadata, tuple(notes)
    )


def _folders(path: PurePosixPath) -> dict[str, Any]:
    """Return where a document lies: its folder, and all folders from the top down to it; {} at the top."""
    above = [str(folder) for folder in reversed(path.parents) if folder.name]
    return {"folder": above[-1], "folders": above} if above else {}


def _reader(member: Member) -> _Reader | None:
    return READERS.get(_name(member).suffix.lower())


def _name(member: Member) -> PurePosixPath:
    """Return the file's name without an ending that says how it is packed."""
    path = PurePosixPath(member.relative)
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path
