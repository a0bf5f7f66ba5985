"""A fixed number of tokens, wherever that falls; what other chunkers are compared with."""

from __future__ import annotations

from core.pipeline.chunk.base import Chunker, Span, Work, next_word
from core.pipeline.chunk.params import LATE, TOKENIZER, metadata, overlap, size


def _split(work: Work) -> list[Span]:
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
    split=_split,
    params=(size(500), overlap(50), metadata("title"), TOKENIZER, LATE),
)
