"""From a path to documents: what it is, and what reads it; text, Markdown and tables are read here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

import polars as pl

from core.errors import InputError, UnknownNameError
from core.importers import LeftOut, Limits, Options, load
from core.importers.formats.beir import Beir
from core.importers.naming import roles_by
from core.importers.read.piece import Piece, Tree
from core.importers.read.source import opened
from core.importers.read.tabular import Table, header, kind_of, read_table
from core.importers.read.text import no_column, place, quoted, shown, whole
from core.pipeline.documents.base import (
    SCHEMA,
    Content,
    Documents,
    Heading,
    all_bytes,
    documents_frame,
    unix_lines,
)
from core.pipeline.documents.html import read_html
from core.pipeline.documents.pdf import read_pdf

ROLES: Mapping[str, tuple[str, ...]] = {
    "source": (
        "source", "_id", "id", "doc_id", "docid", "document_id", "docno", "passage_id", "pid", "corpus_id",
        "chunk_id", "path", "url",
    ),
    "text": ("text", "contents", "content", "body", "passage", "document", "passage_text"),
    "title": ("title", "name", "heading"),
}  # fmt: skip
"""Role of a column to the names that it goes by, the likeliest first."""


def holds_documents(piece: Piece, given: Mapping[str, str]) -> bool:
    """Whether a file is a table with a column of ids and one of texts."""
    kind = kind_of(piece)
    if kind is None:
        return False
    try:
        return {"source", "text"} <= roles_by(header(piece, kind), given, ROLES, piece.name).keys()
    except (InputError, UnknownNameError):
        return False


def read_tables(pieces: Sequence[Piece], given: Mapping[str, str]) -> Documents:
    """Read tables of documents that belong together."""
    frames = [_read(piece, given) for piece in pieces]
    frame = pl.concat(frames)
    again = frame.filter(~pl.col("source").is_first_distinct())
    if again.height:
        raise InputError(f"The id {quoted(again['source'][0])} stands in two files.", where=pieces[0].name)
    empty = frame.filter(pl.col("text").str.strip_chars() == "").height
    return Documents(frame, notes=(f"{empty} documents have no text.",) if empty else ())


def _read(piece: Piece, given: Mapping[str, str]) -> pl.DataFrame:
    kind = kind_of(piece)
    if kind is None:
        raise InputError(
            "This is not a table.", where=piece.name, do="Documents need a column of ids and one of texts."
        )
    table = read_table(piece, kind)
    roles = roles_by(table.rows.columns, given, ROLES, piece.name)
    for role in ("source", "text"):
        if role not in roles:
            do = f"Name the column with the {role}."
            raise no_column(role, table.rows.columns, piece.name, do)
    rows = table.taking({role: column for role, column in roles.items() if role != "text"})
    rows = rows.with_columns(_texts(table, roles["text"]).alias("text"))
    _check(rows, piece.name, roles["source"])
    absent = [pl.lit(None, dtype).alias(name) for name, dtype in SCHEMA.items() if name not in rows.columns]
    return rows.with_columns(absent).select(
        pl.col(name).fill_null([]) if isinstance(dtype, pl.List) else pl.col(name)
        for name, dtype in SCHEMA.items()
    )


def _texts(table: Table, column: str) -> pl.Series:
    """The texts as they are, blanks included: spans count them."""
    values = table.rows[column]
    return values.fill_null("") if values.dtype == pl.String else table.taking({"text": column})["text"]


def _check(rows: pl.DataFrame, name: str, column: str) -> None:
    nameless = rows.filter(pl.col("source").is_null())
    if nameless.height:
        raise InputError("The id is empty.", where=place(name, nameless["line"][0], column))
    again = rows.filter(~pl.col("source").is_first_distinct())
    if again.height:
        found = f"The id {quoted(again['source'][0])} occurs twice."
        raise InputError(found, where=place(name, again["line"][0], column))


_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_SETEXT = re.compile(r" {0,3}(=+|-{2,})[ \t]*")
_NO_PARAGRAPH = re.compile(r"\s*$| {0,3}(?:[-*+>|]|\d+[.)])|\t| {4}")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])?")
_MARKUP = re.compile(r"[*`]|(?<!\w)_+|_+(?!\w)|\{#[^{}]*\}\s*$")


def read_text(piece: Piece) -> Content:
    """A text file in UTF-8; form feeds begin pages."""
    text = _decoded(piece)
    breaks = [match.end() for match in re.finditer("\f", text)]
    return Content(text, pages=(0, *breaks) if breaks else ())


def read_markdown(piece: Piece) -> Content:
    """A Markdown file in UTF-8, its headings found; the first of the highest level is the title."""
    text = _decoded(piece)
    headings = tuple(_headings(text))
    top = min((each.level for each in headings), default=0)
    title = next((each.title for each in headings if each.level == top), "")
    return Content(text, title if top == 1 else "", headings)


def _decoded(piece: Piece) -> str:
    all_bytes(piece)  # the size, before anything is made of it
    return unix_lines(whole(piece).decode("utf-8"))


def _headings(text: str) -> Iterator[Heading]:
    """ATX and Setext headings outside of code and front matter."""
    lines = text.split("\n")
    start, fence, before = 0, "", ""
    matter = _front_matter(lines)
    for number, line in enumerate(lines):
        mark = _FENCE.match(line)
        if number < matter:
            before = ""
        elif fence:
            closes = mark and mark[1].startswith(fence) and not line.strip().strip(fence[0])
            fence = "" if closes else fence
            before = ""
        elif mark:
            fence, before = mark[1], ""
        elif (atx := _ATX.fullmatch(line)) is not None:
            yield from _heading(start, len(atx[1]), atx[2] or "")
            before = ""
        elif (under := _SETEXT.fullmatch(line)) is not None and not _NO_PARAGRAPH.match(before):
            yield from _heading(start - len(before) - 1, 1 if under[1][0] == "=" else 2, before)
            before = ""
        else:
            before = line
        start += len(line) + 1


def _heading(start: int, level: int, written: str) -> Iterator[Heading]:
    title = " ".join(_MARKUP.sub("", _LINK.sub(r"\1", written)).split())
    if title:
        yield Heading(start, level, title)


def _front_matter(lines: list[str]) -> int:
    """How many lines of metadata (between two lines ``---``) the file begins with."""
    if lines[0].rstrip() != "---":
        return 0
    return next((number for number, line in enumerate(lines[1:], 2) if line.rstrip() in ("---", "...")), 0)


Reader = Callable[[Piece], Content]
READERS: Mapping[str, Reader] = {
    ".txt": read_text,
    ".text": read_text,
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".html": read_html,
    ".htm": read_html,
    ".xhtml": read_html,
    ".pdf": read_pdf,
}
"""Ending of a file name to what reads it."""
FORMATS = ("auto", "beir", "jsonl", "table", "documents")


def read_documents(
    path: Path,
    *,
    format: str = "auto",  # noqa: A002 - the word of the specification
    columns: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    skip_broken: bool = False,
) -> Documents:
    """Read the documents of a collection.

    Links are not followed, so nothing outside the folder is read; hidden folders are left out.
    """
    if format not in FORMATS:
        raise UnknownNameError("format of documents", format, FORMATS)
    limits, given = limits or Limits(), columns or {}
    with opened([path], limits) as (tree,):
        kind = _kind(tree, given) if format == "auto" else format
        if kind == "beir":
            made = _beir(path, limits)
        elif kind == "documents":
            made = _files(tree, skip_broken=skip_broken)
        else:
            made = read_tables(tree.pieces, given)
    if made.frame.is_empty():
        raise InputError(
            "There are no documents with text.",
            where=shown(path, 200),
            do=f"Readable are {', '.join(READERS)}, tables and BEIR collections.",
        )
    return made


def _kind(tree: Tree, given: Mapping[str, str]) -> str:
    alone = len(tree.pieces) == 1
    if alone and _reader(tree.pieces[0]) is None and holds_documents(tree.pieces[0], given):
        return "table"
    corpus = any(piece.stem.lower() == "corpus" for piece in tree.pieces)
    return "beir" if corpus and not alone and Beir().sniff(tree) else "documents"


def _beir(path: Path, limits: Limits) -> Documents:
    passages = load([path], Options(format="beir", split="all", limits=limits)).frames.get("passages")
    if passages is None:
        raise InputError("The BEIR collection has no corpus.", where=shown(path, 200))
    rows = passages.lazy().select(source="passage_id", title="title", text="text", headings=None, pages=None)
    kinds = [pl.col(name).cast(dtype) for name, dtype in SCHEMA.items()]
    return Documents(rows.select(kinds).with_columns(pl.col("headings", "pages").fill_null([])).collect())


def _files(tree: Tree, *, skip_broken: bool) -> Documents:
    sources: list[str] = []
    contents: list[Content] = []
    left: dict[str, list[str]] = {"links and system files": list(tree.skipped)}
    notes: list[str] = []
    for piece in tree.pieces:
        reader = _reader(piece)
        if reader is None:
            left.setdefault("files that are no documents", []).append(piece.name)
            continue
        try:
            content = reader(piece)
        except InputError as error:
            if not skip_broken:
                raise
            left.setdefault(f"documents that cannot be read ({error.found})", []).append(piece.name)
            continue
        if not content.text.strip():
            left.setdefault("documents without text", []).append(piece.name)
            continue
        notes += _pictures(piece, content)
        sources.append(_source(piece, tree))
        contents.append(_titled(content, piece))
    _refuse_twice(sources, tree)
    entries = tuple(LeftOut(len(names), reason, names[0]) for reason, names in left.items() if names)
    frame = documents_frame(sources, contents).sort("source")
    return Documents(frame, entries, tuple(notes))


def _reader(piece: Piece) -> Reader | None:
    return READERS.get(_name(piece).suffix.lower())


def _name(piece: Piece) -> PurePosixPath:
    """The file's name; an ending that says how it is packed does not count."""
    path = PurePosixPath(piece.relative)
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def _source(piece: Piece, tree: Tree) -> str:
    """The path within the folder; a file offered alone is named by its name."""
    return piece.relative if len(tree.pieces) > 1 else PurePosixPath(piece.relative).name


def _titled(content: Content, piece: Piece) -> Content:
    if content.title:
        return content
    return Content(content.text, _name(piece).stem, content.headings, content.pages)


def _pictures(piece: Piece, content: Content) -> list[str]:
    """Say so where pages have no text; they cannot be found."""
    ends = (*content.pages[1:], len(content.text)) if content.pages else ()
    blank = sum(not content.text[start:end].strip() for start, end in zip(content.pages, ends, strict=True))
    return (
        [f"{piece.name}: {blank} of {len(ends)} pages have no text (pictures?)."]
        if blank and content.pages
        else []
    )


def _refuse_twice(sources: Sequence[str], tree: Tree) -> None:
    if len(set(sources)) < len(sources):
        again = next(each for each in sources if sources.count(each) > 1)
        raise InputError(
            f"Two documents have the name {shown(again)}.", where=tree.name, do="Shorten or change one."
        )
