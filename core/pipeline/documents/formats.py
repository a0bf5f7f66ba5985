"""Readers of plain text, Markdown and PDF, one document per file, and what they share with HTML's."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from core.errors import InputError
from core.importers.read.member import MIB, Member
from core.importers.read.text import shown, whole

DOCUMENT_BYTES = 64 * MIB  # Maximum size of a document file; books of a thousand pages take a tenth of it
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_SETEXT = re.compile(r" {0,3}(=+|-{2,})[ \t]*")
_NO_PARAGRAPH = re.compile(r"\s*$| {0,3}(?:[-*+>|]|\d+[.)])|\t| {4}")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])?")
_MARKUP = re.compile(r"[*`]|(?<!\w)_+|_+(?!\w)|\{#[^{}]*\}\s*$")
MATTER_CHARACTERS = 65_536  # Maximum size of front matter that is read


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: where its line begins, its level (1 is the highest) and its text."""

    start: int
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class Content:
    """One document as its reader found it; `title` is empty if there is none."""

    text: str
    title: str = ""
    headings: tuple[Heading, ...] = ()
    pages: tuple[int, ...] = ()
    # The fields of its front matter; None = there is some, which cannot be read
    fields: Mapping[str, Any] | None = field(default_factory=dict, hash=False)


def storable(text: str) -> str:
    """Return a text of equal length, with U+FFFD for characters that UTF-8 files or databases can't hold."""
    return _UNSTORABLE.sub("\ufffd", text)


def unix_lines(text: str) -> str:
    """Return the text with LF line ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def all_bytes(member: Member) -> bytes:
    """Return the content of one document."""
    with member.stream() as stream:
        data = stream.read(DOCUMENT_BYTES + 1)
    if len(data) > DOCUMENT_BYTES:
        raise InputError(
            f"The document has more than {DOCUMENT_BYTES:,} bytes.",
            where=member.name,
            do="Split it, or offer its text as a table with a row per part.",
        )
    return data


def read_text(member: Member) -> Content:
    """Read a text file in UTF-8; form feeds begin pages."""
    text = _decoded(member)
    breaks = [match.end() for match in re.finditer("\f", text)]
    return Content(text, pages=(0, *breaks) if breaks else ())


def read_markdown(member: Member) -> Content:
    """Read a Markdown file in UTF-8: its headings, of which the first of level 1 is the title, its fields."""
    text = _decoded(member)
    headings = tuple(markdown_headings(text))
    top = min((heading.level for heading in headings), default=0)
    title = next((heading.title for heading in headings if heading.level == top), "")
    return Content(text, title if top == 1 else "", headings, fields=front_matter(text))


def front_matter(text: str) -> dict[str, Any] | None:
    """Return the fields between two lines ``---`` at the start of a text; None if they cannot be read.

    Dates are ISO texts. References (``&a``, ``*a``), which may multiply a text without end, are not read.
    """
    lines = text.split("\n")
    matter = "\n".join(lines[1 : max(_front_matter(lines) - 1, 1)])
    if not matter.strip():
        return {}
    if len(matter) > MATTER_CHARACTERS:
        return None
    import yaml  # noqa: PLC0415 - needed for front matter only

    try:
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(matter)):
            return None
        read = yaml.safe_load(matter)
        if not isinstance(read, dict):
            return None
        named = {str(name): value for name, value in read.items() if value is not None}
        # default: dates; what has no JSON, such as .nan or a list as a key, is refused
        return dict(json.loads(json.dumps(named, default=_dated, allow_nan=False)))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):  # ValueError: also 2025-13-45
        return None


def _dated(value: object) -> str:
    if isinstance(value, date):  # also times
        return value.isoformat()
    raise TypeError


def _decoded(member: Member) -> str:
    all_bytes(member)  # checks the size before anything else
    return unix_lines(whole(member).decode("utf-8"))


def markdown_headings(text: str) -> Iterator[Heading]:
    """Yield ATX and Setext headings outside of code and front matter."""
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
    """Return the number of metadata lines (between two lines ``---``) at the start of the file."""
    if lines[0].rstrip() != "---":
        return 0
    return next((number for number, line in enumerate(lines[1:], 2) if line.rstrip() in ("---", "...")), 0)


def read_pdf(member: Member) -> Content:
    """Read a PDF file."""
    # The library reports every blemish that it works around.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    data = io.BytesIO(all_bytes(member))
    try:
        read = _pages(data)
    except Exception as error:  # a malformed file can raise any error, not only the library's own
        said = shown(str(error) or type(error).__name__, 200)
        raise InputError(
            f"The PDF cannot be read: {said}.", where=member.name, do="Save it anew, or leave it out."
        ) from error
    if read is None:
        raise InputError("The PDF is encrypted.", where=member.name, do="Save it without a password.")
    texts, title = read
    pages: list[int] = []
    text = ""
    for page in texts:
        text += "\n\n" if page and text else ""
        pages.append(len(text))  # earlier pages without text also begin here
        text += page
    return Content(text, " ".join(title.split()), pages=tuple(pages))


def _pages(data: io.BytesIO) -> tuple[list[str], str] | None:
    """Return the texts of the pages and the title, or None if a password is needed."""
    import pypdf  # noqa: PLC0415 - needed for PDF only

    reader = pypdf.PdfReader(data, strict=False)
    if reader.is_encrypted and not reader.decrypt(""):
        return None
    title = reader.metadata.title if reader.metadata else None
    return [_clean(page.extract_text()) for page in reader.pages], _clean(str(title or ""))


def _clean(text: str) -> str:
    return storable(unix_lines(text)).strip()
