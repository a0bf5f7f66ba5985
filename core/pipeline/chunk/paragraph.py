"""One paragraph each: what blank lines set apart."""

from __future__ import annotations

import re

from core.metrics.info import Param
from core.pipeline.chunk.base import Chunker, Span, Work
from core.pipeline.chunk.pack import pack
from core.pipeline.chunk.params import LANGUAGE, LATE, TOKENIZER, metadata, size
from core.pipeline.chunk.sentences import paragraphs, sentences

_ONE_LINE = re.compile(r"[^\n]*(?:\n {0,3}(?:=+|-+)[ \t]*)?")  # the second line underlines the heading


def _split(work: Work) -> list[Span]:
    spans: list[Span] = []
    waiting: Span | None = None  # too little to stand alone
    for start, end in paragraphs(work, 0, len(work.text)):
        joined = (waiting[0], end) if waiting else (start, end)
        if waiting and not work.fits(*joined):
            spans.append(waiting)
            joined = start, end
        waiting = None
        if not work.fits(*joined):
            spans += pack(work, list(sentences(work, *joined)), 0)
        elif _too_little(work, *joined):
            waiting = joined
        else:
            spans.append(joined)
    return [*spans, waiting] if waiting else spans


def _too_little(work: Work, start: int, end: int) -> bool:
    """Whether this waits for the next paragraph: a heading alone, or shorter than a passage may be."""
    heading = any(at == start for at, _, _ in work.headings)
    alone = heading and _ONE_LINE.fullmatch(work.text, start, end) is not None
    return alone or work.gauge.count(start, end) < work.option("least")


PARAGRAPH = Chunker(
    method="paragraph",
    text="One paragraph each; a heading goes with the paragraph below it (thesis §7, page split).",
    split=_split,
    params=(
        size(500),
        Param(
            name="least",
            default=0,
            low=0,
            high=4096,
            text="Shorter paragraphs (in tokens) are joined with the next",
        ),
        metadata("title"),
        LANGUAGE,
        TOKENIZER,
        LATE,
    ),
)
