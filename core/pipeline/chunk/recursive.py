"""The largest units that fit: sections, then paragraphs, lines, sentences, words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from core.pipeline.chunk.base import Chunker, Span, Work
from core.pipeline.chunk.pack import pack
from core.pipeline.chunk.params import LANGUAGE, LATE, TOKENIZER, metadata, overlap, size
from core.pipeline.chunk.sentences import paragraphs, sentences

Divide = Callable[[Work, int, int], Iterable[Span]]


def _sections(work: Work, start: int, end: int) -> list[Span]:
    return [
        (max(left, start), min(right, end)) for left, right in work.sections() if left < end and right > start
    ]


def _lines(work: Work, start: int, end: int) -> list[Span]:
    lines, begin = [], start
    for line in work.text[start:end].split("\n"):
        lines.append((begin, begin + len(line)))
        begin += len(line) + 1
    return lines


_LEVELS: Sequence[Divide] = (_sections, paragraphs, _lines, sentences)


def _split(work: Work) -> list[Span]:
    return _within(work, (0, len(work.text)), _LEVELS)


def _within(work: Work, whole: Span, levels: Sequence[Divide]) -> list[Span]:
    """Divide a stretch; neighbours that fit are packed, what does not fit is divided further."""
    if work.fits(*whole):
        return [whole]
    if not levels:
        return pack(work, [whole], 0)
    spans: list[Span] = []
    fitting: list[Span] = []
    for part in (work.trimmed(*each) for each in levels[0](work, *whole)):
        if part[0] == part[1]:
            continue
        if work.fits(*part):
            fitting.append(part)
            continue
        spans += pack(work, fitting, work.option("overlap"))
        fitting = []
        spans += _within(work, part, levels[1:])
    return spans + pack(work, fitting, work.option("overlap"))


RECURSIVE = Chunker(
    method="recursive",
    text="The largest units that fit: sections, then paragraphs, lines, sentences, words (thesis §3.1.1).",
    split=_split,
    params=(size(500), overlap(0), metadata("title"), LANGUAGE, TOKENIZER, LATE),
)
