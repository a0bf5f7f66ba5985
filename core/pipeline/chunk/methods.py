"""The chunkers: each a function that cuts a document, and what it declares."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from core.errors import InputError, UnknownNameError
from core.params import Param, Value, read_options
from core.pipeline.chunk.base import LANGUAGES, Chunker, Span, Work, next_word, pack, paragraphs, sentences
from core.pipeline.chunk.gauge import TOKENIZERS
from core.records import JsonMap, canonical_json, short_hash

SMALLEST, LARGEST = 16, 32_768


def size(default: int) -> Param:
    """The most tokens of a passage."""
    text = "The most tokens of a passage, its metadata included"
    return Param(name="size", default=default, low=SMALLEST, high=LARGEST, text=text)


def overlap(default: int) -> Param:
    """How much a passage repeats of the one before it."""
    text = "The most tokens that a passage repeats of the one before it; less than half of the size"
    return Param(name="overlap", default=default, low=0, high=LARGEST // 2, text=text)


def metadata(default: str) -> Param:
    """What stands before the text of a passage."""
    return Param(
        name="metadata",
        default=default,
        choices=("none", "title", "breadcrumb"),
        text="What is put before a passage as its title: nothing, the document's title, or the path to it "
        "(document > section > subsection, page)",
    )


LANGUAGE = Param(
    name="language",
    default="english",
    choices=tuple(LANGUAGES),
    text="Whose abbreviations do not end a sentence",
)
TOKENIZER = Param(
    name="tokenizer",
    default="o200k_base",
    choices=TOKENIZERS,
    text="What counts tokens; estimate = a token per four bytes",
)
LATE = Param(
    name="late",
    default="no",
    choices=("no", "yes"),
    text="yes: the whole document is encoded at once and each chunk's vector is the mean of its tokens' "
    "(thesis §3.5); the encoder must give token vectors",
)


def _fixed(work: Work) -> list[Span]:
    spans: list[Span] = []
    start, end = next_word(work.text, 0, len(work.text)), len(work.text)
    far = work.reach(start, end) if start < end else end
    while start < end:
        spans.append((start, far))
        after = next_word(work.text, far, end)
        if after >= end:
            break
        start = work.overlap_from(start + 1, far, work.option("overlap"))
        far = work.reach(start, end) if start < far else far
        if far <= after:  # an overlap that leaves no room for anything new would repeat itself for ever
            start, far = after, work.reach(after, end)
    return spans


FIXED = Chunker(
    method="fixed",
    text="A fixed number of tokens with overlap, regardless of words and sentences (thesis §3.1.1).",
    split=_fixed,
    params=(size(500), overlap(50), metadata("title"), TOKENIZER, LATE),
)


def _by_sentence(work: Work) -> list[Span]:
    return [
        span
        for start, end in work.sections()
        for span in pack(work, list(sentences(work, start, end)), work.option("overlap"))
    ]


SENTENCE = Chunker(
    method="sentence",
    text="Whole sentences up to a size, within one section, with the path of headings as metadata "
    "(CLQ paper §3.1).",
    split=_by_sentence,
    params=(size(500), overlap(70), metadata("breadcrumb"), LANGUAGE, TOKENIZER, LATE),
)


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


def _recursive(work: Work) -> list[Span]:
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
    split=_recursive,
    params=(size(500), overlap(0), metadata("title"), LANGUAGE, TOKENIZER, LATE),
)


_ONE_LINE = re.compile(r"[^\n]*(?:\n {0,3}(?:=+|-+)[ \t]*)?")  # the second line underlines the heading


def _by_paragraph(work: Work) -> list[Span]:
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
    split=_by_paragraph,
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


def _by_page(work: Work) -> list[Span]:
    edges = [*(work.pages or [0]), len(work.text)]
    edges[0] = 0
    spans: list[Span] = []
    for start, end in pairwise(edges):
        left, right = work.trimmed(start, end)
        if left == right:
            continue
        fits = work.fits(left, right)
        spans += [(left, right)] if fits else pack(work, list(sentences(work, left, right)), 0)
    return spans


PAGE = Chunker(
    method="page",
    text="One page each; a longer page is cut between sentences (thesis §7, full page).",
    split=_by_page,
    params=(size(8192), metadata("title"), LANGUAGE, TOKENIZER, LATE),
)


def _whole(work: Work) -> list[Span]:
    return [(0, len(work.text))]


NONE = Chunker(method="none", text="Documents are passages, as they are.", split=_whole, params=(TOKENIZER,))


CHUNKERS: Mapping[str, Chunker] = MappingProxyType(
    {each.method: each for each in (FIXED, SENTENCE, RECURSIVE, PARAGRAPH, PAGE, NONE)}
)
_METHOD = "method"


def canonical(chunker: JsonMap) -> dict[str, Value]:
    """A chunker with all of its parameters: what stands in ``Stack.spec["chunker"]``."""
    method = str(chunker.get(_METHOD, ""))
    if method not in CHUNKERS:
        raise UnknownNameError("chunker", method, CHUNKERS)
    where = f"chunker {method}"
    given = {name: _word(value) for name, value in chunker.items() if name != _METHOD}
    options = read_options(CHUNKERS[method].params, given, where=where)
    overlap, size = options.get("overlap", 0), options.get("size", 0)
    if isinstance(overlap, int) and isinstance(size, int) and overlap and overlap * 2 >= size:
        raise InputError(
            f"overlap={overlap} is not below half of size={size}.",
            where=where,
            do="Lower the overlap or raise the size.",
        )
    return {_METHOD: method, **options}


def _word(value: object) -> object:
    return ("no", "yes")[value] if isinstance(value, bool) else value


def chunking_name(chunker: JsonMap) -> str | None:
    """The name of what a chunker makes: method, size and four digits that stand for all parameters."""
    whole = canonical(chunker)
    if whole[_METHOD] == NONE.method:
        return None
    return f"{whole[_METHOD]}-{whole['size']}-{short_hash(canonical_json(whole))[:4]}"


def is_late(chunker: JsonMap | None) -> bool:
    """Whether vectors come from whole documents (late chunking); only encoders with token vectors fit."""
    return chunker is not None and canonical(chunker).get("late") == "yes"
