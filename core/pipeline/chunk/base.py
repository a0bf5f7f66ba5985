"""What a chunker is, and the document that it cuts.

Units of text (sentences, paragraphs), and passages packed of them with whole units as overlap.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from core.params import Param
from core.pipeline.chunk.gauge import Gauge, Tokenizer
from core.records import JsonMap

Span = tuple[int, int]  # First character and the one after the last

CRUMB = " > "
_MARGIN = 8
_WORD_START = re.compile(r"\S")


@dataclass(frozen=True, slots=True)
class Chunker:
    """One way to cut documents."""

    method: str  # its name in a specification
    text: str  # what it does, in one line
    split: Callable[[Work], Sequence[Span]]  # cuts a document into spans, in order
    params: tuple[Param, ...] = ()  # what it takes, with defaults and ranges; sizes count tokens


class Work:
    """One document while it is cut."""

    def __init__(self, row: Mapping[str, Any], options: JsonMap, tokenizer: Tokenizer) -> None:
        self.text: str = row["text"]
        self.title: str = " ".join((row["title"] or "").split())
        self.headings = [(each["start"], each["level"], each["title"]) for each in row["headings"] or ()]
        self.pages: list[int] = list(row["pages"] or ())
        self.gauge: Gauge = tokenizer.measure(self.text)
        self._options = options
        self._tokenizer = tokenizer
        self._starts = [start for start, _, _ in self.headings]
        self._crumbs: dict[tuple[int, int], str] = {}
        self._costs: dict[str, int] = {}
        self._counted: dict[Span, int] = {}

    def option(self, name: str) -> int:
        """A parameter that is a number."""
        return int(self._options[name])

    def word(self, name: str) -> str:
        """A parameter that is a word; empty for a parameter that the chunker lacks."""
        return str(self._options.get(name, ""))

    def trimmed(self, start: int, end: int) -> Span:
        """The span without the blanks at its ends; empty (start = end) when it is all blank."""
        part = self.text[start:end]
        left = len(part) - len(part.lstrip())
        return start + left, max(start + left, start + len(part.rstrip()))

    def sections(self) -> list[Span]:
        """The document cut before each heading."""
        edges = [0, *(start for start in self._starts if start > 0), len(self.text)]
        return list(pairwise(edges))

    def metadata(self, start: int) -> str:
        """What stands before the text of a passage that begins here; may be empty.

        It takes half of the size at most: what is least specific is left out first.
        """
        section = bisect_right(self._starts, start)
        page = bisect_right(self.pages, start)
        known = self._crumbs.get((section, page))
        if known is None:
            known = self._crumbs[section, page] = self._shortened(self._path(section, page))
        return known

    def _path(self, section: int, page: int) -> list[str]:
        wanted = self.word("metadata")
        if wanted == "none":
            return []
        path = [self.title] if self.title else []
        if wanted == "title":
            return path
        stack: list[tuple[int, str]] = []
        for _, level, title in self.headings[:section]:
            stack = [each for each in stack if each[0] < level] + [(level, title)]
        if stack and [stack[0][1]] == path:  # the first heading is the title
            path = []
        path += [title for _, title in stack]
        return [*path, f"page {page}"] if self.pages else path

    def _shortened(self, path: list[str]) -> str:
        while path and self._cost(CRUMB.join(path)) > self.option("size") // 2:
            path = path[1:]
        return CRUMB.join(path)

    def _cost(self, crumb: str) -> int:
        """Tokens of metadata with the line end that follows it."""
        if not crumb:
            return 0
        if crumb not in self._costs:
            self._costs[crumb] = self._tokenizer.measure("").count(0, 0, f"{crumb}\n")
        return self._costs[crumb]

    def tokens(self, start: int, end: int) -> int:
        """Tokens of the passage that these characters make, its metadata included."""
        span = start, end = self.trimmed(start, end)
        if span not in self._counted:
            crumb = self.metadata(start)
            self._counted[span] = self.gauge.count(start, end, f"{crumb}\n" if crumb else "")
        return self._counted[span]

    def fits(self, start: int, end: int) -> bool:
        """Whether these characters make a passage that is not too long.

        Where they are clearly short this is told from the tokens of the whole text, which is faster; what is
        made of it is counted exactly in the end.
        """
        limit = self.option("size")
        about = self.gauge.about(start, end) + self._cost(self.metadata(start))
        return about + _MARGIN <= limit or self.tokens(start, end) <= limit

    def reach(self, start: int, end: int) -> int:
        """How far a passage can reach that begins here, `end` at most; at least one character."""
        start = min(self.trimmed(start, end)[0], end - 1)
        limit = self.option("size")
        room = limit - self._cost(self.metadata(start))
        far = min(self.gauge.reach(start, room), end)
        while far > start + 1 and (over := self.tokens(start, far) - limit) > 0:
            far = max(start + 1, min(self.gauge.back(far, over), far - 1))
        return far

    def cut(self, start: int, end: int) -> list[Span]:
        """Passages of the largest size that end between words, where there are any."""
        spans = []
        while start < end:
            far = self.reach(start, end)
            if far < end:
                blank = max(self.text.rfind(mark, start + 1, far + 1) for mark in " \n\t")
                far = blank if blank > start + (far - start) // 2 else far
            spans.append((start, far))
            start = self.trimmed(far, end)[0]
        return spans

    def overlap_from(self, start: int, end: int, tokens: int) -> int:
        """Where so many tokens before `end` begin, at `start` at the earliest."""
        end = self.trimmed(start, end)[1]
        begin = max(self.gauge.back(end, tokens), start) if tokens > 0 else end
        while (begin := next_word(self.text, begin, end)) < end:
            over = self.gauge.count(begin, end) - tokens
            if over <= 0:
                break
            begin = max(begin + 1, self.gauge.reach(begin, over))
        return begin


def next_word(text: str, start: int, end: int) -> int:
    """Where the next text begins; `end` when all is blank."""
    found = _WORD_START.search(text, start, end)
    return found.start() if found else end


LANGUAGES = {
    "english": "en", "french": "fr", "german": "de", "spanish": "es", "italian": "it", "portuguese": "pt",
    "dutch": "nl", "danish": "da", "norwegian": "no", "swedish": "sv", "russian": "ru", "turkish": "tr",
    "other": "en",
}  # fmt: skip
"""Languages whose abbreviations are known, by name; what ends a sentence is known of all scripts."""

_BLANK_LINE = re.compile(r"\n[^\S\n]*(?:\n\s*)+|\f\s*")


def sentences(work: Work, start: int, end: int) -> Iterator[Span]:
    """The sentences of a stretch, without the blanks at their ends; a blank line ends one, too."""
    import sentencex  # noqa: PLC0415 - a compiled library, needed only here

    language = LANGUAGES[work.word("language") or "other"]
    for left, right in paragraphs(work, start, end):
        part = work.text[left:right]
        edges = [left + each["start_index"] for each in sentencex.get_sentence_boundaries(language, part)]
        inner = sorted({edge for edge in edges if left < edge < right})
        spans = (work.trimmed(*span) for span in pairwise([left, *inner, right]))
        yield from (span for span in spans if span[0] < span[1])


def paragraphs(work: Work, start: int, end: int) -> Iterator[Span]:
    """The paragraphs of a stretch: what blank lines and page breaks set apart, without blanks at the ends."""
    begin = start
    for blank in [*_BLANK_LINE.finditer(work.text, start, end), None]:
        left, right = work.trimmed(begin, blank.start() if blank else end)
        if left < right:
            yield left, right
        begin = blank.end() if blank else end


def pack(work: Work, units: Sequence[Span], overlap: int) -> list[Span]:
    """Join units in order, as many as fit."""
    units = _fitting(work, units)
    starts = [start for start, _ in units]
    spans: list[Span] = []
    first = 0
    while first < len(units):
        last = _last(work, units, first)
        start, end = starts[first], units[last][1]
        spans.append((start, end))
        if last + 1 == len(units):
            break
        begin = work.overlap_from(start, end, overlap)
        following = last + 1
        again = next((unit for unit in range(first + 1, following) if starts[unit] >= begin), following)
        while again < following and not _adds(work, units, again, following):
            again += 1
        first = again
    return spans


def _fitting(work: Work, units: Sequence[Span]) -> list[Span]:
    return [
        part
        for start, end in units
        for part in ([(start, end)] if work.fits(start, end) else work.cut(start, end))
    ]


def _adds(work: Work, units: Sequence[Span], again: int, following: int) -> bool:
    """Whether a passage that begins again with a unit reaches the following one: else it repeats alone."""
    return work.fits(units[again][0], units[following][1]) and _last(work, units, again) >= following


def _last(work: Work, units: Sequence[Span], first: int) -> int:
    """The last unit that fits into a passage that begins with the first."""
    start = units[first][0]
    far = work.reach(start, units[-1][1])
    last = first
    while last + 1 < len(units) and units[last + 1][1] <= far:
        last += 1
    while last > first and not work.fits(start, units[last][1]):
        last -= 1
    return last
