"""Whole sentences up to a size, within one section, the last sentences of a chunk repeated in the next."""

from __future__ import annotations

from core.pipeline.chunk.base import Chunker, Span, Work
from core.pipeline.chunk.pack import pack
from core.pipeline.chunk.params import LANGUAGE, LATE, TOKENIZER, metadata, overlap, size
from core.pipeline.chunk.sentences import sentences


def _split(work: Work) -> list[Span]:
    return [
        span
        for start, end in work.sections()
        for span in pack(work, list(sentences(work, start, end)), work.option("overlap"))
    ]


SENTENCE = Chunker(
    method="sentence",
    text="Whole sentences up to a size, within one section, with the path of headings as metadata "
    "(CLQ paper §3.1).",
    split=_split,
    params=(size(500), overlap(70), metadata("breadcrumb"), LANGUAGE, TOKENIZER, LATE),
)
