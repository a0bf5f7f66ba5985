"""Plain text and Markdown: kept as written, so that offsets are those of the file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.importers.read.piece import Piece
from core.importers.read.text import whole
from core.pipeline.documents.base import Content, Heading, all_bytes, unix_lines

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
