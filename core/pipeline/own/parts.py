"""Documents of which a pipeline returns parts: its own passages, identified by place in the document."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from core.pipeline.documents.formats import markdown_headings
from core.pipeline.own.config import MatchBy
from core.pipeline.own.passages import FoundPassage, Kept, PassageShelf, PlacedBy, ToldPassages, plain_text
from core.pipeline.own.paths import Paths
from core.pipeline.own.words import in_line

if TYPE_CHECKING:
    from core.pipeline.evaluate.job import Corpus

_WHOLE = 0.95  # Share of a document from which a part counts as the whole document
_HALF = 0.5  # Least length of a text not there word by word that counts as its document, as a share


def shelf_of(corpus: Corpus) -> PassageShelf:
    """Return the passages of a corpus, for looking up answers."""
    ids, texts, named = corpus.passage_ids, corpus.texts, corpus.named
    if named is None or named.chunks is None:
        return PassageShelf(ids, texts, None if named is None else named.rows)
    return DocumentShelf(ids, texts, named.rows, named.chunks)


class DocumentPart(NamedTuple):
    """A part of a document."""

    document: int  # its position in the corpus
    start: int  # its first character
    end: int  # the position after its last character


class DocumentShelf(PassageShelf):
    """The documents of a corpus; returned parts of them get positions after theirs.

    Args:
        rows: Title, text and source of each document.
        chunks: Passages that others cut from them: passage_id, source, start_char, end_char.
    """

    def __init__(
        self,
        passage_ids: pl.Series,
        texts: pl.Series,
        rows: pl.DataFrame,
        chunks: pl.DataFrame,
    ) -> None:
        super().__init__(passage_ids, texts, rows)
        self.documents: list[str] = rows["text"].fill_null("").to_list()
        self.parts: list[DocumentPart] = []
        self._part_at: dict[DocumentPart, int] = {}
        self._chunks = chunks

    def kept(self, at: int) -> Kept:
        """Return a document by its position, or a part by its place."""
        return at if at < len(self) else list(self.parts[at - len(self)])

    def position(self, kept: Kept) -> int:
        """Return the position of what was kept."""
        return kept if isinstance(kept, int) else self._part(DocumentPart(*kept))

    def shown(self, at: int) -> tuple[str, str]:
        """Return the id and text of a document; for a part also its characters."""
        if at < len(self):
            return super().shown(at)
        document, start, end = self.parts[at - len(self)]
        name, _ = super().shown(document)
        return f"{name}, characters {start:,} to {end:,}", self.documents[document][start:end]

    def forms(self, at: int, text: str) -> Iterator[str]:
        """Yield a document with and without its title before it; a text that lacks more is a part of it."""
        yield from filter(None, map(plain_text, (text, self.documents[at])))

    def find(self, told: ToldPassages, match: MatchBy) -> FoundPassage:
        """Find the document or the part of one that a hit means, and how it was found, or None."""
        if match == "ids":
            return super().find(told, match)
        if (cut := next((self._cut[name] for name in told.ids if name in self._cut), None)) is not None:
            return self._part(cut), "id"
        document, way = self._document(told)
        if document is not None and (span := self._span(told, document)) is not None:
            return self._part(span), "span"
        if told.line:
            at, way = self._by_words(told, document, way)
        else:  # only a part has a heading
            at = None if told.heading else document
        return (at, way) if at is not None or match != "headings" else (self.under_heading(told), "heading")

    def _by_words(self, told: ToldPassages, document: int | None, way: PlacedBy) -> FoundPassage:
        exact = self._by_text.get(plain_text(told.text))
        if exact is not None and document in (None, exact):
            return exact, "text" if document is None else way
        if (quote := self._quote(told.line, document)) is not None:
            return self._part(quote), "quote"
        much = document is not None and len(told.line) >= _HALF * len(self.words.worded(document).line)
        return (document if much else None), way

    def is_cut_up(self, told: ToldPassages) -> bool:  # noqa: ARG002 - its documents are passages
        """Return False: no hit names a document of which only passages are known."""
        return False

    def under_heading(self, told: ToldPassages) -> int | None:
        """Find the text below a hit's heading, up to the next one, or None if several have that name."""
        document, _ = self._document(told)
        if document is None or not told.heading:
            return None
        text = self.documents[document]
        headings = list(markdown_headings(text))
        ends = [*(heading.start for heading in headings[1:]), len(text)]
        parts = [
            DocumentPart(document, heading.start, heading.start + len(text[heading.start : end].rstrip()))
            for heading, end in zip(headings, ends, strict=True)
            if in_line(heading.title) == told.heading
        ]
        return self._part(parts[0]) if len(parts) == 1 else None

    def _document(self, told: ToldPassages) -> FoundPassage:
        if (known := self.known(told)) is not None:
            return known, "id"
        named = (self._by_path.find(name) for name in (told.source, *told.ids) if name)
        return next((at for at in named if at is not None), None), "source"

    def _span(self, told: ToldPassages, document: int) -> DocumentPart | None:
        """Return the place given in a hit, if its text, if any, really is there."""
        text = self.documents[document]
        if told.start is None or (told.end is None and not told.text):
            return None
        end = told.start + len(told.text) if told.end is None else told.end
        said = in_line(text[told.start : end])
        stands = end <= len(text) and said and told.line in ("", said)
        return DocumentPart(document, told.start, end) if stands else None

    def _quote(self, line: str, document: int | None) -> DocumentPart | None:
        at = self.words.holding(line) if document is None else document
        place = None if at is None else self.words.worded(at).find(line)
        return None if at is None or place is None else DocumentPart(at, *place)

    def _part(self, part: DocumentPart) -> int:
        """Return the position of a part, or the document's own position if the part is all of it."""
        if part.end - part.start >= _WHOLE * len(self.documents[part.document].strip()):
            return part.document
        if part not in self._part_at:
            self._part_at[part] = len(self) + len(self.parts)
            self.parts.append(part)
        return self._part_at[part]

    @cached_property
    def _by_path(self) -> Paths:
        return Paths((name, at) for at, name in enumerate(self.ids))

    @cached_property
    def _cut(self) -> dict[str, DocumentPart]:
        """Return the places of passages cut by others, by their ids."""
        rows = self._chunks.select("passage_id", "source", "start_char", "end_char").iter_rows()
        at = self.named
        return {name: DocumentPart(at[source], *place) for name, source, *place in rows if source in at}
