"""Units of text (sentences, paragraphs), and passages packed of them with whole units as overlap."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from core.pipeline.chunk.base import Span, Work

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
        while again < following and not work.fits(starts[again], units[following][1]):
            again += 1
        first = again
    return spans


def _fitting(work: Work, units: Sequence[Span]) -> list[Span]:
    return [
        part
        for start, end in units
        for part in ([(start, end)] if work.fits(start, end) else work.cut(start, end))
    ]


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
