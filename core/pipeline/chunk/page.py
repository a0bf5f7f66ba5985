"""One page each, of documents that have pages; a document without is one page."""

from __future__ import annotations

from itertools import pairwise

from core.pipeline.chunk.base import Chunker, Span, Work
from core.pipeline.chunk.pack import pack
from core.pipeline.chunk.params import LANGUAGE, LATE, TOKENIZER, metadata, size
from core.pipeline.chunk.sentences import sentences


def _split(work: Work) -> list[Span]:
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
    split=_split,
    params=(size(8192), metadata("title"), LANGUAGE, TOKENIZER, LATE),
)
