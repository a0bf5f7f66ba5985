"""From a path to documents: what it is, and which reader takes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath

import polars as pl

from core.errors import InputError, UnknownNameError
from core.importers import LeftOut, Limits, Options, load
from core.importers.formats.beir import Beir
from core.importers.read.piece import Piece, Tree
from core.importers.read.source import opened
from core.importers.read.text import shown
from core.pipeline.documents.base import SCHEMA, Content, Documents, documents_frame
from core.pipeline.documents.html import read_html
from core.pipeline.documents.pdf import read_pdf
from core.pipeline.documents.plain import read_markdown, read_text
from core.pipeline.documents.tables import holds_documents, read_tables

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
