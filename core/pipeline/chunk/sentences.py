"""Where sentences and paragraphs begin and end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from core.pipeline.chunk.base import Span, Work

LANGUAGES = {
    "english": "en",
    "french": "fr",
    "german": "de",
    "spanish": "es",
    "italian": "it",
    "portuguese": "pt",
    "dutch": "nl",
    "danish": "da",
    "norwegian": "no",
    "swedish": "sv",
    "russian": "ru",
    "turkish": "tr",
    "other": "en",
}
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
