"""Passages of an answer, found in the corpus by id, text, quote or heading; unmatched ones are counted.

A passage that isn't cut like the corpus counts as the passage that contains it, or as the
longest one that it contains. Parts of documents: `core.pipeline.own.parts`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import polars as pl

from core.pipeline.own.config import MatchBy
from core.pipeline.own.paths import Paths
from core.pipeline.own.words import PlacedTexts, in_line

PlacedBy = Literal["id", "source", "text", "span", "quote", "heading"]
_BLANKS = re.compile(r"\s+")
NAMED = 5  # Number of unmatched passages of one answer that are named
_SHOWN = 60

Hit = Sequence[Any]
"""Candidate ids; score or None; text or None; and its origin if given."""
Kept = int | list[int]
"""A passage by its position, or a part of a document: that document's position, first and last character."""
FoundPassage = tuple[int | None, PlacedBy]
_BY: Mapping[MatchBy, str] = {
    "ids": "id or text",
    "places": "id, text, place or quote",
    "headings": "id, text, place, quote or heading",
}


def plain_text(text: str) -> str:
    """Return a text as it is compared: with single blanks, and none at the ends."""
    return _BLANKS.sub(" ", text).strip()


@dataclass(slots=True)
class PlacedPassages:
    """The passages of an answer that are in the corpus, and the number of those that are not."""

    passages: list[int] = field(default_factory=list)  # positions in the corpus, best first
    scores: list[float | None] = field(default_factory=list)
    unmatched: int = 0  # passages that match nothing
    headed: int = 0  # of these, those that source and heading would identify
    documents: int = 0  # of these, ones that name a document whose passages are in the corpus
    repeated: int = 0  # passages that occurred further up already
    known_by: Counter[PlacedBy] = field(default_factory=Counter)  # how the others were found
    named: list[str] = field(default_factory=list)  # some of the unmatched ones

    def unknown(self, match: MatchBy) -> str:
        """Describe how unmatched passages were looked up, and other clues to them."""
        more = f"; source and heading would tell {self.headed} (match = headings)" if self.headed else ""
        more += f"; {self.documents} name documents, of which it holds passages" if self.documents else ""
        return f"in the collection, by {_BY[match]}{more}"


class ToldPassages(NamedTuple):
    """The information in a hit about itself."""

    ids: Sequence[str]
    text: str  # empty if the hit is an id, or has none
    line: str  # the words of the text
    source: str
    heading: str  # the words of the heading
    start: int | None
    end: int | None

    @classmethod
    def of(cls, hit: Hit) -> ToldPassages:
        """Read a hit."""
        ids, _, text, *more = hit
        at: dict[str, Any] = more[0] if more else {}
        text = "" if text is None or text in ids else text
        heading = in_line(str(at.get("heading") or ""))
        return cls(
            ids, text, in_line(text), str(at.get("source") or ""), heading, at.get("start"), at.get("end")
        )

    @property
    def name(self) -> str:
        """Display name."""
        return str(self.ids[0]) if self.ids else self.text or f"{self.source}, {self.heading.strip()}"


class PassageShelf:
    """The passages of a corpus, for looking up answers.

    Args:
        passage_ids: Their ids.
        texts: The searched text of each passage.
        rows: Title, text and source of each; None = only id and whole text identify passages.
    """

    def __init__(self, passage_ids: pl.Series, texts: pl.Series, rows: pl.DataFrame | None = None) -> None:
        self.ids, self._texts, self._rows = passage_ids, texts, rows

    def __len__(self) -> int:
        return len(self.ids)

    def place(self, hits: Sequence[Hit], match: MatchBy = "places") -> PlacedPassages:
        """Look up passages; of one that occurs twice the first counts."""
        placed, seen = PlacedPassages(), set[int]()
        for hit in hits:
            told = ToldPassages.of(hit)
            at, way = self.find(told, match)
            if at is None:
                placed.unmatched += 1
                placed.documents += self.is_cut_up(told)
                placed.headed += match == "places" and self.under_heading(told) is not None
                if len(placed.named) < NAMED:
                    placed.named.append(told.name[:_SHOWN])
                continue
            placed.known_by[way] += 1
            if at in seen:
                placed.repeated += 1
                continue
            seen.add(at)
            placed.passages.append(at)
            placed.scores.append(hit[1])
        return placed

    def kept(self, at: int) -> Kept:
        """Return a passage in the form to keep, which does not depend on what else is returned."""
        return at

    def position(self, kept: Kept) -> int:
        """Return the position of a kept passage."""
        return kept if isinstance(kept, int) else kept[0]

    def shown(self, at: int) -> tuple[str, str]:
        """Return the id and the text of a passage, for display."""
        return str(self.ids[at]), str(self._texts[at])

    def find(self, told: ToldPassages, match: MatchBy) -> FoundPassage:
        """Find the passage that a hit is or that contains it, and how it was found, or None."""
        if (known := self.known(told)) is not None:
            return known, "id"
        exact = self._by_text.get(plain_text(told.text))
        if exact is not None or match == "ids" or self._rows is None:
            return exact, "text"
        if told.line and (quoted := self._quoted(told)) is not None:
            return quoted, "quote"
        return (self.under_heading(told) if match == "headings" else None), "heading"

    def known(self, told: ToldPassages) -> int | None:
        """Return the passage that has one of a hit's ids."""
        return next((self.named[name] for name in told.ids if name in self.named), None)

    def _quoted(self, told: ToldPassages) -> int | None:
        near = self._of_source(told)
        if (held := self.words.holding(told.line, near)) is not None:
            return held
        within = [at for at in self.words.within(told.line) if near is None or at in near]
        return max(within, key=lambda at: len(self.words.worded(at).line), default=None)

    def under_heading(self, told: ToldPassages) -> int | None:
        """Find the passage under a hit's heading, if its source has only one there."""
        near = self._of_source(told) if told.heading else None
        if near is None or self._rows is None:
            return None
        titled = [at for at in near if in_line(self._rows["title"][at] or "") == told.heading]
        return titled[0] if len(titled) == 1 else None

    def is_cut_up(self, told: ToldPassages) -> bool:
        """Return whether a hit names a document whose passages are in the corpus."""
        return any(self._paths.find(name) is not None for name in told.ids)

    def _of_source(self, told: ToldPassages) -> Sequence[int] | None:
        """Return the passages of the source that a hit gives, or None if it is unknown."""
        at = self._paths.find(told.source) if told.source else None
        return None if at is None else self._sources[at][1]

    @cached_property
    def words(self) -> PlacedTexts:
        """The texts of the passages, for finding them by their words."""
        texts = self._rows["text"].fill_null("") if self._rows is not None else self._texts
        return PlacedTexts(texts.to_list())

    @cached_property
    def named(self) -> dict[str, int]:
        """Positions of the passages by their ids."""
        return {name: at for at, name in enumerate(self.ids)}

    @cached_property
    def _by_text(self) -> dict[str, int]:
        """Position by text, with and without its title before it; of equal texts the first."""
        places: dict[str, int] = {}
        for at, text in enumerate(self._texts):
            for form in self.forms(at, text):
                places.setdefault(form, at)
        return places

    def forms(self, at: int, text: str) -> Iterator[str]:  # noqa: ARG002 - documents are identified by it
        """Yield the forms in which a text may be returned: with and without its title before it."""
        head, _, rest = text.partition("\n")
        yield from filter(None, map(plain_text, (text, rest, "" if rest else head)))

    @cached_property
    def _sources(self) -> list[tuple[str, list[int]]]:
        found: dict[str, list[int]] = {}
        for at, source in enumerate(self._rows["source"] if self._rows is not None else ()):
            if source:
                found.setdefault(source, []).append(at)
        return list(found.items())

    @cached_property
    def _paths(self) -> Paths:
        return Paths((source, at) for at, (source, _) in enumerate(self._sources))
