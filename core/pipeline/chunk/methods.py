"""Chunkers: functions that cut a document into passages, each with its declared parameters.

A chunker is a method with parameters, ``{"method": "sentence", "size": 200}``; `canonical` adds the defaults
and `chunking_name` names the result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from core.errors import InputError
from core.params import Method, Param, read_method
from core.pipeline.chunk.work import TOKENIZERS, ChunkWork, Span, next_word
from core.records import JsonMap, canonical_json, short_hash

LANGUAGES = {
    "english": "en", "french": "fr", "german": "de", "spanish": "es", "italian": "it", "portuguese": "pt",
    "dutch": "nl", "danish": "da", "norwegian": "no", "swedish": "sv", "russian": "ru", "turkish": "tr",
    "other": "en",
}  # fmt: skip
"""Languages whose abbreviations are known, by name; sentence ends are known for all scripts."""
Divide = Callable[[ChunkWork, int, int], Iterable[Span]]
_BLANK_LINE = re.compile(r"\n[^\S\n]*(?:\n\s*)+|\f\s*")
_LARGEST = 32_768
_SIZE = Param(
    name="size",
    default=500,
    low=16,
    high=_LARGEST,
    text="The most tokens of a passage, its metadata included",
)
_OVERLAP = Param(
    name="overlap",
    default=0,
    low=0,
    high=_LARGEST // 2,
    text="The most tokens that a passage repeats of the one before it; less than half of the size",
)
_METADATA = Param(
    name="metadata",
    default="title",
    choices=("none", "title", "breadcrumb"),
    text="What is put before a passage as its title: nothing, the document's title, or the path to it "
    "(document > section > subsection, page)",
)
_LANGUAGE = Param(
    name="language",
    default="english",
    choices=tuple(LANGUAGES),
    text="Whose abbreviations do not end a sentence",
)
_TOKENIZER = Param(
    name="tokenizer",
    default="o200k_base",
    choices=TOKENIZERS,
    text="What counts tokens; estimate = a token per four bytes",
)
_LATE = Param(
    name="late",
    default="no",
    choices=("no", "yes"),
    text="yes: the whole document is encoded at once and each chunk's vector is the mean of its tokens' "
    "(thesis §3.5); the encoder must give token vectors",
)
_SPOKEN = (_LANGUAGE, _TOKENIZER, _LATE)
_ONE_LINE = re.compile(r"[^\n]*(?:\n {0,3}(?:=+|-+)[ \t]*)?")  # the second line underlines the heading
_LEAST = "Shorter paragraphs (in tokens) are joined with the next"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunker(Method):
    """One way to cut documents; sizes count tokens."""

    split: Callable[[ChunkWork], Sequence[Span]]  # cuts a document into spans, in order


def sentences(work: ChunkWork, start: int, end: int) -> Iterator[Span]:
    """Yield the sentences of a stretch without the blanks at their ends; a blank line ends a sentence too."""
    import sentencex  # noqa: PLC0415 - a compiled library, needed only here

    language = LANGUAGES[work.options["language"]]
    for left, right in paragraphs(work, start, end):
        part = work.text[left:right]
        edges = [
            left + boundary["start_index"] for boundary in sentencex.get_sentence_boundaries(language, part)
        ]
        inner = sorted({edge for edge in edges if left < edge < right})
        spans = (work.trimmed(*span) for span in pairwise([left, *inner, right]))
        yield from (span for span in spans if span[0] < span[1])


def paragraphs(work: ChunkWork, start: int, end: int) -> Iterator[Span]:
    """Yield the paragraphs of a stretch, without the blanks at their ends.

    Blank lines and page breaks separate them.
    """
    begin = start
    for blank in [*_BLANK_LINE.finditer(work.text, start, end), None]:
        left, right = work.trimmed(begin, blank.start() if blank else end)
        if left < right:
            yield left, right
        begin = blank.end() if blank else end


def pack(work: ChunkWork, units: Sequence[Span], overlap: int) -> list[Span]:
    """Join units in order, as many as fit."""
    units = [
        part
        for start, end in units
        for part in ([(start, end)] if work.fits(start, end) else work.cut(start, end))
    ]
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
        # A passage that starts again with the last unit must reach the next one, or it would only repeat it
        while again < following and not (
            work.fits(starts[again], units[following][1]) and _last(work, units, again) >= following
        ):
            again += 1
        first = again
    return spans


def _last(work: ChunkWork, units: Sequence[Span], first: int) -> int:
    """Return the last unit that fits into a passage that begins with the first."""
    start = units[first][0]
    far = work.reach(start, units[-1][1])
    last = first
    while last + 1 < len(units) and units[last + 1][1] <= far:
        last += 1
    while last > first and not work.fits(start, units[last][1]):
        last -= 1
    return last


def _fixed(work: ChunkWork) -> list[Span]:
    spans: list[Span] = []
    start, end = next_word(work.text, 0, len(work.text)), len(work.text)
    far = work.reach(start, end) if start < end else end
    while start < end:
        spans.append((start, far))
        after = next_word(work.text, far, end)
        if after >= end:
            break
        start = work.overlap_from(start + 1, far, work.options["overlap"])
        far = work.reach(start, end) if start < far else far
        if far <= after:  # an overlap without room for new text would repeat forever
            start, far = after, work.reach(after, end)
    return spans


FIXED = Chunker(
    name="fixed",
    text="A fixed number of tokens with overlap, regardless of words and sentences (thesis §3.1.1).",
    split=_fixed,
    options=(_SIZE, replace(_OVERLAP, default=50), _METADATA, _TOKENIZER, _LATE),
)


def _by_sentence(work: ChunkWork) -> list[Span]:
    sections = (list(sentences(work, *section)) for section in work.sections())
    return [span for units in sections for span in pack(work, units, work.options["overlap"])]


SENTENCE = Chunker(
    name="sentence",
    text="Whole sentences up to a size, within one section, with the path of headings as metadata "
    "(CLQ paper §3.1).",
    split=_by_sentence,
    options=(
        _SIZE,
        replace(_OVERLAP, default=70),
        replace(_METADATA, default="breadcrumb"),
        *_SPOKEN,
    ),
)


def _sections(work: ChunkWork, start: int, end: int) -> list[Span]:
    return [
        (max(left, start), min(right, end)) for left, right in work.sections() if left < end and right > start
    ]


def _lines(work: ChunkWork, start: int, end: int) -> list[Span]:
    lines, begin = [], start
    for line in work.text[start:end].split("\n"):
        lines.append((begin, begin + len(line)))
        begin += len(line) + 1
    return lines


_LEVELS: Sequence[Divide] = (_sections, paragraphs, _lines, sentences)


def _within(work: ChunkWork, whole: Span, levels: Sequence[Divide]) -> list[Span]:
    """Divide a stretch; neighbours that fit together are packed, and what does not fit is divided further."""
    if work.fits(*whole):
        return [whole]
    if not levels:
        return pack(work, [whole], 0)
    spans: list[Span] = []
    fitting: list[Span] = []
    for part in (work.trimmed(*span) for span in levels[0](work, *whole)):
        if part[0] == part[1]:
            continue
        if work.fits(*part):
            fitting.append(part)
            continue
        spans += pack(work, fitting, work.options["overlap"])
        fitting = []
        spans += _within(work, part, levels[1:])
    return spans + pack(work, fitting, work.options["overlap"])


RECURSIVE = Chunker(
    name="recursive",
    text="The largest units that fit: sections, then paragraphs, lines, sentences, words (thesis §3.1.1).",
    split=lambda work: _within(work, (0, len(work.text)), _LEVELS),
    options=(
        _SIZE,
        _OVERLAP,
        _METADATA,
        *_SPOKEN,
    ),
)


def _by_paragraph(work: ChunkWork) -> list[Span]:
    spans: list[Span] = []
    waiting: Span | None = None  # too little for a passage
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


def _too_little(work: ChunkWork, start: int, end: int) -> bool:
    """Return whether a stretch waits for the next paragraph: a lone heading, or below the least length."""
    heading = any(at == start for at, _, _ in work.headings)
    alone = heading and _ONE_LINE.fullmatch(work.text, start, end) is not None
    return alone or work.gauge.count(start, end) < work.options["least"]


PARAGRAPH = Chunker(
    name="paragraph",
    text="One paragraph each; a heading goes with the paragraph below it (thesis §7, page split).",
    split=_by_paragraph,
    options=(
        _SIZE,
        Param(name="least", default=0, low=0, high=4096, text=_LEAST),
        _METADATA,
        *_SPOKEN,
    ),
)


def _by_page(work: ChunkWork) -> list[Span]:
    spans: list[Span] = []
    for start, end in pairwise([0, *work.pages[1:], len(work.text)]):
        left, right = work.trimmed(start, end)
        if left == right:
            continue
        fits = work.fits(left, right)
        spans += [(left, right)] if fits else pack(work, list(sentences(work, left, right)), 0)
    return spans


PAGE = Chunker(
    name="page",
    text="One page each; a longer page is cut between sentences (thesis §7, full page).",
    split=_by_page,
    options=(replace(_SIZE, default=8192), _METADATA, *_SPOKEN),
)


NONE = Chunker(
    name="none",
    text="Documents are passages, as they are.",
    split=lambda work: [(0, len(work.text))],
    options=(_TOKENIZER,),
)


CHUNKERS: Mapping[str, Chunker] = MappingProxyType(
    {each.name: each for each in (FIXED, SENTENCE, RECURSIVE, PARAGRAPH, PAGE, NONE)}
)


def canonical(chunker: JsonMap) -> dict[str, Any]:
    """Return a chunker with all of its parameters, for ``Stack.spec["chunker"]``.

    Raises:
        UnknownNameError: If there is no such method or parameter.
        InputError: If a parameter is out of range.
    """
    given = {
        name: ("no", "yes")[value] if isinstance(value, bool) else value for name, value in chunker.items()
    }
    whole = read_method("chunker", CHUNKERS, given)
    overlap, size = whole.get("overlap", 0), whole.get("size", 0)
    if overlap and overlap * 2 >= size:
        raise InputError(
            f"overlap={overlap} is not below half of size={size}.",
            where=f"chunker {whole['method']}",
            do="Lower the overlap or raise the size.",
        )
    return whole


def chunking_name(chunker: JsonMap) -> str | None:
    """Return the name of a chunking: method, size, and four digits that stand for all parameters."""
    whole = canonical(chunker)
    if whole["method"] == NONE.name:
        return None
    return f"{whole['method']}-{whole['size']}-{short_hash(canonical_json(whole))[:4]}"


def is_late(chunker: JsonMap | None) -> bool:
    """Return whether vectors come from whole documents (late chunking), which needs token vectors."""
    return chunker is not None and canonical(chunker).get("late") == "yes"
