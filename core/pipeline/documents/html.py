"""Reads HTML as the text that a reader would see, by block, with headings; nothing is fetched or run."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field

from core.errors import InputError
from core.importers.read.member import Member
from core.importers.read.text import shown
from core.pipeline.documents.formats import Content, Heading, all_bytes, storable

_HIDDEN = frozenset((
    "script", "style", "template", "noscript", "head", "iframe", "object", "svg", "canvas", "audio",
    "video", "select",
))  # fmt: skip
_LINES = frozenset({"li", "tr", "dt", "dd", "option", "summary", "caption", "figcaption"})
_BLOCKS = _LINES | {
    "address", "article", "aside", "blockquote", "body", "details", "dialog", "div", "dl",
    "fieldset", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup",
    "hr", "html", "legend", "main", "nav", "ol", "p", "pre", "section", "table", "tbody", "tfoot",
    "thead", "ul",
}  # fmt: skip
_CELLS = frozenset(("td", "th"))
_LEVELS = {f"h{level}": level for level in range(1, 7)}
_GAPS = ("", " ", "\n", "\n\n")  # Gaps between two texts, the weakest first
_BLANKS = re.compile(r"[ \t\n\r\f]+")
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


def read_html(member: Member) -> Content:
    """Read an HTML file."""
    import bs4  # noqa: PLC0415 - needed for HTML only

    data = all_bytes(member)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # guesses at other formats of the text
        soup = bs4.BeautifulSoup(_decoded(data, member.name), "html.parser")
    text, places = _Text(), {id(soup): _TOP}
    for node in soup.descendants:
        if isinstance(node, bs4.element.Tag):
            places[id(node)] = _within(places[id(node.parent)], id(node), node.name)
            if node.name == "br":
                text.apart("\n")
        elif type(node) in (bs4.element.NavigableString, bs4.element.CData):
            place = places[id(node.parent)]
            if not place.hidden:
                text.add(str(node), place)
    title = soup.title.get_text() if soup.title else ""
    content = text.content()
    first = next((heading.title for heading in content.headings if heading.level == 1), "")
    return Content(content.text, " ".join(storable(title).split()) or first, content.headings)


def _decoded(data: bytes, name: str) -> str:
    from bs4.dammit import EncodingDetector  # noqa: PLC0415 - needed for HTML only

    marked = next((encoding for mark, encoding in _BOMS if data.startswith(mark)), None)
    declared = EncodingDetector.find_declared_encoding(data, is_html=True)
    tried = [marked] if marked else ["utf-8", *([str(declared)] if declared else [])]
    for encoding in tried:
        try:
            return data.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
    raise InputError(
        f"The text is not {' or '.join(shown(encoding) for encoding in tried)}.",
        where=name,
        do="Save the file as UTF-8 and offer it again.",
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """Position of a stretch of text: its innermost block and cell, and their effect on it."""

    block: int
    name: str
    cell: int
    level: int
    verbatim: bool
    hidden: bool


_TOP = _Place(0, "html", 0, 0, verbatim=False, hidden=False)


def _within(outer: _Place, tag: int, name: str) -> _Place:
    block = name in _BLOCKS
    return _Place(
        block=tag if block else outer.block,
        name=name if block else outer.name,
        cell=tag if name in _CELLS else outer.cell,
        level=_LEVELS.get(name, outer.level),
        verbatim=outer.verbatim or name in ("pre", "textarea"),
        hidden=outer.hidden or name in _HIDDEN,
    )


@dataclass(slots=True)
class _Text:
    """Text under construction."""

    parts: list[str] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    length: int = 0
    gap: str = ""
    last: _Place = _TOP

    def apart(self, gap: str) -> None:
        """Separate the following text by at least this gap."""
        self.gap = max(self.gap, gap, key=_GAPS.index)

    def add(self, text: str, place: _Place) -> None:
        """Add text at a place."""
        if place.block != self.last.block:
            near = place.name in _LINES and self.last.name in _LINES
            self.apart("\n" if near else "\n\n")
        elif place.cell != self.last.cell:
            self.apart(" ")
        written = storable(text if place.verbatim else _BLANKS.sub(" ", text))
        bare = written.strip("\n") if place.verbatim else written.strip(" ")
        if not bare.strip():
            self.apart(" " if written else "")
            return
        if not place.verbatim and written[0] == " ":
            self.apart(" ")
        gap = self.gap if self.parts else ""
        begins = place.level and not (place.block == self.last.block and self.headings)
        self.parts += (gap, bare)
        if begins:
            self.headings.append(Heading(self.length + len(gap), place.level, bare))
        elif place.level and self.headings:
            last = self.headings[-1]
            self.headings[-1] = Heading(last.start, last.level, f"{last.title}{gap}{bare}")
        self.length += len(gap) + len(bare)
        self.gap = " " if not place.verbatim and written[-1] == " " else ""
        self.last = place

    def content(self) -> Content:
        """Return the text read so far with its headings."""
        headings = (
            Heading(heading.start, heading.level, " ".join(heading.title.split()))
            for heading in self.headings
        )
        return Content("".join(self.parts), headings=tuple(headings))
